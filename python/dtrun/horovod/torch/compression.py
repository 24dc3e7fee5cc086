"""Compression of gradients between ranks."""

from typing import Any, Tuple

import torch

from ..compression import Compressor as Compressor
from ..compression import NoneCompressor as NoneCompressor


class FP16Compressor(Compressor):
    """Floating-point tensors travel as float16."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        return (tensor.half() if tensor.dtype.is_floating_point else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor.to(ctx)


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
