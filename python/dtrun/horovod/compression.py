"""Compression of gradients between ranks: the part that is the same for torch and TensorFlow."""

from typing import Any, Callable, List, Sequence, Tuple


class Compressor:
    """Converts tensors for transport. Subclass it for your own compression."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """The tensor to send, and what decompress() needs."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        raise NotImplementedError


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor


def compressed(compression: Any, tensors: Sequence[Any], operation: Callable[[List[Any]], Sequence[Any]]) -> List[Any]:
    """The results of an operation on several tensors, which travel compressed."""
    pairs = [compression.compress(tensor) for tensor in tensors]
    results = operation([tensor for tensor, _ in pairs])
    return [compression.decompress(result, ctx) for result, (_, ctx) in zip(results, pairs)]
