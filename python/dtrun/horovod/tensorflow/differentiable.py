"""Operations that gradients flow through. Those of several tensors start together."""

from typing import Any, List, Optional, Sequence

import tensorflow as tf

from .. import reductions
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average
from ..submit import scatter_factor, submit_arrays
from .bridge import run, spec_of


def allreduce(
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
            return allreduce(gradients, units, [None] * len(units), op, prescale_factor, postscale_factor, process_set)

        return tuple(run(work, xs, [spec_of(x) for x in xs])), back

    return list(reduce(*tensors))


def average(tensor: tf.Tensor, process_set: ProcessSet = global_process_set) -> tf.Tensor:
    return allreduce([tensor], [[0]], [None], Average, process_set=process_set)[0]


def allgather(
    tensors: Sequence[tf.Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[tf.Tensor]:
    if not tensors:
        return []

    def work(*arrays: Any) -> Any:
        return submit_arrays("allgather", list(arrays), None, name, process_set).wait()

    @tf.custom_gradient
    def gather(*xs: tf.Tensor) -> Any:
        results = run(work, xs, [spec_of(x, ragged=True) for x in xs])
        return tuple(results), lambda *gradients: [own_rows(g, tf.shape(x)[0], process_set) for g, x in zip(gradients, xs)]

    return list(gather(*tensors))


def own_rows(gradient: tf.Tensor, rows: tf.Tensor, process_set: ProcessSet) -> tf.Tensor:
    """The gradient of an allgather: the average of all ranks' gradients of this rank's `rows`."""
    averaged = average(gradient, process_set)
    (every,) = allgather([tf.reshape(rows, [1])], None, process_set)
    return averaged[tf.reduce_sum(every[: process_set.rank()]) :][:rows]


def reducescatter(
    tensors: Sequence[tf.Tensor], name: Optional[str], op: int, prescale: float, postscale: float, process_set: ProcessSet
) -> List[tf.Tensor]:
    aspects = {"op": reductions.check(op), "prescale": prescale, "postscale": postscale}
    if not tensors:
        return []

    def work(*arrays: Any) -> Any:
        return submit_arrays("reducescatter", list(arrays), None, name, process_set, **aspects).wait()

    @tf.custom_gradient
    def reduce(*xs: tf.Tensor) -> Any:
        def back(*gradients: tf.Tensor) -> List[tf.Tensor]:
            factor = scatter_factor(op, prescale, postscale, process_set)
            return allgather([g * tf.cast(factor, g.dtype) for g in gradients], None, process_set)

        return tuple(run(work, xs, [spec_of(x, ragged=True) for x in xs])), back

    return list(reduce(*tensors))
