"""The driver of a job in a platform's tasks: sends them the call, prints their output, and returns results or the failure."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import Any, Callable, Sequence

from .. import errors
from ..functions import launch, pickles, process
from ..functions.exchange import load_result
from ..functions.launch import JobFailed, failed, unreturned
from . import member
from .channel import Listener


class Driver:
    """One call, on `num_proc` tasks. A context manager; the driver listens to the tasks inside the block."""

    def __init__(self, what: str, fn: Callable, args: Sequence, kwargs: Mapping[str, Any] | None, num_proc: Any,
                 env: Mapping[str, str] | None, config: Mapping[str, Any] | None, dumps: Callable) -> None:  # fmt: skip
        if config is not None and not isinstance(config, Mapping):
            raise errors.InvalidArgument(f"{what}: config is {config!r}; pass options, such as {{'backend.name': 'ucx'}}")
        self.what, self.num_proc, self.env = what, launch.check_number(what, "num_proc", num_proc), launch.variables(what, env)
        self.data = pickles.dump_call(fn, tuple(args), dict(kwargs or {}), what, dumps)
        self.options = ("--set", f"job.name={launch.job_name(fn)}", *launch.config_words(config, what))
        self._check_options()
        self.key, self.name = secrets.token_hex(32), f"{what.rsplit('.', 1)[0].replace('.', '-')}-{secrets.token_hex(8)}"

    def _check_options(self) -> None:
        """Checks by the dtrun of this package. If only the executors have dtrun, they report errors."""
        try:
            process.find_dtrun()
        except errors.LibraryError:
            return
        own = {name: value for name, value in os.environ.items() if not name.startswith("DTRUN_CONFIG_")}  # not shipped
        words = [*self.options, *member.cluster_words(self.num_proc, 0, "127.0.0.1:1")]
        launch.check_options(self.what, words, {**own, **self.env})

    def __enter__(self) -> Driver:
        self.channel = Listener(bytes.fromhex(self.key)).__enter__()
        return self

    def __exit__(self, *outcome: object) -> None:
        self.channel.__exit__(*outcome)

    def job(self, address: str) -> member.Job:
        """address: of this machine, as tasks reach it"""
        return member.Job(self.data, self.num_proc, self.options, self.env, (address, self.channel.port), self.name, self.key)

    def results(self, pickled: Mapping[int, bytes], cause: Exception | None, why: str = "") -> list:
        """The results of the ranks, by rank. Call it after the block.

        cause: the platform's exception, if any; why: the platform's reason for ending the tasks, as text
        """
        if len(pickled) == self.num_proc:
            return [load_result(pickled[rank], rank) for rank in range(self.num_proc)]
        raise self._failure(cause, why) from cause

    def _failure(self, cause: Exception | None, why: str) -> JobFailed:
        if not self.channel.failures:
            return JobFailed(f"{self.what}: the tasks ended, and none has said why: {why or cause or 'see their logs'}", 1)
        said = [one for one in self.channel.failures if one.get("printed") is not None]
        if not said:
            return unreturned(self.what, sorted(one["host"] for one in self.channel.failures))
        root = min(said, key=lambda one: one["host"])
        verdict = root.get("verdict")
        return failed(root["code"], verdict, _trace(verdict, said) if verdict else None, root["printed"], why)


def _trace(verdict: Mapping, said: Sequence[Mapping]) -> str | None:
    """The traceback of the rank that failed first, unless it is from before a restart."""
    blamed = verdict.get("generation"), verdict.get("first_failed_rank")
    return next((one.get("trace") for one in said if (one.get("generation"), one["host"]) == blamed), None)
