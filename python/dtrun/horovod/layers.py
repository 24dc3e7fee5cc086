"""Layers: the tensor functions of each library for the controller's thread.

A layer is a module. The kind of device in a signature selects it: NUMPY for numpy arrays, which the TensorFlow API submits,
and "cpu" or "cuda" for torch's tensors. So a rank that has joined can make zeros of the others' tensors.
"""

from typing import Any, Callable, List, Protocol, Sequence

from .request import Request
from .signature import Signature

NUMPY = "numpy"


class Layer(Protocol):
    """In place: the result is in the first argument."""

    def itemsize(self, dtype: str) -> int: ...

    def zeros(self, shape: Sequence[int], dtype: str, device: str) -> Any: ...

    def empty(self, like: Any, shape: Sequence[int]) -> Any: ...

    def copy(self, tensor: Any) -> Any: ...

    def assign(self, tensor: Any, value: Any) -> None:
        """In place, of another shape with as many elements too."""

    def is_floating(self, tensor: Any) -> bool: ...

    def flatten(self, tensors: List[Any]) -> Any:
        """One new tensor with the elements of all, which are of one type."""

    def slice(self, flat: Any, begin: int, end: int) -> Any: ...

    def scale(self, tensor: Any, factor: float) -> None:
        """In place; whole numbers in double precision and cut, 16-bit ones in single."""

    def divide(self, tensor: Any, divisor: int) -> None:
        """In place, of whole numbers, which are cut."""

    def combine(self, result: Any, low: Any, high: Any) -> None:
        """Adasum of two gradients: their sum, each minus half of its projection on the other."""

    def run(self, requests: List[Request], work: Callable[[], List[Any]]) -> List[Any]:
        """work(), after what was queued on a device when `requests` were submitted; ends with the device."""


def layer_of(signature: Signature) -> Layer:
    if not signature.tensors or signature.tensors[0][2] == NUMPY:
        from . import arrays

        return arrays
    from .torch import tensors

    return tensors
