"""Layers: the tensor functions of each library for the controller's thread.

A layer is a module. The kind of device in a signature selects it: NUMPY for numpy arrays, which the TensorFlow API submits,
and "cpu" or "cuda" for torch's tensors. So a rank that has joined can make zeros of the others' tensors.
"""

from typing import Any, Callable, List, Protocol, Sequence

from .request import Request
from .signature import Signature

NUMPY = "numpy"


class Layer(Protocol):
    """The functions. Those without a result work in place, on their first argument."""

    def itemsize(self, dtype: str) -> int: ...

    def zeros(self, shape: Sequence[int], dtype: str, device: str) -> Any: ...

    def empty(self, like: Any, shape: Sequence[int]) -> Any: ...

    def copy(self, tensor: Any) -> Any: ...

    def assign(self, tensor: Any, value: Any) -> None:
        """Copies `value`, which may have another shape with the same number of elements."""

    def is_floating(self, tensor: Any) -> bool: ...

    def flatten(self, tensors: List[Any]) -> Any:
        """One new tensor with the elements of all, which are of one type."""

    def slice(self, flat: Any, begin: int, end: int) -> Any: ...

    def scale(self, tensor: Any, factor: float) -> None:
        """Computes integers in double precision and truncates them; computes 16-bit floats in single precision."""

    def divide(self, tensor: Any, divisor: int) -> None:
        """Divides integers, and truncates."""

    def combine(self, result: Any, low: Any, high: Any) -> None:
        """Adasum of two gradients: their sum, each minus half of its projection on the other."""

    def run(self, requests: List[Request], work: Callable[[], List[Any]]) -> List[Any]:
        """Calls work() after the device work that was queued when `requests` were submitted. Returns when the device has finished."""


def layer_of(signature: Signature) -> Layer:
    if not signature.tensors or signature.tensors[0][2] == NUMPY:
        from . import arrays

        return arrays
    from .torch import tensors

    return tensors
