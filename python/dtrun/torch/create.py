"""Makes process groups for init_process_group and new_group.

A group of several backends, as "cpu:dtrun,cuda:nccl" asks for, is a MixedGroup. torch lets Python make only a whole process group,
and then ignores the other requested backends. So torch first makes a group of those, which MixedGroup holds; calls on tensors of
their devices go to it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
from datetime import timedelta
from typing import Any, Callable, List, Optional

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed import distributed_c10d as c10d

from .. import calls, errors, process
from ..communicator import Communicator
from .following import finish_in_order
from .group import Group, groups

_CALLED_BY_ALL = "all ranks call new_group, in one order, unless it has use_local_synchronization=True: then the group's own"
_inits = 0  # of default groups since this process has joined its job, on every rank alike
_joins = False  # whether that was done here
_generation = 0  # of default groups of this process, on every rank alike
_others: Any = None  # torch's group of the other backends, of the MixedGroup that is being made
_store: Any = None  # of the last one: rank 0's store serves the others, which may call the next init_process_group before rank 0


def create(options: Any, _: Any) -> Group:
    """The Group for torch's options, of all ranks or of some."""
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
        return _group(_own(options.store), part, _seconds(options.timeout), ranks)
    _check(world, options.group_rank, options.group_size)
    _inits += 1
    _generation += 1
    _store = options.store
    return _group(_own(options.store), world if _inits == 1 else _another(world), _seconds(options.timeout))


def _group(*given: Any) -> Group:
    if _others is None:
        return Group(*given)
    group = MixedGroup(*given)
    group.others = _others
    return group


def _own(store: Store) -> Store:
    """A key prefix for a default group and later ones, because the keys of earlier groups still exist."""
    return PrefixStore(f"generation{_generation}", store) if _generation > 1 else store


def own_barrier(wait: Any) -> Any:
    """torch 1.13 waits until a counter in its store equals the number of ranks, which works only once. Gives each later
    default group its own counter."""

    def barrier(rank: int, store: Any, timeout: Any) -> None:
        wait(rank, _own(store), timeout)

    return barrier


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
        living = {comm for comm in calls.living() if comm._handle}
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
    return None if timeout == c10d.default_pg_timeout else timeout.total_seconds()


# ---- groups of several backends

_CALLS = """allreduce allreduce_coalesced reduce broadcast allgather _allgather_base allgather_coalesced
    all_gather_single all_gather_single_coalesced allgather_into_tensor_coalesced gather scatter reduce_scatter
    _reduce_scatter_base reduce_scatter_single reduce_scatter_single_coalesced reduce_scatter_tensor_coalesced alltoall
    alltoall_base all_to_all_single send recv recv_anysource _start_coalescing _end_coalescing barrier"""


class MixedGroup(Group):
    """`others` is torch's group of the other backends; it is set before the first call."""

    others: Any = None

    @property
    def _device_types(self) -> List[torch.device]:
        return [torch.device("cpu"), *(device for device in self.others._device_types if device.type != "cpu")]

    def _get_backend(self, device: Any) -> Any:
        device = torch.device(device)
        return self.others._get_backend(device) if self._is_of_others(device) else self

    def _is_of_others(self, device: torch.device) -> bool:
        return any(other.type == device.type for other in self.others._device_types)

    def set_timeout(self, timeout: Any) -> None:
        super().set_timeout(timeout)
        self.others.set_timeout(timeout)

    _set_default_timeout = set_timeout

    def abort(self) -> None:
        super().abort()
        self.others.abort()

    def shutdown(self) -> None:
        getattr(self.others, "shutdown", lambda: None)()  # old torch has none
        super().shutdown()

    def split_group(self, ranks: Any, *rest: Any, **named: Any) -> Any:
        raise errors.Unsupported(
            "split_group: the group has several backends, which it cannot split; use torch.distributed.new_group"
        )

    splitGroup = split_group


def _device_of(value: Any) -> Optional[torch.device]:
    """The device that an argument names: its own, that of its first tensor, or of the options of a barrier."""
    if isinstance(value, torch.device):
        return value
    if isinstance(value, (list, tuple)):
        return next((device for device in map(_device_of, value) if device is not None), None)
    device = getattr(value, "device", None)
    return device if isinstance(device, torch.device) else None


def _routed(name: str) -> Callable[..., Any]:
    own = getattr(Group, name)

    @functools.wraps(own)
    def call(self: MixedGroup, *given: Any, **named: Any) -> Any:
        device = _device_of([*given, *named.values()])
        if device is not None and self._is_of_others(device):
            return getattr(self.others, name)(*given, **named)
        return own(self, *given, **named)

    return call


for _name in _CALLS.split():
    setattr(MixedGroup, _name, _routed(_name))


def keep_others(make: Any) -> Any:
    """Makes torch's groups of several backends keep those beside dtrun."""
    signature = inspect.signature(make)

    def make_mixed(*given: Any, **named: Any) -> Any:
        global _others
        call = signature.bind(*given, **named)
        backends = c10d.BackendConfig(c10d.Backend(str(call.arguments["backend"]))).get_device_backend_map()
        others = [f"{device}:{name}" for device, name in backends.items() if name != "dtrun"]
        if not others or len(others) == len(backends):
            return make(*given, **named)
        call.arguments.update(backend=c10d.Backend(",".join(others)), group_name=f"{call.arguments['group_name']}/others")
        made, store = make(*call.args, **call.kwargs)
        if not isinstance(made, c10d.ProcessGroup):  # this rank is in no such group
            return made, store
        _forget(made)
        own = [f"{device}:{name}" for device, name in backends.items() if name == "dtrun"]
        call = signature.bind(*given, **named)
        call.arguments.update(backend=c10d.Backend(",".join([*own, *others])))  # at the first, torch takes the whole group
        call.arguments.pop("device_id", None)  # it was for the others
        _others = made
        try:
            return make(*call.args, **call.kwargs)
        finally:
            _others = None

    return make_mixed


def _forget(group: Any) -> None:
    """torch knows the MixedGroup, which holds this group."""
    world: Any = c10d._world
    for table in (world.pg_map, world.pg_names, world.pg_backend_config, world.pg_to_tag, world.pg_group_ranks):
        table.pop(group, None)
    for groups in world.tags_to_pg.values():
        if group in groups:
            groups.remove(group)
    if hasattr(c10d, "_unregister_process_group"):
        c10d._unregister_process_group(group.group_name)
