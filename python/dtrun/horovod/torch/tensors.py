"""The layer of torch's tensors; see layers.py."""

import functools
from typing import Any, Callable, List, Sequence

import torch

from ..request import Request


@functools.lru_cache(maxsize=None)
def itemsize(dtype: str) -> int:
    return torch.empty((), dtype=getattr(torch, dtype)).element_size()


def zeros(shape: Sequence[int], dtype: str, device: str) -> torch.Tensor:
    return torch.zeros(shape, dtype=getattr(torch, dtype), device=device)


def empty(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    return like.new_empty(shape)


def copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone()


def assign(tensor: torch.Tensor, value: torch.Tensor) -> None:
    tensor.copy_(value.view(tensor.shape))


def is_floating(tensor: torch.Tensor) -> bool:
    return tensor.dtype.is_floating_point


def flatten(tensors: List[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def slice(flat: torch.Tensor, begin: int, end: int) -> torch.Tensor:
    return flat[begin:end]


def scale(tensor: torch.Tensor, factor: float) -> None:
    if not tensor.dtype.is_floating_point:
        tensor.copy_(tensor.double() * factor)
    elif tensor.element_size() == 2:
        tensor.copy_(tensor.float() * factor)
    else:
        tensor.mul_(factor)


def divide(tensor: torch.Tensor, divisor: int) -> None:
    tensor.copy_(torch.div(tensor, divisor, rounding_mode="trunc"))


def combine(result: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> None:
    a, b = low.double(), high.double()
    common = (a * b).sum()
    a_squared, b_squared = (a * a).sum(), (b * b).sum()
    one = torch.ones_like(common)
    of_a = torch.where(a_squared > 0, 1 - common / (2 * a_squared), one)
    of_b = torch.where(b_squared > 0, 1 - common / (2 * b_squared), one)
    result.copy_(of_a * a + of_b * b)


def run(requests: List[Request], work: Callable[[], List[Any]]) -> List[Any]:
    with torch.no_grad():
        ready = [event for request in requests for event in [request.ready] if event is not None]
        if not ready:
            return work()
        kind: Any = torch.cuda.Stream
        stream = kind(requests[0].inputs[0].device)
        with torch.cuda.device(stream.device), torch.cuda.stream(stream):
            for event in ready:
                stream.wait_event(event)
            results = work()
        stream.synchronize()
        return results
