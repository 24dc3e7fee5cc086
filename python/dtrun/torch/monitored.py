"""monitored_barrier: rank 0 waits for each of the others and names the missing ranks, as gloo's does.

It uses the group's store, not the communicator, so that it can name ranks that hang in an operation.
"""

from __future__ import annotations

import time
from datetime import timedelta

from .. import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

    from torch._C._distributed_c10d import Store


def monitored_barrier(store: Store, rank: int, size: int, name: str, seconds: float, wait_all_ranks: bool) -> None:
    """`name` identifies the call: the same on all ranks, and never used again. Rank 0 blocks at most `seconds` for all; others
    wait for its answer."""
    key = f"monitored_barrier/{name}"
    if rank == 0:
        late, here = _look(store, key, size, seconds, wait_all_ranks)
        store.set(f"{key}/answer", late)
        if here:  # rank 0 may hold the store: it stays until they have read the answer
            store.wait([f"{key}/{r}/read" for r in here], timedelta(seconds=seconds + 1))
        if late:
            raise errors.Timeout(
                f"monitored_barrier: [Rank 0]: {late} failed to pass monitoredBarrier in {seconds * 1e3:g} ms, after which "
                "Rank 0 timed out in monitoredBarrier; see what they do"
            )
        return
    store.set(f"{key}/{rank}", "")
    try:
        store.wait([f"{key}/answer"], timedelta(seconds=seconds + 1))  # rank 0 answers at the end of its time
    except RuntimeError:
        raise errors.Timeout(f"{_waited(rank)}, which did not answer in {seconds * 1e3:g} ms; see what rank 0 says") from None
    late = store.get(f"{key}/answer").decode()
    store.set(f"{key}/{rank}/read", "")
    if late:
        raise errors.RemoteFailure(f"{_waited(rank)}, which waited in vain for {late}")


def _waited(rank: int) -> str:
    """gloo's text."""
    return (
        f"monitored_barrier: Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for "
        "send/recv from rank 0"
    )


def _look(store: Store, key: str, size: int, seconds: float, all_of_them: bool) -> Tuple[str, List[int]]:
    """(who is late, in words: "", "Rank 1", or "Ranks 1, 2" where all are asked for; those who have come)."""
    deadline = time.monotonic() + seconds
    late: List[str] = []
    here: List[int] = []
    for rank in range(1, size):
        try:
            store.wait([f"{key}/{rank}"], timedelta(seconds=max(0.001, deadline - time.monotonic())))
            here.append(rank)
        except RuntimeError:
            late.append(str(rank))
            if not all_of_them:
                break
    return (f"Rank{'s' * (len(late) > 1)} {', '.join(late)}" if late else ""), here
