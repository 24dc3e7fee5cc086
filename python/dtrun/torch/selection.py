"""dtrun in place of gloo, for scripts that dtrun started with `backend.torch = "dtrun"`.

torch calls autoload() at the end of its own import. Where the variable of that option is set, every process group that a
script asks for as "gloo", "cpu:gloo" or without a name is made by the backend "dtrun", and of "cpu:gloo,cuda:nccl" the part
for cpu; other names mean what they say.
torch makes all its groups, those of DeviceMesh too, in one function of its own, which is what is replaced here.
"""

from __future__ import annotations

import functools
import os

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "DTRUN_TORCH_BACKEND"
_PLAIN = ("gloo", "cpu:gloo")


def autoload() -> None:
    """Does what the variable says."""
    if os.environ.get(VARIABLE) == "dtrun" and dist.is_available():
        _take_over()


def chosen(backend: Any) -> Any:
    """The backend for what a script asked for."""
    name = str(backend).lower()
    if name in _PLAIN or (name == "undefined" and not torch.accelerator.is_available()):
        return dist.Backend("dtrun")
    parts = name.split(",")
    if "cpu:gloo" in parts:  # of "cpu:gloo,cuda:nccl"
        return dist.Backend(",".join("cpu:dtrun" if part == "cpu:gloo" else part for part in parts))
    return backend


def _take_over() -> None:
    make: Any = c10d._new_process_group_helper
    if hasattr(make, "of_dtrun"):
        return

    @functools.wraps(make)
    def make_chosen(size: int, rank: int, ranks: Any, backend: Any, *rest: Any, **named: Any) -> Any:
        return make(size, rank, ranks, chosen(backend), *rest, **named)

    make_chosen.of_dtrun = True  # type: ignore[attr-defined]
    setattr(c10d, "_new_process_group_helper", make_chosen)  # noqa: B010
    _monitor()


def _monitor() -> None:
    """torch lets monitored_barrier through for gloo alone; scripts that ask for gloo may call it."""
    of_torch: Any = dist.monitored_barrier

    @functools.wraps(of_torch)
    def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> Any:
        from .group import Group

        own = group or c10d._get_default_group()
        if isinstance(own, Group):
            return own.monitored_barrier(timeout, wait_all_ranks)
        return of_torch(group, timeout, wait_all_ranks)

    dist.monitored_barrier = c10d.monitored_barrier = monitored_barrier
