"""Makes the process groups that init_process_group and new_group ask for."""

import atexit

import torch.distributed as dist
from torch.distributed.distributed_c10d import default_pg_timeout

from .. import errors, process
from .group import Group
from .work import finish_in_order

_inits = 0  # of default groups, on every rank alike


def create(options, _):
    """The Group for torch's options: of all ranks, or of some."""
    global _inits
    world = process.world() if process.is_initialized() else process.init()
    atexit.unregister(finish_in_order)
    atexit.register(finish_in_order)  # is called before what init() has registered
    ranks = list(options.global_ranks_in_group)
    if ranks:
        _check(world, dist.get_rank(), dist.get_world_size())
        return Group(options.store, world.subset(ranks), _seconds(options.timeout), ranks)
    _check(world, options.group_rank, options.group_size)
    _inits += 1
    # One made after destroy_process_group has a communicator of its own: what failed the first leaves it alone.
    comm = world if _inits == 1 else world.split(0)
    return Group(options.store, comm, _seconds(options.timeout))


def subgroup(parent, ranks, timeout, name, description):
    """The Group of `ranks` of `parent`."""
    seconds = _seconds(timeout) if timeout else (parent._timeout_ns / 1e9 or None)
    comm = parent.comm.subset(ranks)
    group = Group(dist.PrefixStore(f"{name}/", parent.get_group_store()), comm, seconds, [parent.ranks[r] for r in ranks])
    group.setGroupName(name)
    group.setGroupDesc(description)
    return group


def _check(world, rank, size):
    if (rank, size) == (world.rank, world.size):
        return
    asked = f"init_process_group: rank {rank} of {size}"
    if not process.started_by_dtrun():
        raise errors.FailedPrecondition(f"{asked}, but dtrun did not start this process; start the program with dtrun -n {size}")
    fix = "leave rank and world_size out, or pass RANK and WORLD_SIZE"
    if world.size == 1:
        fix = f"start the program with dtrun -n {size}"
    raise errors.InvalidArgument(f"{asked}, and dtrun started this process as rank {world.rank} of {world.size}; {fix}")


def _seconds(timeout):
    """None, `backend.timeout` of the config, where the script left torch's own default."""
    return None if timeout == default_pg_timeout else timeout.total_seconds()
