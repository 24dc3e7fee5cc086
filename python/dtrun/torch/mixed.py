"""A process group of several backends, as "cpu:dtrun,cuda:nccl" asks for: dtrun for some kinds of devices, torch's for others.

torch lets Python make only a whole process group, and then ignores the other requested backends. So torch first makes a
group of those, which MixedGroup holds; calls on tensors of their devices go to it.
"""

from __future__ import annotations

import functools
import inspect

import torch
from torch.distributed import distributed_c10d as c10d

from .. import errors
from .group import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional

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


# ---- how torch makes one

_others: Any = None  # of the group that is being made


def group_class() -> Any:
    """The result of create(): Group, or a MixedGroup with the group that was made before."""
    if _others is None:
        return Group
    return functools.partial(_mixed, _others)


def _mixed(others: Any, *given: Any) -> MixedGroup:
    group = MixedGroup(*given)
    group.others = others
    return group


def watch() -> None:
    """Makes torch's groups of several backends keep those beside dtrun."""
    make: Any = c10d._new_process_group_helper
    if hasattr(make, "mixes") or not hasattr(c10d, "BackendConfig"):
        return
    signature = inspect.signature(make)

    @functools.wraps(make)
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

    make_mixed.mixes = True  # type: ignore[attr-defined]
    setattr(c10d, "_new_process_group_helper", make_mixed)  # noqa: B010


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
