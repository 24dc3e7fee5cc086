"""Reductions: op, average and scale factors, several tensors as one, Adasum."""

import math
from typing import Any, List, Tuple

from ..communicator import Communicator
from .layers import Layer
from .reductions import Adasum, Average, Max, Min, Product, Sum
from .signature import Signature

_OPS = {Sum: "sum", Min: "min", Max: "max", Product: "prod"}


def allreduce(comm: Communicator, layer: Layer, signature: Signature, inputs: List[Any], outputs: List[Any]) -> None:
    """outputs = reduction of inputs over the ranks. The tensors of a fused batch have one type."""
    if len(inputs) == 1 or signature.op == Adasum or len({tensor.dtype for tensor in inputs}) > 1:
        for tensor, output in zip(inputs, outputs):
            _reduce(comm, layer, signature, tensor, output)
        return
    flat = layer.flatten(inputs)
    _reduce(comm, layer, signature, flat, flat)
    begin = 0
    for output in outputs:
        end = begin + math.prod(output.shape)
        layer.assign(output, layer.slice(flat, begin, end))
        begin = end


def _reduce(comm: Communicator, layer: Layer, signature: Signature, tensor: Any, output: Any) -> None:
    if signature.prescale != 1.0 or signature.op == Adasum:
        if output is not tensor:
            layer.assign(output, tensor)
        tensor = output
        _scale(layer, tensor, signature.prescale)
    if signature.op == Adasum:
        _adasum(comm, layer, output)
        _scale(layer, output, signature.postscale)
        return
    op, divisor = _op(layer, signature, tensor, comm.size)
    comm.allreduce(tensor, None if output is tensor else output, op)
    _finish(layer, output, divisor, signature.postscale)


def _op(layer: Layer, signature: Signature, tensor: Any, size: int) -> Tuple[str, int]:
    """The operation of the communicator, and the remaining divisor."""
    if signature.op != Average:
        return _OPS[signature.op], 1
    if layer.is_floating(tensor) and signature.postscale == 1.0:
        return "avg", 1
    return "sum", size


def _finish(layer: Layer, tensor: Any, divisor: int, factor: float) -> None:
    if divisor != 1 and not layer.is_floating(tensor):
        layer.divide(tensor, divisor)
        divisor = 1
    _scale(layer, tensor, factor / divisor)


def _scale(layer: Layer, tensor: Any, factor: float) -> None:
    if factor != 1.0:
        layer.scale(tensor, factor)


def _adasum(comm: Communicator, layer: Layer, tensor: Any) -> None:
    """In place, by recursive doubling: pairs of ranks combine their values, then pairs of pairs, and so on.

    Maleki et al., Scaling Distributed Training with Adaptive Summation, 2020. Both of a pair compute the same, in the same
    order, so all ranks end with the same bits.
    """
    distance = 1
    while distance < comm.size:
        peer = comm.rank ^ distance
        other = layer.empty(tensor, tensor.shape)
        with comm.group():
            comm.send(tensor, peer)
            comm.recv(other, peer)
        low, high = (tensor, other) if comm.rank < peer else (other, tensor)
        layer.combine(tensor, low, high)
        distance *= 2


def reduce_scatter(comm: Communicator, layer: Layer, signature: Signature, tensor: Any) -> Any:
    """This rank's rows of the reduction; the first ranks get one more where the rows do not divide."""
    if signature.prescale != 1.0:
        tensor = layer.copy(tensor)
        layer.scale(tensor, signature.prescale)
    whole, more = divmod(tensor.shape[0], comm.size)
    rows = [whole + (rank < more) for rank in range(comm.size)]
    width = math.prod(tensor.shape[1:])
    result = layer.empty(tensor, (rows[comm.rank], *tensor.shape[1:]))
    op, divisor = _op(layer, signature, tensor, comm.size)
    comm.reduce_scatter(tensor, result, op, [row * width for row in rows])
    _finish(layer, result, divisor, signature.postscale)
    return result
