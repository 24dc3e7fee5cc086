"""Makes the process groups that init_process_group and new_group ask for."""

from __future__ import annotations

import atexit

import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore
from torch.distributed.distributed_c10d import default_pg_timeout

from .. import errors, process
from .following import finish_in_order
from .group import Group
from .mixed import group_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any, Callable, List, Optional

    from ..communicator import Communicator

_inits = 0  # of default groups, on every rank alike


def create(options: Any, _: Any) -> Group:
    """The Group for torch's options: of all ranks, or of some."""
    global _inits
    world = process.world() if process.is_initialized() else process.init()
    atexit.unregister(finish_in_order)
    atexit.register(finish_in_order)  # is called before what init() has registered
    ranks = list(options.global_ranks_in_group)
    if ranks:
        _check(world, dist.get_rank(), dist.get_world_size())
        part = _parted("new_group", world, lambda: world.subset(ranks))
        made: Group = group_class()(options.store, part, _seconds(options.timeout), ranks)
        return made
    _check(world, options.group_rank, options.group_size)
    _inits += 1
    # One made after destroy_process_group has a communicator of its own: what failed the first leaves it alone.
    # The world itself is the first's; a failure of it stays.
    comm = world if _inits == 1 else _parted("init_process_group", world, lambda: world.split(0))
    assert comm is not None
    made = group_class()(options.store, comm, _seconds(options.timeout))
    return made


def subgroup(parent: Group, ranks: List[int], timeout: Optional[timedelta], name: str, description: str) -> Group:
    """The Group of `ranks` of `parent`."""
    seconds = _seconds(timeout) if timeout else (parent._timeout_ns / 1e9 or None)
    comm = parent.comm.subset(ranks)
    store = PrefixStore(f"{name}/", parent.get_group_store())
    group = Group(store, comm, seconds, [parent.ranks[r] for r in ranks])
    group.setGroupName(name)
    group.setGroupDesc(description)
    return group


def _parted(what: str, world: Communicator, make: Callable[[], Optional[Communicator]]) -> Any:
    """What `make` makes of the world; where that has failed, what to do about it."""
    failed = world._cause
    try:
        return make()
    except errors.Error as failure:
        if failed is None or failure.status in errors.REFUSALS:
            raise
        raise errors.make(
            failure.status,
            f"{what}: this process makes no more process groups, since an operation of its first one has failed: {failed}; end "
            "the process: with restart.max in the config dtrun starts all ranks again",
            failure.peer,
        ) from None


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
    """None, `backend.timeout` of the config, where the script left torch's own default."""
    return None if timeout == default_pg_timeout else timeout.total_seconds()
