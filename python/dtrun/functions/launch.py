"""run(): starts a job in which every rank calls a function. Checks the arguments before anything starts."""

from __future__ import annotations

import functools
import json
import operator
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Callable, Sequence, Union

from .. import errors
from . import pickles, process
from .exchange import LOADED, Call, Exchange

RANK = os.path.join(process.FOLDER, "rank.py")
COUNTED = ("gpu", "cpu", "auto")  # ranks by the hosts' processors or GPUs
Config = Union[str, "os.PathLike[str]", Mapping[str, Any], None]


class JobFailed(errors.Error, id="job.failed"):
    """A job of dtrun.run failed.

    `exit_code`: dtrun's; 2 where the job could not start, 0 where a function did not return and its rank ended well
    `verdict`: verdict.json of the run, a dict; None where the job ended before its ranks ran
    `rank`: the rank that failed first, or None
    `traceback`: the text of that rank's exception, or None where it died without one
    """

    def __init__(self, message: str, exit_code: int, verdict: dict | None = None, rank: int | None = None,
                 traceback: str | None = None) -> None:  # fmt: skip
        super().__init__(message, rank)
        self.exit_code, self.verdict, self.rank, self.traceback = exit_code, verdict, rank, traceback

    def __reduce__(self) -> tuple:
        return JobFailed, (str(self), self.exit_code, self.verdict, self.rank, self.traceback)


def unreturned(what: str, ranks: Sequence[int], verdict: dict | None = None) -> JobFailed:
    """The text for ranks that exited with 0 without a result; None would be a result."""
    who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
    return JobFailed(
        f"{what}: {who} ended with exit code 0 and without a result: the function called sys.exit() or os._exit() there; let it "
        "return on every rank", 0, verdict, ranks[0],
    )  # fmt: skip


def failed(exit_code: int, verdict: dict | None, traceback: str | None, printed: str, why: str = "") -> JobFailed:
    """The exception: the verdict's first line, then the cause as far as it is known.

    why: the message of the platform that started the tasks
    """
    if verdict is None:
        return JobFailed(f"dtrun ended with exit code {exit_code} before the ranks ran:\n{printed.strip()}\n{why}".rstrip(), exit_code)
    # The verdict of an agent that was killed has neither.
    rank, text = verdict.get("first_failed_rank"), (verdict.get("text") or printed).strip()
    if traceback:
        text = f"{text.splitlines()[0]}\n\nRank {rank}:\n{traceback.rstrip()}"
    return JobFailed(f"{text}\n{why}" if why else text, exit_code, verdict, rank, traceback)


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
    if isinstance(args, (str, bytes, Mapping)) or not isinstance(args, Iterable):
        raise _wrong("dtrun.run", "args", args, f"pass a list or tuple of the function's arguments, such as [{args!r}]")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise _wrong("dtrun.run", "kwargs", kwargs, "pass a dict of the function's named arguments")
    named: list = []
    data = pickles.dump_call(fn, tuple(args), dict(kwargs or {}), "dtrun.run", named=named)
    call = Call(search_path(), pickles.main_file(named), data)
    options = [*config_words(config), *_ranks(np)]
    if not isinstance(config, (str, os.PathLike)):
        options[:0] = ["--set", f"job.name={job_name(fn)}"]
    if hosts is not None:
        options += ["--hosts", _hosts(hosts)]
    environment = {**os.environ, **variables("dtrun.run", env)}
    check_options("dtrun.run", options, environment)
    with process.going_with_us(tempfile.mkdtemp(prefix=".dtrun-run-", dir=_shared(hosts, config))) as folder:
        exchange = Exchange(folder)
        exchange.put_call(call)
        return execute(exchange, options if verbose else [*options, "-q"], environment)


def execute(exchange: Exchange, options: Sequence[str], environment: Mapping[str, str]) -> list:
    """Runs dtrun with the function in the exchange. Returns the results."""
    sys.modules.setdefault(LOADED, sys.modules["__main__"])  # results may have classes of this module name
    words = [process.find_dtrun(), "run", *options, *exchange.options(), "--", sys.executable, RANK, exchange.folder]
    code, printed = process.execute(words, environment)
    verdict = exchange.verdict()
    if code != 0 or verdict is None:
        trace = exchange.failure(verdict.get("generation"), verdict.get("first_failed_rank")) if verdict else None
        raise failed(code, verdict, trace, process.said(words[0], printed))
    ranks = [entry["rank"] for entry in verdict["ranks"]]
    results = exchange.results(verdict["generation"], ranks)
    if lacking := [rank for rank in ranks if rank not in results]:
        raise unreturned("dtrun.run", lacking, verdict)
    return [results[rank] for rank in ranks]


def _wrong(what: str, name: str, value: Any, fix: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(f"{what}: {name} is {value!r} ({type(value).__name__}); {fix}")


def variables(what: str, env: Any) -> dict[str, str]:
    """Checks the environment: only what execve accepts."""
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise _wrong(what, "env", env, "pass a dict of variables, such as {'A': '5'}")
    found = {}
    for name, value in env.items():
        if not isinstance(name, str):
            raise errors.InvalidArgument(f"{what}: env has the name {name!r} ({type(name).__name__}); pass a str, such as {str(name)!r}")
        if not name or "=" in name or "\0" in name:
            raise errors.InvalidArgument(f"{what}: env has the name {name!r}; names of variables are not empty, without '=' and NUL")
        try:
            found[name] = text = os.fsdecode(value)  # also of bytes and of a path
        except TypeError:
            raise _wrong(what, f"env[{name!r}]", value, f"pass a str, such as {str(value)!r}") from None
        if "\0" in text:
            raise errors.InvalidArgument(f"{what}: env[{name!r}] is {value!r}; a value of a variable has no NUL byte, take it out")
    return found


def _ranks(np: Any) -> list[str]:
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


def _hosts(given: Any) -> str:
    names = given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [None]
    if all(isinstance(name, str) for name in names):
        return ",".join(names)
    raise errors.InvalidArgument(f"dtrun.run: hosts is {given!r}; pass names such as 'node0,node1:4', or a list of them")


def check_number(what: str, name: str, value: Any) -> int:
    """A number of processes of a platform's job."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise errors.InvalidArgument(f"{what}: {name} is {value!r}; it has to be 1 or more")
    return value


def check_options(what: str, words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raises InvalidArgument with the output of `dtrun config list` if dtrun rejects the options."""
    told = subprocess.run([process.find_dtrun(), "config", "list", *words], env=dict(environment), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False)  # fmt: skip
    if told.returncode == 2:  # the options are wrong; the job reports any other failure
        raise errors.InvalidArgument(f"{what}: {told.stderr.strip().removeprefix('dtrun: ')}")


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
        raise _wrong(what, "config", config, "pass options, such as {'backend.name': 'ucx'}, or the path of a TOML file")
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
            raise _wrong(what, f"config['{prefix}{key}']", value, "options are strings, numbers, booleans and lists")
    return found
