"""Operations of horovod.tensorflow on one tensor. Each waits for its result, and gradients flow through it.

Ranks may call them in different orders only from different threads, with names. Without a name, the nth operation of a
kind is the same on each rank. `device_dense`, `device_sparse` and `ignore_name_scope` are not used: dtrun's config selects
the transport, and names are used unchanged.
"""

from typing import Any, Optional

import numpy
import tensorflow as tf

from .. import reductions, runtime
from ..compression import compressed
from ..process_sets import ProcessSet, check_root, global_process_set
from ..reductions import Average, Sum
from ..submit import reduction_of, rows_for_each, submit_arrays
from ..submit import join as join_all
from . import differentiable
from .bridge import run, spec_of, tensor_of
from .compression import Compression


def allreduce(
    tensor: Any, average: Optional[bool] = None, device_dense: str = "", device_sparse: str = "",
    compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    name: Optional[str] = None, process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
) -> Any:  # fmt: skip
    """postscale_factor * reduction over the ranks of prescale_factor * tensor.

    For a tf.IndexedSlices: the rows of all ranks, which represent their sum; `op` must be Sum or Average.
    """
    op = reduction_of(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        return _allreduce_slices(tensor, op, prescale_factor, postscale_factor, name, process_set)
    given = ([[0]], [name], op, prescale_factor, postscale_factor, process_set)
    return compressed(compression, [tensor_of("allreduce", tensor)], lambda some: differentiable.allreduce(some, *given))[0]


def _allreduce_slices(
    slices: tf.IndexedSlices, op: int, prescale: float, postscale: float, name: Optional[str], process_set: ProcessSet
) -> tf.IndexedSlices:
    if op not in (Sum, Average):
        raise NotImplementedError(
            f"allreduce: hvd.{reductions.NAMES[op]} of tf.IndexedSlices; Sum and Average have a meaning there, or pass "
            "tf.convert_to_tensor(tensor) (sparse_as_dense=True of an optimizer)"
        )
    if prescale != 1.0 or postscale != 1.0:
        raise NotImplementedError("allreduce: scale factors of tf.IndexedSlices; scale its values yourself")
    values = allgather(slices.values, name and f"{name}.values", process_set=process_set)
    indices = allgather(slices.indices, name and f"{name}.indices", process_set=process_set)
    if op == Average:
        values /= tf.cast(process_set.size(), values.dtype)
    return tf.IndexedSlices(values, indices, slices.dense_shape)


def allgather(
    tensor: Any, name: Optional[str] = None, ignore_name_scope: bool = False, process_set: ProcessSet = global_process_set
) -> tf.Tensor:
    """The rows of every rank's tensor, in the order of ranks; their numbers may differ."""
    return differentiable.allgather([tensor_of("allgather", tensor)], name, process_set)[0]


def broadcast(
    tensor: Any, root_rank: int, name: Optional[str] = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> tf.Tensor:  # fmt: skip
    """The tensor of `root_rank`, a rank of the job, on every rank."""
    check_root("broadcast", root_rank, process_set)

    @tf.custom_gradient
    def send(x: tf.Tensor) -> Any:
        work = lambda array: submit_arrays("broadcast", [array], None, name, process_set, root=root_rank).wait()  # noqa: E731
        (result,) = run(work, [x], [spec_of(x)])

        def back(gradient: tf.Tensor) -> tf.Tensor:
            averaged = differentiable.average(gradient, process_set)
            return averaged if runtime.rank() == root_rank else tf.zeros_like(averaged)

        return result, back

    return send(tensor_of("broadcast", tensor))


def alltoall(
    tensor: Any, splits: Any = None, name: Optional[str] = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """splits[r] rows of tensor go to rank r, in order; equal parts without splits. Gives the rows received.

    With splits it gives a pair: the rows, and how many came from each rank.
    """
    given = [] if splits is None else [tf.convert_to_tensor(splits)]
    if given and not given[0].dtype.is_integer:
        raise ValueError(f"alltoall: splits is a tensor of {given[0].dtype.name}; pass whole numbers")

    def work(array: Any, rows: Any = None) -> Any:
        if array.ndim == 0:
            raise ValueError("alltoall: a tensor without dimensions has no rows; pass tf.expand_dims(tensor, 0)")
        chosen = rows_for_each(rows, array.shape[0], process_set.size() or 1)
        request = submit_arrays("alltoall", [array[: sum(chosen)]], None, name, process_set, splits=chosen)
        result, received = request.wait()
        return [result, numpy.array(received, numpy.int32)]

    @tf.custom_gradient
    def exchange(x: tf.Tensor) -> Any:
        spec = tf.TensorSpec([None], tf.int32)
        result, received = run(work, [x, *given], [spec_of(x, ragged=True), spec])

        def back(gradient: tf.Tensor, _: Any) -> tf.Tensor:
            rows, _ = alltoall(gradient, received, process_set=process_set)
            unsent = tf.shape(x)[0] - tf.shape(rows)[0]
            return tf.pad(rows, [[0, unsent]] + [[0, 0]] * (x.shape.rank - 1))

        return (result, received), back

    result, received = exchange(tensor_of("alltoall", tensor))
    return result if splits is None else (result, received)


def reducescatter(
    tensor: Any, device_dense: str = "", compression: Any = Compression.none, op: int = Average, name: Optional[str] = None,
    process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> tf.Tensor:  # fmt: skip
    """This rank's rows of the reduction over the ranks; the first ranks get one more where the rows do not divide."""
    given = (name, op, prescale_factor, postscale_factor, process_set)
    values = [tensor_of("reducescatter", tensor)]
    return compressed(compression, values, lambda some: differentiable.reducescatter(some, *given))[0]


def join() -> tf.Tensor:
    """As join() of the other frameworks (../submit.py)."""
    return _number(join_all)


def _number(value: Any) -> tf.Tensor:
    """Calls value() when the graph runs."""
    return run(lambda: [numpy.int32(value())], [], [tf.TensorSpec([], tf.int32)])[0]


def _set_of(process_set_id: int) -> ProcessSet:
    found = runtime.job().sets.get(process_set_id)
    if found is None:
        raise ValueError(f"process_set_id {process_set_id}: there is no such process set; add_process_set() makes one")
    return found


def size_op(process_set_id: int = 0, name: Optional[str] = None) -> tf.Tensor:
    return _number(lambda: _set_of(process_set_id).size())


def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> tf.Tensor:
    return _number(lambda: _set_of(process_set_id).included())


def rank_op(name: Optional[str] = None) -> tf.Tensor:
    return _number(runtime.rank)


def local_rank_op(name: Optional[str] = None) -> tf.Tensor:
    return _number(runtime.local_rank)


def local_size_op(name: Optional[str] = None) -> tf.Tensor:
    return _number(runtime.local_size)
