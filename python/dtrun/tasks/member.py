"""The code of a platform's task (Spark, Ray) that is one host of a job, with one rank."""

from __future__ import annotations

import errno
import json
import os
import random
import socket
import sys
import traceback
from typing import Callable, NamedTuple

from ..functions import launch, process
from ..functions.exchange import Call, Exchange
from .channel import Speaker

PORTS = (20000, 32768)
HOST = "${DTRUN_NODE_RANK}"  # dtrun puts the host's number there


class Job(NamedTuple):
    """The data that the driver sends to every task."""

    data: bytes  # the pickle of the call
    tasks: int
    options: tuple  # of dtrun's command line
    env: dict
    driver: tuple  # address of the channel
    name: str  # of this call, unique
    key: str  # 64 hex digits


class NotStarted(RuntimeError):
    """The job could not start; the driver has the reason."""


def take_part(job: Job, index: int, root: Callable[[], str], devices: Callable[[], dict]) -> bytes | None:
    """The pickle of the rank's result. None if the job failed; the driver has the reason.

    root: ADDRESS:PORT of task 0, where the others join; may wait for them
    devices: the variables that show this task's GPUs
    """
    speaker = Speaker(job.driver, bytes.fromhex(job.key))
    try:
        return _result(job, index, root, devices, speaker)
    except NotStarted:
        raise
    except Exception:
        speaker.send(b"f", json.dumps({"host": index, "code": 2, "printed": traceback.format_exc()}))
        raise
    finally:
        speaker.close()


def _result(job: Job, index: int, root: Callable, devices: Callable, speaker: Speaker) -> bytes | None:
    folder = f"/tmp/{job.name}-"  # the same on every host, but for the host's number
    os.mkdir(f"{folder}{index}", mode=0o700)
    with process.going_with_us(f"{folder}{index}") as here:
        exchange = Exchange(here)
        exchange.put_call(Call(launch.search_path(), None, job.data, os.getcwd(), devices()))
        options = [*job.options, *exchange.options(), *cluster_words(job.tasks, index, root())]
        words = [process.find_dtrun(), "run", "-q", *options, "--", sys.executable, launch.RANK, folder + HOST]
        environment = {**os.environ, **job.env, "DTRUN_CLUSTER_KEY": job.key}
        streams = {"stdout": speaker.stream(b"o"), "stderr": speaker.stream(b"e")}
        code, printed = process.execute(words, environment, streams)
        generation = exchange.began(index)
        result = exchange.result(generation, index) if code == 0 else None
        if result is not None:
            return result
        if code == 0 and generation is not None:
            speaker.send(b"f", json.dumps({"host": index, "code": 0}))
            return None
        verdict = exchange.verdict() if index == 0 else None
        said = {"host": index, "code": code, "printed": process.said(words[0], printed), "verdict": verdict}
        speaker.send(b"f", json.dumps({**said, "generation": generation, "trace": exchange.failure(generation, index)}))
        if index == 0 and verdict is None:
            raise NotStarted("dtrun could not start the job; the driver says why")  # the platform ends the tasks that wait for it
        return None


def cluster_words(tasks: int, index: int, root: str) -> list[str]:
    """Arguments of dtrun's command line that make this task a host of the job."""
    options = {"connect": "manual", "host_count": tasks, "root": root, "oversubscribe": "true"}
    words = [word for key, value in options.items() for word in ("--set", f"cluster.{key}={value}")]
    return ["--host-index", str(index), "--set", "job.processes_per_host=1", "--set", "job.cwd=/tmp", *words]


def endpoint(address: str, port: int | str) -> str:
    """ADDRESS:PORT, with brackets around an IPv6 address."""
    return f"[{address}]:{port}" if ":" in address and not address.startswith("[") else f"{address}:{port}"


def free_port() -> int:
    """A port for the root, below the kernel's ephemeral ports, so that no other program gets it by chance before dtrun listens."""
    while True:
        port = random.randrange(*PORTS)
        with socket.socket() as free:
            try:
                free.bind(("", port))
            except OSError as failure:
                if failure.errno != errno.EADDRINUSE:
                    raise
                continue
            return port
