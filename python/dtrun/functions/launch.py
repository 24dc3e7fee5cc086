"""run(): starts a job in which every rank calls a function."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, Callable, Sequence, Union

from .. import errors
from . import arguments, pickles, process, program
from .exchange import LOADED, Call, Exchange
from .failure import failed, unreturned
from .folder import going_with_us

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rank.py")
Config = Union[str, "os.PathLike[str]", Mapping[str, Any], None]


def run(fn: Callable, args: Sequence = (), kwargs: Mapping[str, Any] | None = None, np: int | str | None = None,
        hosts: str | Sequence[str] | None = None, config: Config = None, env: Mapping[str, str] | None = None,
        verbose: bool = False) -> list:  # fmt: skip
    """Calls fn(*args, **kwargs) on every rank of a new job, and returns the results by rank.

    np: ranks on all hosts together, or "gpu", "cpu" or "auto"; by default that of the config, else one
    hosts: such as "node0,node1:4" or a list; by default those of the config, else this one
    config: the path of a TOML file, or options such as {"backend.name": "ucx"}
    env: variables of the ranks, over those of this process
    verbose: print dtrun's header too

    The output of ranks appears in sys.stdout and sys.stderr. Raises JobFailed when the job fails, and InvalidArgument when
    the function or an argument cannot be pickled, or an option is wrong. KeyboardInterrupt ends every rank.
    """
    args, kwargs = arguments.positional(args), arguments.named(kwargs)
    named: list = []
    data = pickles.dump_call(fn, args, kwargs, "dtrun.run", named=named)
    call = Call(search_path(), pickles.main_file(named), data)
    options = [*config_words(config), *arguments.ranks(np)]
    if not isinstance(config, (str, os.PathLike)):
        options[:0] = ["--set", f"job.name={job_name(fn)}"]
    if hosts is not None:
        options += ["--hosts", arguments.hosts(hosts)]
    environment = {**os.environ, **arguments.variables("dtrun.run", env)}
    arguments.check_options("dtrun.run", options, environment)
    with going_with_us(tempfile.mkdtemp(prefix=".dtrun-run-", dir=_shared(hosts, config))) as folder:
        exchange = Exchange(folder)
        exchange.put_call(call)
        return execute(exchange, options if verbose else [*options, "-q"], environment)


def execute(exchange: Exchange, options: Sequence[str], environment: Mapping[str, str]) -> list:
    """Runs dtrun with the function in the exchange. Returns the results."""
    sys.modules.setdefault(LOADED, sys.modules["__main__"])  # results may have classes of this module name
    words = [program.find(), "run", *options, *exchange.options(), "--", sys.executable, RANK, exchange.folder]
    code, printed = process.execute(words, environment)
    verdict = exchange.verdict()
    if code != 0 or verdict is None:
        trace = exchange.failure(verdict.get("generation"), verdict.get("first_failed_rank")) if verdict else None
        raise failed(code, verdict, trace, program.said(words[0], printed))
    ranks = [entry["rank"] for entry in verdict["ranks"]]
    results = exchange.results(verdict["generation"], ranks)
    if lacking := [rank for rank in ranks if rank not in results]:
        raise unreturned("dtrun.run", lacking, verdict)
    return [results[rank] for rank in ranks]


def search_path() -> list[str]:
    """sys.path with the working folder as an absolute path."""
    return [path or os.getcwd() for path in sys.path]


def job_name(fn: Callable) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = re.sub(r"\W+", "-", getattr(fn, "__name__", type(fn).__name__), flags=re.ASCII)
    return name.strip("-") or "function"


def _shared(hosts: Any, config: Config) -> str | None:
    """The parent folder of the exchange: the working folder if there may be several hosts, else that of temporary files."""
    if isinstance(config, Mapping):
        config = any(key.split(".")[0] == "cluster" for key in config) or None
    return os.getcwd() if hosts is not None or config is not None else None


def config_words(config: Config, what: str = "dtrun.run") -> Sequence[str]:
    if config is None:
        return []
    if isinstance(config, (str, os.PathLike)):
        return ["--config", os.fspath(config)]
    if not isinstance(config, Mapping):
        raise errors.InvalidArgument(
            f"{what}: config is {config!r} ({type(config).__name__}); pass options, such as {{'backend.name': 'ucx'}}, or the path "
            "of a TOML file"
        )
    return [word for key, value in _flat(what, "", config) for word in ("--set", f"{key}={value}")]


def _flat(what: str, prefix: str, table: Mapping[str, Any]) -> Sequence[tuple]:
    found = []
    for key, value in table.items():
        if not isinstance(key, str):
            raise errors.InvalidArgument(
                f"{what}: config has the name {key!r} ({type(key).__name__}); pass names of options, such as 'backend.name'"
            )
        if "\0" in key or "\0" in str(value):
            raise errors.InvalidArgument(f"{what}: config['{prefix}{key}'] is {value!r}; an option has no NUL byte, take it out")
        if isinstance(value, Mapping):
            found += _flat(what, f"{prefix}{key}.", value)
        elif isinstance(value, str):
            found.append((prefix + key, value))
        elif isinstance(value, (bool, int, float, list, tuple)):
            found.append((prefix + key, json.dumps(value)))
        else:
            raise errors.InvalidArgument(
                f"{what}: config['{prefix}{key}'] is {value!r} ({type(value).__name__}); options are strings, numbers, "
                "booleans and lists"
            )
    return found
