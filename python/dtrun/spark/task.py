"""What a task of the barrier stage does: it is one host of the job, with one rank."""

from __future__ import annotations

import errno
import json
import os
import random
import socket
import sys
import traceback
from typing import Any, Iterator, NamedTuple

from ..functions import launch, process, program
from ..functions.exchange import Call, Exchange
from ..functions.folder import going_with_us
from .channel import Speaker

PORTS = (20000, 32768)
HOST = "${DTRUN_NODE_RANK}"  # dtrun puts the host's number there


class Job(NamedTuple):
    """What the driver tells every task."""

    data: bytes  # the pickle of the call
    tasks: int
    options: tuple  # of dtrun's command line
    env: dict
    use_gpu: Any  # None: where Spark gives the task GPUs
    driver: tuple  # address of the channel
    name: str  # of this call, unique
    key: str  # 64 hex digits


class NotStarted(RuntimeError):
    """The driver has been told."""


def host(job: Job) -> Iterator[tuple]:
    """Yields (rank, pickle of its result), or nothing when the job failed: the driver has heard why."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    speaker = Speaker(job.driver, bytes.fromhex(job.key))
    try:
        result = _result(job, context, speaker)
    except NotStarted:
        raise
    except Exception:
        speaker.send(b"f", json.dumps({"host": context.partitionId(), "code": 2, "printed": traceback.format_exc()}))
        raise
    finally:
        speaker.close()
    if result is not None:
        yield context.partitionId(), result


def _result(job: Job, context: Any, speaker: Speaker) -> bytes | None:
    index = context.partitionId()
    folder = f"/tmp/{job.name}-"  # the same on every host, but for the host's number
    os.mkdir(f"{folder}{index}", mode=0o700)
    with going_with_us(f"{folder}{index}") as here:
        exchange = Exchange(here)
        exchange.put_call(Call(launch.search_path(), None, job.data, os.getcwd(), _devices(job, context)))
        port = context.allGather(str(_port()))[0]
        root = context.getTaskInfos()[0].address.rsplit(":", 1)[0]
        words = [program.find(), "run", "-q", *job.options, *_cluster(job, index, f"{root}:{port}")]
        code, printed = process.execute(
            [*words, "--", sys.executable, launch.RANK, folder + HOST], {**os.environ, **job.env, "DTRUN_CLUSTER_KEY": job.key},
            {"stdout": speaker.stream(b"o"), "stderr": speaker.stream(b"e")})  # fmt: skip
        if code == 0:
            return exchange.last_result(index)
        verdict = exchange.verdict() if index == 0 else None
        said = {"host": index, "code": code, "printed": printed, "verdict": verdict, "trace": exchange.last_failure(index)}
        speaker.send(b"f", json.dumps(said))
        if index == 0 and verdict is None:
            raise NotStarted("dtrun could not start the job; the driver says why")  # Spark ends the tasks that wait for it
        return None


def _cluster(job: Job, index: int, root: str) -> list:
    options = {"connect": "manual", "host_count": job.tasks, "root": root, "oversubscribe": "true"}
    words = [word for key, value in options.items() for word in ("--set", f"cluster.{key}={value}")]
    return ["--host-index", str(index), "--set", "job.processes_per_host=1", "--set", "job.cwd=/tmp", *words]


def _port() -> int:
    """A port for the root. Below those that the kernel gives out, so that nobody else gets it by chance before dtrun listens."""
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


def _devices(job: Job, context: Any) -> dict:
    """The GPUs that Spark has given this task."""
    gpus = context.resources().get("gpu")
    if job.use_gpu is False:
        return {"CUDA_VISIBLE_DEVICES": ""}
    if gpus is None:
        if job.use_gpu:
            raise RuntimeError("Spark gives this task no GPU; set spark.task.resource.gpu.amount, or pass use_gpu=False")
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus.addresses)}
