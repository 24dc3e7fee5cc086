"""MirroredStrategyRunner: spark-tensorflow-distributor's interface over dtrun."""

from __future__ import annotations

from typing import Any, Callable

from ..functions import launch
from .launch import run

CONFIG = {"job.dialects": ["tf-config"]}  # TF_CONFIG of each rank: all are workers, and dtrun holds a port for each


class MirroredStrategyRunner:
    """Runs a function of TensorFlow as num_slots workers of one MultiWorkerMirroredStrategy.

    local_mode: on this machine, as that many processes; else one in each task of a barrier stage of Spark
    use_gpu: each task needs a GPU of Spark's; False hides them
    use_custom_strategy: the function makes its strategy itself, from TF_CONFIG
    """

    def __init__(self, *, num_slots: int, local_mode: bool = False, use_gpu: bool = True, use_custom_strategy: bool = False) -> None:
        self.num_slots = launch.check_number("dtrun: MirroredStrategyRunner", "num_slots", num_slots)
        self.local_mode, self.use_gpu, self.use_custom_strategy = local_mode, use_gpu, use_custom_strategy

    def run(self, train_fn: Callable, **kwargs: Any) -> Any:
        """Runs train_fn(**kwargs) on every worker; returns the result of the first worker, the chief."""
        env = {} if self.use_gpu else {"CUDA_VISIBLE_DEVICES": ""}
        fn, args, named = (train_fn, (), kwargs) if self.use_custom_strategy else (in_strategy, (train_fn, kwargs), {})
        if self.local_mode:
            return launch.run(fn, args, named, np=self.num_slots, config=CONFIG, env=env)[0]
        return run(fn, args, named, num_proc=self.num_slots, config=CONFIG, use_gpu=self.use_gpu)[0]


def in_strategy(train_fn: Callable, kwargs: dict) -> Any:
    import tensorflow as tf

    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        return train_fn(**kwargs)
