"""run(): a barrier stage whose tasks are the hosts of one job."""

from __future__ import annotations

import contextlib
import pickle
import re
import secrets
from typing import Any, Callable, Iterator, Mapping, Sequence

from .. import errors
from ..functions import launch, pickles
from ..functions.failure import JobFailed, failed
from . import task
from .channel import Listener

GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


def run(fn: Callable, args: Sequence = (), kwargs: Mapping[str, Any] | None = None, num_proc: int | None = None,
        env: Mapping[str, str] | None = None, config: Mapping[str, Any] | None = None, use_gpu: bool | None = None) -> list:  # fmt: skip
    """Calls fn(*args, **kwargs) on num_proc ranks, one in each task of a barrier stage, and returns their results by rank.

    num_proc: by default Spark's default parallelism, the cores of all executors
    env: variables of the ranks
    config: options such as {"backend.name": "ucx"}
    use_gpu: True: a task without a GPU of Spark's is an error; False: ranks see none; None: those that Spark gives

    What ranks print appears in the driver. Raises JobFailed when the job fails; Spark does not repeat it then.
    """
    context = _spark_context()
    num_proc = context.defaultParallelism if num_proc is None else num_proc
    if isinstance(num_proc, bool) or not isinstance(num_proc, int) or num_proc < 1:
        raise errors.InvalidArgument(f"dtrun: dtrun.spark.run: num_proc is {num_proc!r}; it has to be 1 or more")
    from pyspark import cloudpickle  # every executor has it

    data = pickles.dump_call(fn, tuple(args), dict(kwargs or {}), "dtrun.spark.run", cloudpickle.dumps)
    key = secrets.token_hex(32)
    name = f"dtrun-spark-{secrets.token_hex(8)}"
    options = ("--set", f"job.name={launch.job_name(fn)}", *launch.config_words(config))
    with Listener(bytes.fromhex(key)) as channel, _group(context, name):
        driver = (context.getConf().get("spark.driver.host"), channel.port)
        job = task.Job(data, num_proc, options, dict(env or {}), use_gpu, driver, name, key)
        cause = None
        try:
            stage = context.parallelize(range(num_proc), num_proc).barrier().mapPartitions(lambda _: task.host(job))
            results = dict(stage.collect())
        except KeyboardInterrupt:
            context.cancelJobGroup(name)
            raise
        except Exception as failure:  # of Spark; the tasks may have said why
            results, cause = {}, failure
    if len(results) != num_proc:
        raise _failure(channel.failures, cause) from cause
    return [pickle.loads(results[rank]) for rank in range(num_proc)]


def _failure(said: list, cause: Exception | None) -> JobFailed:
    if not said:
        return JobFailed(f"dtrun: dtrun.spark.run: Spark ended the tasks, and none has said why: {cause or 'see its log'}", 1)
    root = min(said, key=lambda one: one["host"])
    verdict = root.get("verdict")
    trace = next((one.get("trace") for one in said if verdict and one["host"] == verdict["first_failed_rank"]), None)
    failure = failed(root["code"], verdict, trace, root["printed"])
    if lost := re.search(r"ExecutorLostFailure .*", str(cause)):
        failure.args = (f"{failure}\nSpark: {lost.group()}",)
    return failure


def _spark_context() -> Any:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is None:
        raise errors.FailedPrecondition(
            "dtrun: dtrun.spark.run: no Spark session is active in this process; make one first: "
            "SparkSession.builder.getOrCreate(); Spark Connect has no barrier stages"
        )
    return SparkContext._active_spark_context


@contextlib.contextmanager
def _group(context: Any, name: str) -> Iterator[None]:
    """Spark's job group of this call, so that Ctrl-C cancels it alone."""
    before = {key: context.getLocalProperty(key) for key in GROUP}
    context.setJobGroup(name, "dtrun.spark.run", interruptOnCancel=True)
    try:
        yield
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)
