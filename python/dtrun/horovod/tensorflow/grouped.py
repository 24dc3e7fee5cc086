"""Operations on several tensors that start together; and lists of gradients, each under its own name."""

from typing import Any, List, Optional, Sequence

import tensorflow as tf

from .. import reductions
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average
from ..submit import reduction_of, submit_arrays
from .bridge import run, several_of, spec_of, tensor_of
from .compression import Compression
from .operations import allgather, allreduce, own_rows, scatter_factor


def _several(kind: str, tensors: Sequence[Any]) -> List[tf.Tensor]:
    return [tensor_of(kind, tensor, f"tensors[{i}]") for i, tensor in enumerate(several_of(kind, tensors))]


def grouped_allreduce(
    tensors: Sequence[Any], average: Optional[bool] = None, device_dense: str = "", device_sparse: str = "",
    compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False, name: Optional[str] = None,
) -> List[Any]:  # fmt: skip
    """As allreduce of each, tf.IndexedSlices too; the dense ones start together."""
    op = reduction_of(op, average)
    scales = {"prescale_factor": prescale_factor, "postscale_factor": postscale_factor}
    tensors = several_of("grouped_allreduce", tensors)
    results = list(tensors)
    dense = [i for i, tensor in enumerate(tensors) if not isinstance(tensor, tf.IndexedSlices)]
    for i in set(range(len(results))) - set(dense):
        results[i] = allreduce(tensors[i], op=op, name=name and f"{name}.{i}", process_set=process_set, **scales)
    compressed = [compression.compress(tensor_of("grouped_allreduce", tensors[i], f"tensors[{i}]")) for i in dense]
    reduced = allreduce_units([t for t, _ in compressed], [range(len(dense))], [name], op, process_set=process_set, **scales)
    for i, tensor, (_, ctx) in zip(dense, reduced, compressed):
        results[i] = compression.decompress(tensor, ctx)
    return results


def allreduce_units(
    tensors: Sequence[tf.Tensor], units: Sequence[Sequence[int]], names: Sequence[Optional[str]], op: int,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
) -> List[tf.Tensor]:  # fmt: skip
    """The reduction of each tensor. The tensors at the places units[i] are one operation, names[i]; all start at once."""
    if not tensors:
        return []
    aspects = {"op": op, "prescale": prescale_factor, "postscale": postscale_factor}

    def work(*arrays: Any) -> List[Any]:
        results = list(arrays)
        requests = [
            submit_arrays("allreduce", [arrays[i] for i in unit], None, name, process_set, **aspects)
            for unit, name in zip(units, names)
        ]
        for unit, request in zip(units, requests):
            for i, result in zip(unit, request.wait()):
                results[i] = result
        return results

    @tf.custom_gradient
    def reduce(*xs: tf.Tensor) -> Any:
        def back(*gradients: tf.Tensor) -> List[tf.Tensor]:
            return allreduce_units(gradients, units, [None] * len(units), op, prescale_factor, postscale_factor, process_set)

        return tuple(run(work, xs, [spec_of(x) for x in xs])), back

    return list(reduce(*tensors))


def grouped_allgather(
    tensors: Sequence[Any], name: Optional[str] = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> List[tf.Tensor]:  # fmt: skip
    @tf.custom_gradient
    def gather(*xs: tf.Tensor) -> Any:
        work = lambda *arrays: submit_arrays("allgather", list(arrays), None, name, process_set).wait()  # noqa: E731
        results = run(work, xs, [spec_of(x, ragged=True) for x in xs])
        return tuple(results), lambda *gradients: [own_rows(g, tf.shape(x)[0], process_set) for g, x in zip(gradients, xs)]

    return list(gather(*_several("grouped_allgather", tensors))) if tensors else []


def grouped_reducescatter(
    tensors: Sequence[Any], device_dense: str = "", compression: Any = Compression.none, op: int = Average,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    name: Optional[str] = None,
) -> List[tf.Tensor]:  # fmt: skip
    aspects = {"op": reductions.check(op), "prescale": prescale_factor, "postscale": postscale_factor}

    @tf.custom_gradient
    def reduce(*xs: tf.Tensor) -> Any:
        def work(*arrays: Any) -> List[Any]:
            return submit_arrays("reducescatter", list(arrays), None, name, process_set, **aspects).wait()

        results = run(work, xs, [spec_of(x, ragged=True) for x in xs])

        def back(*gradients: tf.Tensor) -> List[tf.Tensor]:
            factor = scatter_factor(op, prescale_factor, postscale_factor, process_set)
            return [allgather(g * tf.cast(factor, g.dtype), process_set=process_set) for g in gradients]

        return tuple(results), back

    if not tensors:
        return []
    compressed = [compression.compress(tensor) for tensor in _several("grouped_reducescatter", tensors)]
    return [compression.decompress(result, ctx) for result, (_, ctx) in zip(reduce(*(t for t, _ in compressed)), compressed)]
