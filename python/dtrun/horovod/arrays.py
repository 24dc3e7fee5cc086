"""The layer for numpy arrays; see layers.py. TensorFlow's host tensors are such arrays, also of bfloat16."""

import functools
from typing import Any, Callable, List, Sequence

try:
    import numpy
except ImportError:  # a job of torch alone may have none; then only run() is called, of operations without tensors
    pass

from .request import Request


@functools.lru_cache(maxsize=None)
def dtype_of(name: str) -> Any:
    try:
        return numpy.dtype(name)
    except TypeError:  # bfloat16, which is not numpy's own
        import ml_dtypes  # type: ignore[import-not-found,unused-ignore]

        return numpy.dtype(getattr(ml_dtypes, name))


def itemsize(dtype: str) -> int:
    return int(dtype_of(dtype).itemsize)


def zeros(shape: Sequence[int], dtype: str, device: str) -> Any:
    return numpy.zeros(shape, dtype_of(dtype))


def empty(like: Any, shape: Sequence[int]) -> Any:
    return numpy.empty(shape, like.dtype)


def copy(array: Any) -> Any:
    return array.copy()


def assign(array: Any, value: Any) -> None:
    numpy.copyto(array, value.reshape(array.shape))


def is_floating(array: Any) -> bool:
    return bool(array.dtype.kind == "f" or array.dtype.name == "bfloat16")


def flatten(arrays: List[Any]) -> Any:
    return numpy.concatenate([array.reshape(-1) for array in arrays])


def slice(flat: Any, begin: int, end: int) -> Any:
    return flat[begin:end]


def scale(array: Any, factor: float) -> None:
    single = is_floating(array) and array.dtype.itemsize <= 4
    wide = numpy.float32 if single else numpy.float64
    assign(array, (array.astype(wide) * wide(factor)).astype(array.dtype))


def divide(array: Any, divisor: int) -> None:
    below = (array < 0) & (array % divisor != 0)  # // rounds down; this truncates
    assign(array, (array // divisor + below).astype(array.dtype))


def combine(result: Any, low: Any, high: Any) -> None:
    a, b = low.astype(numpy.float64), high.astype(numpy.float64)
    common, a_squared, b_squared = float((a * b).sum()), float((a * a).sum()), float((b * b).sum())
    a *= 1 - common / (2 * a_squared) if a_squared > 0 else 1
    b *= 1 - common / (2 * b_squared) if b_squared > 0 else 1
    assign(result, (a + b).astype(result.dtype))


def run(requests: List[Request], work: Callable[[], List[Any]]) -> List[Any]:
    return work()
