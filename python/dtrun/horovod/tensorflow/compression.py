"""Compression of gradients between ranks."""

from typing import Any, Tuple

import tensorflow as tf

from ..compression import Compressor as Compressor
from ..compression import NoneCompressor as NoneCompressor


class FP16Compressor(Compressor):
    """Floating-point tensors travel as float16."""

    @staticmethod
    def compress(tensor: tf.Tensor) -> Tuple[tf.Tensor, Any]:
        dtype = tf.as_dtype(tensor.dtype)
        return (tf.cast(tensor, tf.float16) if dtype.is_floating else tensor), dtype

    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: Any) -> tf.Tensor:
        return tf.cast(tensor, ctx) if ctx.is_floating else tensor


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
