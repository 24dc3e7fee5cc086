"""run(): one job on the bundles of a placement group; each bundle is a host."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Sequence

from .. import errors
from ..tasks import member
from ..tasks.driver import Driver


def run(fn: Callable, args: Sequence = (), kwargs: Mapping[str, Any] | None = None, num_proc: int = 1,
        env: Mapping[str, str] | None = None, config: Mapping[str, Any] | None = None, use_gpu: bool = False,
        cpus: float = 1, strategy: str = "PACK", placement_timeout: float = 100) -> list:  # fmt: skip
    """Calls fn(*args, **kwargs) on num_proc ranks, one in each bundle of a placement group, and returns their results by rank.

    env: variables of the ranks
    config: options such as {"backend.name": "ucx"}
    use_gpu: each bundle has a GPU; False hides GPUs from the ranks
    cpus: of each bundle
    strategy: of the placement group: "PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"
    placement_timeout: longest wait for room in the cluster, in seconds

    The output of ranks appears in the driver. Raises JobFailed when the job fails.
    """
    import ray
    from ray import cloudpickle
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    if not ray.is_initialized():
        raise errors.FailedPrecondition("dtrun.ray.run: this process is not connected to Ray; call ray.init() first")
    driver = Driver("dtrun.ray.run", fn, args, kwargs, num_proc, env, config, cloudpickle.dumps)
    bundle = {"CPU": cpus, **({"GPU": 1} if use_gpu else {})}
    group = placement_group([bundle] * num_proc, strategy=strategy)

    def placed(function: Callable, index: int) -> Any:
        where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
        return ray.remote(num_cpus=cpus, num_gpus=int(use_gpu), max_retries=0, scheduling_strategy=where)(function)

    try:
        if not group.wait(placement_timeout):
            raise errors.FailedPrecondition(
                f"dtrun.ray.run: Ray has found no room for {num_proc} bundles of {bundle} ({strategy}) in {placement_timeout} s; "
                f"the cluster has {ray.cluster_resources()}: start fewer, or raise placement_timeout"
            )
        with driver:
            root = ray.get(placed(address, 0).remote())
            job = driver.job(ray.util.get_node_ip_address())
            tasks = [placed(host, index).remote(job, index, root, use_gpu) for index in range(num_proc)]
            try:
                results, cause = _collected(ray, tasks)
            except KeyboardInterrupt:
                remove_placement_group(group)  # ends the tasks; the driver waits for their last output
                raise
    finally:
        remove_placement_group(group)
    return driver.results(results, cause, f"Ray: {cause}" if isinstance(cause, ray.exceptions.WorkerCrashedError) else "")


def _collected(ray: Any, tasks: list) -> tuple[dict, Exception | None]:
    """Results by rank, and the first exception of a task. If a task could not start its host, the tasks that wait for it end. If a
    worker dies, dtrun ends the job."""
    results, cause, waiting = {}, None, list(tasks)
    while waiting:
        done, waiting = ray.wait(waiting)
        try:
            result = ray.get(done[0])
        except ray.exceptions.RayError as failure:
            if cause is None:
                cause = failure
                for task in waiting if isinstance(failure, ray.exceptions.RayTaskError) else ():
                    ray.cancel(task)
            continue
        if result is not None:
            results[tasks.index(done[0])] = result
    return results, cause


def address() -> str:
    import ray

    return member.endpoint(ray.util.get_node_ip_address(), member.free_port())


def host(job: member.Job, index: int, root: str, use_gpu: bool) -> bytes | None:
    """One task: one host."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "") if use_gpu else ""
    return member.take_part(job, index, lambda: root, lambda: {"CUDA_VISIBLE_DEVICES": gpus})
