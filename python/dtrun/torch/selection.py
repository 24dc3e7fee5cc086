"""dtrun in place of gloo, for scripts that dtrun started with `backend.torch = "dtrun"`.

torch calls autoload() at the end of its own import. If the variable of that option is set, the backend "dtrun" makes every
process group that a script requests as "gloo", "cpu:gloo" or without a name, and the cpu part of "cpu:gloo,cuda:nccl". Other
names keep their meaning. torch makes all groups, also those of DeviceMesh, in one private function, which is replaced here.
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
    """Applies the variable."""
    if os.environ.get(VARIABLE) == "dtrun" and dist.is_available():
        _take_over()


def chosen(backend: Any) -> Any:
    """The backend for a script's request."""
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
    """torch allows monitored_barrier for gloo only; scripts that request gloo may call it."""
    of_torch: Any = dist.monitored_barrier

    @functools.wraps(of_torch)
    def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> Any:
        from .group import Group

        own = group or c10d._get_default_group()
        if isinstance(own, Group):
            return own.monitored_barrier(timeout, wait_all_ranks)
        return of_torch(group, timeout, wait_all_ranks)

    dist.monitored_barrier = c10d.monitored_barrier = monitored_barrier
