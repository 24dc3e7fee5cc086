"""Converts between TensorFlow's tensors and requests with numpy arrays.

In eager mode an operation runs when it is called. In a tf.function it becomes a node that runs whenever the function does,
in the order of the program (nodes with side effects have that order), and so in one order on every rank. Every call waits
for its operations: there are no handles. Tensors of GPUs are copied through the host.
"""

from typing import Any, Callable, Iterable, List, Sequence

import numpy
import tensorflow as tf

from ..exceptions import HorovodInternalError

Work = Callable[..., Sequence[Any]]


class OperationError(HorovodInternalError, tf.errors.FailedPreconditionError):
    """The exception in eager mode, for scripts that expect either class. In a tf.function TensorFlow converts it to its own."""

    def __init__(self, message: str) -> None:
        tf.errors.FailedPreconditionError.__init__(self, None, None, message)


class ArgumentError(ValueError, tf.errors.InvalidArgumentError):
    """The error for a mistake that this rank can detect alone."""

    def __init__(self, message: str) -> None:
        tf.errors.InvalidArgumentError.__init__(self, None, None, message)


def run(work: Work, tensors: Sequence[Any], results: Sequence[tf.TensorSpec]) -> List[tf.Tensor]:
    """Calls work() with the arrays of `tensors`, and returns its arrays as tensors with the types and shapes of `results`."""
    if tf.executing_eagerly():
        try:
            found = work(*(numpy.asarray(tensor) for tensor in tensors))
        except HorovodInternalError as failure:
            raise OperationError(str(failure)) from None
        except ValueError as failure:
            raise ArgumentError(str(failure)) from None
        return [tf.convert_to_tensor(array, spec.dtype) for array, spec in zip(found, results)]
    if not tf.compat.v1.get_default_graph().building_function:
        raise NotImplementedError(
            "dtrun: hvd in a graph of TensorFlow 1: operations of a session have no order that is the same on every rank; call "
            "them eagerly or in a tf.function"
        )
    nodes = tf.numpy_function(work, list(tensors), [spec.dtype for spec in results])
    for node, spec in zip(nodes, results):
        node.set_shape(spec.shape)
    return list(nodes)


def spec_of(tensor: Any, ragged: bool = False) -> tf.TensorSpec:
    """The spec of a result like `tensor`. `ragged`: the number of rows may differ."""
    shape = tensor.shape
    if ragged and shape.rank:
        shape = tf.TensorShape([None]).concatenate(shape[1:])
    return tf.TensorSpec(shape, tensor.dtype)


def tensor_of(kind: str, value: Any, argument: str = "tensor") -> tf.Tensor:
    if isinstance(value, tf.IndexedSlices):
        raise ValueError(f"{kind}: {argument} is a tf.IndexedSlices; pass tf.convert_to_tensor(tensor)")
    try:
        return tf.convert_to_tensor(value)
    except (TypeError, ValueError) as failure:
        raise ValueError(
            f"{kind}: {argument} is a {type(value).__name__}, of which TensorFlow makes no tensor ({failure}); pass a tf.Tensor"
        ) from failure


def several_of(kind: str, values: Any, argument: str = "tensors") -> List[Any]:
    """`values` as a list."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ValueError(f"{kind}: {argument} is {values!r} ({type(values).__name__}); pass a list")
    return list(values)
