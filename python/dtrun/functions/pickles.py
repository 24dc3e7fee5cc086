"""Pickles functions, by cloudpickle if it is installed, which also supports lambdas and functions of a notebook."""

from __future__ import annotations

import ast
import inspect
import io
import os
import pickle
import sys
import types
from typing import Any, Callable, Iterator, Sequence

from .. import errors, objects
from .exchange import LOADED


class _ByName(pickle.Pickler):
    """`named` collects the functions and classes of the caller's script that are pickled by name."""

    def __init__(self, file: io.BytesIO, named: list) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.named = named

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, types.FunctionType)) and value.__module__ in ("__main__", LOADED):
            self.named.append(value)
        return NotImplemented  # as pickle does it


def _by_name(value: Any, named: list | None = None) -> bytes:
    file = io.BytesIO()
    _ByName(file, [] if named is None else named).dump(value)
    return file.getvalue()


try:
    from cloudpickle import dumps
except ImportError:
    dumps = _by_name


def dump_call(fn: Callable, args: tuple, kwargs: dict, what: str, dumps: Callable = dumps, named: list | None = None) -> bytes:
    """The pickle of a call. `named` collects what is pickled by name from the caller's script. Raises InvalidArgument with the
    part that cannot be pickled."""
    if (loading := _loading()) is not None:
        raise errors.FailedPrecondition(
            f"{what}: this process is a rank that loads {loading} to find its function, and that file calls {what} again; put the "
            'call under `if __name__ == "__main__":`'
        )
    if not callable(fn):
        raise errors.InvalidArgument(f"{what}: {fn!r} is not a function; pass the function itself, not what it returns")
    call = (fn, tuple(args), dict(kwargs))
    try:
        return _by_name(call, named) if dumps is _by_name else dumps(call)
    except Exception as failure:
        place, part, reason = _culprit(fn, args, kwargs, failure, dumps)
        kind = f"{type(part).__module__}.{type(part).__qualname__}"
        raise errors.InvalidArgument(
            f"{what}: {place} ({kind}) cannot be pickled: {objects.reason_of(reason)}; {_advice(part)}"
        ) from failure


def main_file(named: Sequence) -> str | None:
    """The script that ranks have to load to find the `named` ones; None if there are none."""
    if not named:
        return None
    file, cloudpickle = getattr(sys.modules["__main__"], "__file__", None), "install cloudpickle (pip install cloudpickle)"
    if file is None or not os.path.isfile(file):  # "<stdin>" is none
        raise errors.InvalidArgument(
            f"dtrun.run: {named[0].__qualname__} is defined in a notebook, at a prompt or on stdin, where ranks cannot find it; "
            f"{cloudpickle}, or define it in a module"
        )
    elsewhere, guarded = _definitions(file)
    for value in named:
        name = value.__qualname__.partition(".")[0]
        if name in guarded and name not in elsewhere:
            raise errors.InvalidArgument(
                f'dtrun.run: {name} is defined under `if __name__ == "__main__":` at {file}:{guarded[name]}, which ranks do not run; '
                f"define it above, or {cloudpickle}"
            )
    return file


def _definitions(file: str) -> tuple[dict[str, int], dict[str, int]]:
    """The functions and classes of a script by name, with their lines: (all others, those that only its main guard defines)."""
    elsewhere: dict[str, int] = {}
    guarded: dict[str, int] = {}
    with open(file, "rb") as script:
        tree = ast.parse(script.read(), file)
    blocks: list[tuple[Iterator[ast.AST], dict]] = [(ast.iter_child_nodes(tree), elsewhere)]
    while blocks:
        nodes, found = blocks.pop()
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found[node.name] = node.lineno
            elif isinstance(node, ast.If) and _is_main_guard(node.test):
                blocks += [(iter(node.body), guarded), (iter(node.orelse), elsewhere)]
            elif isinstance(node, (ast.stmt, ast.ExceptHandler)):
                blocks.append((ast.iter_child_nodes(node), found))
    return elsewhere, guarded


def _is_main_guard(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = {ast.dump(side) for side in (test.left, test.comparators[0])}
    return sides == {ast.dump(ast.Name("__name__", ast.Load())), ast.dump(ast.Constant("__main__"))}


def _loading() -> str | None:
    """The script that this rank is loading to find its function."""
    module = sys.modules.get(LOADED)
    return None if module in (None, sys.modules["__main__"]) else module.__file__


def _culprit(fn: Callable, args: tuple, kwargs: dict, failure: Exception, dumps: Callable) -> tuple[str, Any, Exception]:
    name = getattr(fn, "__qualname__", repr(fn))
    parts = [("args", args), ("kwargs", kwargs)]
    if dumps is not _by_name and inspect.isfunction(fn):  # pickle takes functions by their names, without their variables
        seen = inspect.getclosurevars(fn)
        parts += [(f"{name}: its variable {key}", value) for key, value in {**seen.nonlocals, **seen.globals}.items()]
    for place, part in parts:
        try:
            dumps(part)
        except Exception as inner:
            return objects.culprit(part, inner, place, dumps=dumps)
    return f"the function {name}", fn, failure


def _advice(part: Any) -> str:
    if callable(part) and dumps is _by_name:
        return "install cloudpickle (pip install cloudpickle), or define it at the top of a module"
    return "make it inside the function, on each rank"
