"""Operations on several tensors that start together: one name, one agreement."""

from typing import Iterable, List, Optional, Sequence, Type

import torch

from ..compression import compressed
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average, check
from ..submit import reduction_of
from . import differentiable
from .compression import Compression, Compressor
from .submit import Handle, submit, tensor_of


def _several(tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    if isinstance(tensors, torch.Tensor) or not isinstance(tensors, Iterable):
        raise ValueError(f"a grouped operation: tensors is a {type(tensors).__name__}; pass a list of torch tensors")
    tensors = [tensor_of("a grouped operation", tensor, f"tensors[{i}]") for i, tensor in enumerate(tensors)]
    if not tensors:
        raise ValueError("a grouped operation without tensors; pass one or more")
    return tensors


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """As allreduce_async of each; gives a list."""
    tensors = _several(tensors)
    outputs = [torch.empty_like(tensor, requires_grad=False) for tensor in tensors]
    return _allreduce(tensors, outputs, average, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    tensors = _several(tensors)
    return _allreduce(tensors, tensors, average, name, op, prescale_factor, postscale_factor, process_set)


def _allreduce(tensors, outputs, average, name, op, prescale, postscale, process_set) -> Handle:  # type: ignore[no-untyped-def]
    return submit(
        "allreduce", tensors, outputs, name=name, op=reduction_of(op, average), prescale=prescale,
        postscale=postscale, process_set=process_set, unpack=list,
    )  # fmt: skip


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Type[Compressor] = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    given = (name, reduction_of(op, average), prescale_factor, postscale_factor, process_set)
    return compressed(compression, _several(tensors), lambda tensors: differentiable.allreduce(tensors, *given))


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    results = grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set).wait()
    return list(results)


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Handle:
    return submit("allgather", _several(tensors), name=name, process_set=process_set, unpack=list)


def grouped_allgather(
    tensors: Sequence[torch.Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[torch.Tensor]:
    return differentiable.allgather(_several(tensors), name, process_set)


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    return submit(
        "reducescatter", _several(tensors), name=name, op=check(op), prescale=prescale_factor,
        postscale=postscale_factor, process_set=process_set, unpack=list,
    )  # fmt: skip


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    compression: Type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[torch.Tensor]:
    given = (name, check(op), prescale_factor, postscale_factor, process_set)
    return compressed(compression, _several(tensors), lambda tensors: differentiable.reducescatter(tensors, *given))
