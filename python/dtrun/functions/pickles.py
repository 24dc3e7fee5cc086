"""Functions as bytes: by cloudpickle where it is installed, which also takes lambdas and what a notebook defines."""

from __future__ import annotations

import inspect
import os
import pickle
import sys
from typing import Any, Callable

from .. import errors, objects
from .exchange import LOADED


def _by_name(value: Any) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


try:
    from cloudpickle import dumps
except ImportError:
    dumps = _by_name


def dump_call(fn: Callable, args: tuple, kwargs: dict, what: str, dumps: Callable = dumps) -> bytes:
    """The pickle of a call. Raises InvalidArgument, which names the part that cannot be pickled."""
    if (loading := _loading()) is not None:
        raise errors.FailedPrecondition(
            f"{what}: this process is a rank that loads {loading} to find its function, and that file calls {what} again; put the "
            'call under `if __name__ == "__main__":`'
        )
    if not callable(fn):
        raise errors.InvalidArgument(f"{what}: {fn!r} is not a function; pass the function itself, not what it returns")
    try:
        return dumps((fn, tuple(args), dict(kwargs)))
    except Exception as failure:
        place, part, reason = _culprit(fn, args, kwargs, failure, dumps)
        kind = f"{type(part).__module__}.{type(part).__qualname__}"
        raise errors.InvalidArgument(
            f"{what}: {place} ({kind}) cannot be pickled: {objects.reason_of(reason)}; {_advice(part)}"
        ) from failure


def main_file(fn: Callable) -> str | None:
    """The script that ranks have to load to find `fn`: pickle writes only its name."""
    if dumps is not _by_name or getattr(fn, "__module__", None) not in ("__main__", LOADED):
        return None
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is None or not os.path.isfile(file):  # "<stdin>" is none
        raise errors.InvalidArgument(
            f"dtrun.run: {fn.__qualname__} is defined in a notebook, at a prompt or on stdin, where ranks cannot find it; install "
            "cloudpickle (pip install cloudpickle), or define it in a module"
        )
    return file


def _loading() -> str | None:
    """The script that this rank loads just now, to find its function there."""
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
