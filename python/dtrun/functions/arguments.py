"""The arguments of run(), checked before anything starts."""

from __future__ import annotations

import operator
import os
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any, Sequence

from .. import errors
from . import program

COUNTED = ("gpu", "cpu", "auto")  # ranks by the hosts' processors or GPUs


def positional(args: Any) -> tuple:
    if isinstance(args, (str, bytes, Mapping)) or not isinstance(args, Iterable):
        raise errors.InvalidArgument(
            f"dtrun.run: args is {args!r} ({type(args).__name__}); pass a list or tuple of the function's arguments, such as [{args!r}]"
        )
    return tuple(args)


def named(kwargs: Any) -> dict:
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise errors.InvalidArgument(
            f"dtrun.run: kwargs is {kwargs!r} ({type(kwargs).__name__}); pass a dict of the function's named arguments"
        )
    return dict(kwargs or {})


def variables(what: str, env: Any) -> dict[str, str]:
    """Checks the environment: only what execve accepts."""
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise errors.InvalidArgument(f"{what}: env is {env!r} ({type(env).__name__}); pass a dict of variables, such as {{'A': '5'}}")
    found = {}
    for name, value in env.items():
        if not isinstance(name, str):
            raise errors.InvalidArgument(f"{what}: env has the name {name!r} ({type(name).__name__}); pass a str, such as {str(name)!r}")
        if not name or "=" in name or "\0" in name:
            raise errors.InvalidArgument(f"{what}: env has the name {name!r}; names of variables are not empty, without '=' and NUL")
        try:
            found[name] = text = os.fsdecode(value)  # also of bytes and of a path
        except TypeError:
            raise errors.InvalidArgument(
                f"{what}: env[{name!r}] is {value!r} ({type(value).__name__}); pass a str, such as {str(value)!r}"
            ) from None
        if "\0" in text:
            raise errors.InvalidArgument(f"{what}: env[{name!r}] is {value!r}; a value of a variable has no NUL byte, take it out")
    return found


def ranks(np: Any) -> list[str]:
    """The arguments of dtrun's command line for these options."""
    if np is None:
        return []
    if isinstance(np, str) and (np in COUNTED or (np.isdecimal() and int(np) > 0)):
        return ["-n", np]
    if hasattr(np, "__index__") and not isinstance(np, bool) and operator.index(np) > 0:
        return ["-n", str(operator.index(np))]
    raise errors.InvalidArgument(
        f"dtrun.run: np is {np!r}; pass how many ranks the job has, 1 or more, or 'gpu', 'cpu' or 'auto' for one for each GPU or core"
    )


def hosts(given: Any) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, Iterable):
        names = list(given)
        if all(isinstance(name, str) for name in names):
            return ",".join(names)
    raise errors.InvalidArgument(f"dtrun.run: hosts is {given!r}; pass names such as 'node0,node1:4', or a list of them")


def check_options(what: str, words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raises InvalidArgument with the output of `dtrun config list` if dtrun rejects the options."""
    told = subprocess.run([program.find(), "config", "list", *words], env=dict(environment), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False)  # fmt: skip
    if told.returncode == 2:  # the options are wrong; the job reports any other failure
        raise errors.InvalidArgument(f"{what}: {told.stderr.strip().removeprefix('dtrun: ')}")
