"""The functions of torch that dtrun replaces or marks, once for each process.

- selection, for scripts that dtrun started with `backend.torch = "dtrun"`: torch calls autoload() at the end of its own import. If
  the variable of that option is set, the backend "dtrun" makes every process group that a script requests as "gloo", "cpu:gloo" or
  without a name, and the cpu part of "cpu:gloo,cuda:nccl". Other names keep their meaning. torch makes all groups, also those of
  DeviceMesh, in one private function, which is replaced here.
- DDP's built-in hook FP16_COMPRESS: it needs a future with a C++ list of tensors, which Python cannot make: the future of a Python
  group holds a Python object. torch has the same hook in Python, with the same arithmetic. ALLREDUCE takes both kinds.
- torch.compile does not trace dtrun's functions. Otherwise it traces them when torch's C++ calls one in a compiled program, as DDP
  does, and fails at the first use of the process group. torch's compiler, which takes seconds, is not imported.
- the barrier of torch 1.13 works for more than one default group.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from typing import Any, Callable, Iterator, Optional, Sequence

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import BuiltinCommHookType
from torch.distributed import distributed_c10d as c10d
from torch.nn.parallel import DistributedDataParallel

from . import create
from .group import Group


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Puts make(torch's function) in the place of owner.name. Once: a second call of the same `make` does nothing."""
    of_torch = getattr(owner, name)
    made = getattr(of_torch, "of_dtrun", ())
    if make not in made:
        ours: Any = functools.wraps(of_torch)(make(of_torch))
        ours.of_dtrun = (*made, make)
        setattr(owner, name, ours)


def autoload() -> None:
    """Applies the variable."""
    if os.environ.get("DTRUN_TORCH_BACKEND") == "dtrun" and dist.is_available():
        replace(c10d, "_new_process_group_helper", _chosen_groups)
        replace(c10d, "monitored_barrier", _monitored_barrier)
        dist.monitored_barrier = c10d.monitored_barrier


def chosen(backend: Any) -> Any:
    """The backend for a script's request."""
    name = str(backend).lower()
    if name in ("gloo", "cpu:gloo") or (name == "undefined" and not torch.accelerator.is_available()):
        return dist.Backend("dtrun")
    parts = name.split(",")
    if "cpu:gloo" in parts:  # of "cpu:gloo,cuda:nccl"
        return dist.Backend(",".join("cpu:dtrun" if part == "cpu:gloo" else part for part in parts))
    return backend


def _chosen_groups(make: Any) -> Any:
    def make_chosen(size: int, rank: int, ranks: Any, backend: Any, *rest: Any, **named: Any) -> Any:
        return make(size, rank, ranks, chosen(backend), *rest, **named)

    return make_chosen


def _monitored_barrier(of_torch: Any) -> Any:
    """torch allows monitored_barrier for gloo only; scripts that request gloo may call it."""

    def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> Any:
        own = group or c10d._get_default_group()
        if isinstance(own, Group):
            return own.monitored_barrier(timeout, wait_all_ranks)
        return of_torch(group, timeout, wait_all_ranks)

    return monitored_barrier


def python_hook(of_torch: Any) -> Any:
    """FP16_COMPRESS of a model over a Group uses the Python hook."""

    def register(self: Any, comm_hook_type: Any) -> None:
        if comm_hook_type != BuiltinCommHookType.FP16_COMPRESS or not isinstance(self.process_group, Group):
            of_torch(self, comm_hook_type)
            return
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

        self.register_comm_hook(self.process_group, fp16_compress_hook)

    return register


def apply(own_barrier: bool) -> None:
    """All but the selection."""
    if own_barrier:
        replace(c10d, "_store_based_barrier", create.own_barrier)
    if hasattr(c10d, "BackendConfig"):
        replace(c10d, "_new_process_group_helper", create.keep_others)
    replace(DistributedDataParallel, "_register_builtin_comm_hook", python_hook)
    leave_alone("dtrun", (Group.getRank, Group.getSize, Group.getBackendName, Group.getGroupName, Group.getGroupDesc))


def leave_alone(package: str, answers: Sequence[Callable[..., object]]) -> None:
    """Marks all loaded functions of `package` as untraced, also when C++ calls them. Results of `answers` may be constants of a
    graph."""
    skip = _skip()
    if skip is None:
        return
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for function in _functions(module, name):
                function._torchdynamo_disable = function not in answers  # as torch.compiler.disable does
                for code in _codes(function.__code__):
                    skip(code)


def _skip() -> Optional[Callable[[types.CodeType], object]]:
    """The function that makes torch's compiler skip a code object."""
    try:
        from torch._C._dynamo import eval_frame
    except ImportError:  # torch 1.13 has no compiler
        return None
    frames: Any = eval_frame
    if hasattr(frames, "skip_code"):  # until 2.6
        skip: Callable[[types.CodeType], object] = frames.skip_code
        return skip
    strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.SKIP)  # with what it calls
    return lambda code: frames.set_code_exec_strategy(code, strategy)


def _functions(owner: Any, module: str) -> Iterator[Any]:
    """The functions that a module, or a class of it, defines."""
    for value in list(vars(owner).values()):
        if isinstance(value, type) and value.__module__ == module and value is not owner:
            yield from _functions(value, module)
        for one in (value.fget, value.fset) if isinstance(value, property) else (value,):
            one = inspect.unwrap(getattr(one, "__func__", one)) if callable(one) else None
            if isinstance(one, types.FunctionType) and one.__module__ == module:
                yield one


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code object, and those defined inside it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _codes(value)
