"""SyncBatchNormalization: batch statistics of all ranks' samples."""

from typing import Any, Optional, Tuple

import tensorflow as tf

from ..runtime import size
from .differentiable import average


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """As tf.keras.layers.BatchNormalization, over the samples of all ranks; each rank must have the same number."""

    def __init__(self, fused: Optional[bool] = False, **options: Any) -> None:
        if fused in (True, None):
            raise ValueError(f"SyncBatchNormalization: fused={fused} computes each rank's statistics alone; pass fused=False")
        super().__init__(**options)
        if hasattr(self, "fused"):  # of Keras 2
            self.fused = False

    def _moments(self, inputs: Any, *args: Any, **options: Any) -> Tuple[Any, Any]:
        mean, variance = super()._moments(inputs, *args, **options)
        if size() == 1:
            return mean, variance
        own = tf.stack([mean, variance + tf.square(mean)])  # averages of x and x*x, which may be averaged again
        mean, square = tf.unstack(average(own))
        return mean, square - tf.square(mean)
