"""The code of a task of the barrier stage."""

from __future__ import annotations

from typing import Any, Iterator

from ..tasks import member


def host(job: member.Job, use_gpu: bool | None) -> Iterator[tuple]:
    """Yields (rank, pickle of its result), or nothing when the job failed."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    index = context.partitionId()

    def root() -> str:
        port = context.allGather(str(member.free_port()))[0]
        return member.endpoint(context.getTaskInfos()[0].address.rsplit(":", 1)[0], port)

    result = member.take_part(job, index, root, lambda: _devices(use_gpu, context))
    if result is not None:
        yield index, result


def _devices(use_gpu: bool | None, context: Any) -> dict:
    """The GPUs that Spark has given this task."""
    gpus = context.resources().get("gpu")
    if use_gpu is False:
        return {"CUDA_VISIBLE_DEVICES": ""}
    if gpus is None:
        if use_gpu:
            raise RuntimeError("Spark gives this task no GPU; set spark.task.resource.gpu.amount, or pass use_gpu=False")
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus.addresses)}
