"""Operations on several tensors that start together."""

from typing import Any, List, Optional, Sequence

import tensorflow as tf

from ..compression import compressed
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average
from ..submit import reduction_of
from . import differentiable
from .bridge import several_of, tensor_of
from .compression import Compression
from .operations import allreduce


def _several(kind: str, tensors: Sequence[Any]) -> List[tf.Tensor]:
    return [tensor_of(kind, tensor, f"tensors[{i}]") for i, tensor in enumerate(several_of(kind, tensors))]


def grouped_allreduce(
    tensors: Sequence[Any], average: Optional[bool] = None, device_dense: str = "", device_sparse: str = "",
    compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False, name: Optional[str] = None,
) -> List[Any]:  # fmt: skip
    """As allreduce of each, tf.IndexedSlices too; the dense ones start together."""
    op = reduction_of(op, average)
    tensors = several_of("grouped_allreduce", tensors)
    results = list(tensors)
    dense = [i for i, tensor in enumerate(tensors) if not isinstance(tensor, tf.IndexedSlices)]
    for i in set(range(len(results))) - set(dense):
        results[i] = allreduce(
            tensors[i], op=op, name=name and f"{name}.{i}", process_set=process_set, prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )  # fmt: skip
    given = ([range(len(dense))], [name], op, prescale_factor, postscale_factor, process_set)
    values = [tensor_of("grouped_allreduce", tensors[i], f"tensors[{i}]") for i in dense]
    for i, result in zip(dense, compressed(compression, values, lambda some: differentiable.allreduce(some, *given))):
        results[i] = result
    return results


def grouped_allgather(
    tensors: Sequence[Any], name: Optional[str] = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> List[tf.Tensor]:  # fmt: skip
    return differentiable.allgather(_several("grouped_allgather", tensors), name, process_set)


def grouped_reducescatter(
    tensors: Sequence[Any], device_dense: str = "", compression: Any = Compression.none, op: int = Average,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    name: Optional[str] = None,
) -> List[tf.Tensor]:  # fmt: skip
    given = (name, op, prescale_factor, postscale_factor, process_set)
    values = _several("grouped_reducescatter", tensors)
    return compressed(compression, values, lambda some: differentiable.reducescatter(some, *given))
