"""Keeps torch.compile from tracing dtrun's functions. Otherwise it traces them when torch's C++ calls one in a compiled
program, as DDP does, and fails at the first use of the process group.

Called once, at the import of dtrun.torch. Does not import torch's compiler, which takes seconds.
"""

from __future__ import annotations

import inspect
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, Optional, Sequence


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
