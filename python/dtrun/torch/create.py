"""Makes process groups for init_process_group and new_group."""

from __future__ import annotations

import atexit
import contextlib

import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore
from torch.distributed import distributed_c10d
from torch.distributed.distributed_c10d import default_pg_timeout

from .. import communicator, errors, process
from .following import finish_in_order
from .group import Group, groups
from .mixed import group_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any, Callable, List, Optional

    from torch._C._distributed_c10d import Store

    from ..communicator import Communicator

_CALLED_BY_ALL = "all ranks call new_group, in one order, unless it has use_local_synchronization=True: then the group's own"
_inits = 0  # of default groups since this process has joined its job, on every rank alike
_joins = False  # whether that was done here
_generation = 0  # of default groups of this process, on every rank alike
_store: Any = None  # of the last one: rank 0's store serves the others, which may call the next init_process_group before rank 0


def create(options: Any, _: Any) -> Group:
    """The Group for torch's options: of all ranks, or of some."""
    global _inits, _joins, _generation, _store
    if process.is_initialized():
        world = process.world()
    else:
        world, _inits, _joins = process.init(), 0, True
    atexit.unregister(finish_in_order)
    atexit.register(finish_in_order)  # runs before the handler that init() has registered
    ranks = list(options.global_ranks_in_group)
    if ranks:
        _check(world, dist.get_rank(), dist.get_world_size())
        part = _parted("new_group", world, lambda: world.subset(ranks))
        made: Group = group_class()(_own(options.store), part, _seconds(options.timeout), ranks)
        return made
    _check(world, options.group_rank, options.group_size)
    _inits += 1
    _generation += 1
    _store = options.store
    made = group_class()(_own(options.store), world if _inits == 1 else _another(world), _seconds(options.timeout))
    return made


def _own(store: Store) -> Store:
    """A key prefix for a default group and later ones, because the keys of earlier groups still exist."""
    return PrefixStore(f"generation{_generation}", store) if _generation > 1 else store


def barrier_of_each() -> None:
    """torch 1.13 waits until a counter in its store equals the number of ranks, which works only once. Gives each later
    default group its own counter."""
    known: Any = distributed_c10d
    wait = known._store_based_barrier

    def barrier(rank: int, store: Any, timeout: Any) -> None:
        wait(rank, _own(store), timeout)

    known._store_based_barrier = barrier


def subgroup(parent: Group, ranks: List[int], timeout: Optional[timedelta], name: str, description: str) -> Group:
    """The Group of `ranks` of `parent`."""
    seconds = _seconds(timeout) if timeout else (parent._timeout_ns / 1e9 or None)
    comm = parent.comm.subset(ranks)
    store = PrefixStore(f"{name}/", parent.get_group_store())
    group = Group(store, comm, seconds, [parent.ranks[r] for r in ranks])
    group.setGroupName(name)
    group.setGroupDesc(description)
    return group


def _another(world: process.World) -> Communicator:
    """The communicator of a default group after destroy_process_group: a new one, so that failures of earlier groups do not
    affect it. The first group was the world; if that has failed, every rank leaves the job and joins it again."""
    global _inits
    try:
        part = world.split(0)
        assert part is not None
        return part
    except errors.Error as failure:
        if failure.status in errors.REFUSALS:
            raise
        living = {comm for comm in communicator.made if comm._handle}
        if not _joins or process.inits() > 1 or living - {world, *(group.comm for group in groups)}:
            fix = "and other parts of this program use dtrun too, so it stays in its job: end the process"
            raise _refused("init_process_group", world, failure, fix) from None
    for group in list(groups):
        group.shutdown()
    with contextlib.suppress(errors.Error):  # what has failed the world
        process.finalize()
    _inits = 1
    return process.init()


def _parted(what: str, world: Communicator, make: Callable[[], Optional[Communicator]]) -> Any:
    """The result of `make` on the world. If the world has failed, raises an error with the next step."""
    failed = world._cause
    try:
        return make()
    except errors.Error as failure:
        if failed is None and isinstance(failure, errors.Timeout):
            raise failure.reworded(f"{what}: {failure}; {_CALLED_BY_ALL}") from None
        if failed is None or failure.status in errors.REFUSALS:
            raise
        fix = "call destroy_process_group() and init_process_group() on every rank first, or end the process"
        raise _refused(what, world, failure, fix) from None


def _refused(what: str, world: Communicator, failure: errors.Error, fix: str) -> errors.Error:
    return failure.reworded(
        f"{what}: an operation of the first process group has failed: {world._cause or failure}; {fix}: with restart.max in the config dtrun "
        "starts all ranks again"
    )


def _check(world: Communicator, rank: int, size: int) -> None:
    if (rank, size) == (world.rank, world.size):
        return
    asked = f"init_process_group: rank {rank} of {size}"
    if not process.started_by_dtrun():
        raise errors.FailedPrecondition(f"{asked}, but dtrun did not start this process; start the program with dtrun -n {size}")
    fix = "leave rank and world_size out, or pass RANK and WORLD_SIZE"
    if world.size == 1:
        fix = f"start the program with dtrun -n {size}"
    raise errors.InvalidArgument(f"{asked}, and dtrun started this process as rank {world.rank} of {world.size}; {fix}")


def _seconds(timeout: timedelta) -> Optional[float]:
    """None (`backend.timeout` of the config) if the script kept torch's default."""
    return None if timeout == default_pg_timeout else timeout.total_seconds()
