"""The process group of the backend "dtrun", over a communicator of dtrun.

A Python subclass of ProcessGroup. torch.distributed calls these methods directly; torch's C++ (DDP, functional collectives)
calls those that ProcessGroup lets Python override. Calls return a Work; those with asyncOp=False block.
"""

from __future__ import annotations

import time
import weakref
from datetime import timedelta
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple, Union

import torch
from torch._C._distributed_c10d import Store
from torch.distributed import AllreduceOptions
from torch.distributed.distributed_c10d import default_pg_timeout

from .. import _library, errors
from ..communicator import Communicator
from ..operations import BARRIER
from .copying import Copying
from .following import overtakers
from .reducing import NUMBERS as REDUCTIONS
from .reducing import Reducing
from .tensors import NUMBERS, kind_of, plain
from .work import ENDED, Follower, Work, explained

if TYPE_CHECKING:

    class ProcessGroup:
        """torch's base class; the signatures of its methods differ between versions."""

        def __init__(self, rank: int, size: int) -> None: ...

else:
    from torch.distributed import ProcessGroup

_CPU = torch.device("cpu")
# Options that tell whether the caller blocks (torch 2.7 and later).
_Blocking: Any = AllreduceOptions if hasattr(AllreduceOptions, "asyncOp") else None

groups: weakref.WeakSet[Group] = weakref.WeakSet()  # that the program still holds


class Group(Reducing, Copying, ProcessGroup):
    """A process group over `comm`, a dtrun.Communicator. `timeout`: seconds for each operation; None: `backend.timeout` of the
    config."""

    def __init__(
        self, store: Store, comm: Communicator, timeout: Optional[float] = None, ranks: Optional[List[int]] = None
    ) -> None:
        super().__init__(comm.rank, comm.size)
        self.comm = comm
        self.ranks = ranks or list(range(comm.size))  # in the world of dtrun
        self._store = store
        self._timeout_ns = 0 if timeout is None else int(timeout * 1e9)
        self._follow = Follower()
        self._coalesced: Optional[List[Work]] = None
        self._monitored = 0
        self._names = ["", ""]
        self._fast = _library.library().dtrun_allreduce
        self._inside = comm._inside
        groups.add(self)

    def allreduce(self, tensors: Any, opts: Any = None, *rest: Any, **named: Any) -> Work:
        """Every rank gets the reduction of the tensor."""
        if type(opts) is _Blocking and not opts.asyncOp and len(tensors) == 1 and not self._timeout_ns and not overtakers:
            tensor = tensors[0]  # the fast path of a blocking call; other cases take the general path
            dtype = NUMBERS.get(tensor.dtype)
            reduce = REDUCTIONS.get(opts.reduceOp.op)
            dense = tensor.layout is torch.strided and plain(tensor)  # torch 2 has no answer for sparse CSR
            if dtype and reduce and tensor.is_cpu and dense and self._coalesced is None:
                address = tensor.data_ptr()
                count, comm, inside, error = tensor.numel(), self.comm, self._inside, _library.error()
                try:
                    inside.append(error)
                    status = self._fast(comm._handle or comm._live(), address, address, count, dtype, reduce, None, error)
                finally:
                    inside.remove(error)
                if status:
                    raise explained(comm._failure("allreduce", status), comm)
                return ENDED
        return self._allreduce(tensors, opts, *rest, **named)

    def barrier(self, opts: Any = None) -> Work:
        """Completes when every rank has called it."""
        return self._launch("barrier", opts, BARRIER, None, None, [], [])

    def monitored_barrier(self, timeout: Union[timedelta, float, None] = None, wait_all_ranks: bool = False) -> None:
        """As barrier, but blocks. After `timeout` (default: half an hour) the error names the missing ranks."""
        self._monitored += 1
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout  # torch takes both
        if seconds is None or seconds < 0:
            seconds = self._timeout_ns / 1e9 or default_pg_timeout.total_seconds()
        _monitored_barrier(
            self._store, self.comm.rank, self.comm.size, f"{self.comm.name}/{self._monitored}", seconds, wait_all_ranks
        )

    # ---- torch's queries ----

    def getBackendName(self) -> str:
        return "dtrun"

    def getRank(self) -> int:
        return self.comm.rank

    def getSize(self) -> int:
        return self.comm.size

    def get_group_store(self) -> Store:
        return self._store

    def getGroupName(self) -> str:
        return self._names[0]

    def setGroupName(self, name: str) -> None:
        self._names[0] = name

    def getGroupDesc(self) -> str:
        return self._names[1]

    def setGroupDesc(self, text: str) -> None:
        self._names[1] = text

    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    _set_group_name, _set_group_desc = setGroupName, setGroupDesc
    name = _get_backend_name = getBackendName

    @property
    def _device_types(self) -> List[torch.device]:
        return [_CPU]

    def _get_backend(self, device: Any) -> Any:
        """The backend of a device, for torch's queries of capabilities: the group itself."""
        if kind_of(torch.device(device).type) is None:
            raise RuntimeError(f"the backend dtrun has no tensors of {device}, only of cpu and cuda")
        return self

    supports_coalescing = True
    supports_splitting = False  # torch's split_group wants a device; split_group() below does not
    supports_time_estimate = False

    def supports_tensor_alloc(self, device: Any) -> bool:
        return False

    def _set_sequence_number_for_group(self) -> None:
        """Does nothing: dtrun compares the calls of ranks anyway."""

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def _has_hooks(self) -> bool:
        return False

    def set_timeout(self, timeout: Optional[timedelta]) -> None:
        """Sets the timeout of later operations."""
        self._timeout_ns = self._ns(timeout)

    _set_default_timeout = set_timeout

    # ---- the group's life ----

    def split_group(
        self, ranks: Sequence[int], timeout: Optional[timedelta] = None, opts: Any = None, group_name: Optional[str] = None,
        group_desc: Optional[str] = None, device_types: Any = None,
    ) -> Optional[Group]:  # fmt: skip
        """A group of `ranks` of this group; all of them call it. Returns None on other ranks."""
        from .create import subgroup

        if self.comm.rank not in ranks:
            return None
        return subgroup(self, sorted(ranks), timeout, group_name or "", group_desc or "")

    splitGroup = split_group

    def abort(self) -> None:
        """Makes pending and later operations on this rank fail."""
        self.comm.abort("torch.distributed aborted the process group")

    def shutdown(self) -> None:
        """Ends the group, after the works with futures in use."""
        self._follow.stop()
        self.comm.free()


# ---- monitored_barrier: rank 0 waits for each of the others and names the missing ranks, as gloo's does. It uses the group's
# store, not the communicator, so that it can name ranks that hang in an operation.


def _monitored_barrier(store: Store, rank: int, size: int, name: str, seconds: float, wait_all_ranks: bool) -> None:
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
    """(the late ranks as text: "", "Rank 1", or with all_of_them "Ranks 1, 2"; the ranks that have arrived)."""
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
