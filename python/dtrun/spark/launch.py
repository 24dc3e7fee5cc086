"""run(): one job on the tasks of a barrier stage; each task is a host."""

from __future__ import annotations

import contextlib
import re
from typing import Any, Callable, Iterator, Mapping, Sequence

from .. import errors
from ..tasks.driver import Driver
from . import task

GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


def run(fn: Callable, args: Sequence = (), kwargs: Mapping[str, Any] | None = None, num_proc: int | None = None,
        env: Mapping[str, str] | None = None, config: Mapping[str, Any] | None = None, use_gpu: bool | None = None) -> list:  # fmt: skip
    """Calls fn(*args, **kwargs) on num_proc ranks, one in each task of a barrier stage, and returns their results by rank.

    num_proc: by default Spark's default parallelism, the cores of all executors
    env: variables of the ranks
    config: options such as {"backend.name": "ucx"}
    use_gpu: True: a task without a GPU of Spark's is an error; False: ranks see none; None: those that Spark assigns

    The output of ranks appears in the driver. Raises JobFailed when the job fails; Spark does not retry it.
    """
    context = _spark_context()
    from pyspark import cloudpickle  # every executor has it

    num_proc = context.defaultParallelism if num_proc is None else num_proc
    results, cause, why = {}, None, ""
    with Driver("dtrun.spark.run", fn, args, kwargs, num_proc, env, config, cloudpickle.dumps) as driver, _group(context, driver.name):
        job = driver.job(context.getConf().get("spark.driver.host"))
        try:
            stage = context.parallelize(range(num_proc), num_proc).barrier()
            results = dict(stage.mapPartitions(lambda _: task.host(job, use_gpu)).collect())
        except KeyboardInterrupt:
            context.cancelJobGroup(driver.name)
            raise
        except Exception as failure:  # the tasks report the reason, except those that Spark has lost
            lost = re.search(r"ExecutorLostFailure .*", str(failure))
            cause, why = failure, f"Spark: {lost.group()}" if lost else ""
    return driver.results(results, cause, why)


def _spark_context() -> Any:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is None:
        raise errors.FailedPrecondition(
            "dtrun.spark.run: no Spark session is active in this process; make one first: "
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
