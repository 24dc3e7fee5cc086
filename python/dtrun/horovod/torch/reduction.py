"""Reductions of torch tensors: op, average and scale factors, several tensors as one."""

from typing import List

import torch

from ...communicator import Communicator
from ..reductions import Average, Max, Min, Product, Sum
from ..signature import Signature

_OPS = {Sum: "sum", Min: "min", Max: "max", Product: "prod"}


def allreduce(comm: Communicator, signature: Signature, inputs: List[torch.Tensor], outputs: List[torch.Tensor]) -> None:
    """outputs = reduction of inputs over the ranks. The tensors are of one type if there are several in a fused batch."""
    if len(inputs) == 1:
        _reduce(comm, signature, inputs[0], outputs[0])
        return
    if len({tensor.dtype for tensor in inputs}) > 1:
        for tensor, output in zip(inputs, outputs):
            _reduce(comm, signature, tensor, output)
        return
    flat = torch.cat([tensor.reshape(-1) for tensor in inputs])
    _reduce(comm, signature, flat, flat)
    for output, part in zip(outputs, flat.split([tensor.numel() for tensor in inputs])):
        output.copy_(part.view(output.shape))


def _reduce(comm: Communicator, signature: Signature, tensor: torch.Tensor, output: torch.Tensor) -> None:
    if signature.prescale != 1.0:
        if output is not tensor:
            output.copy_(tensor)
        tensor = scale_(output, signature.prescale)
    op, divisor = _op(signature, tensor, comm.size)
    comm.allreduce(tensor, None if output is tensor else output, op)
    finish_(output, divisor, signature.postscale)


def _op(signature: Signature, tensor: torch.Tensor, size: int):
    """The operation of the communicator, and what is left to divide by."""
    if signature.op != Average:
        return _OPS[signature.op], 1
    if tensor.dtype.is_floating_point and signature.postscale == 1.0:
        return "avg", 1
    return "sum", size


def finish_(tensor: torch.Tensor, divisor: int, factor: float) -> torch.Tensor:
    if divisor != 1 and not tensor.dtype.is_floating_point:
        tensor.copy_(torch.div(tensor, divisor, rounding_mode="trunc"))
        divisor = 1
    return scale_(tensor, factor / divisor)


def scale_(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """tensor *= factor; whole numbers in double precision and cut, 16-bit ones in single."""
    if factor == 1.0:
        return tensor
    if not tensor.dtype.is_floating_point:
        return tensor.copy_(tensor.double() * factor)
    if tensor.element_size() == 2:
        return tensor.copy_(tensor.float() * factor)
    return tensor.mul_(factor)


def reduce_scatter(comm: Communicator, signature: Signature, tensor: torch.Tensor) -> torch.Tensor:
    """This rank's rows of the reduction; the first ranks get one more where the rows do not divide."""
    if signature.prescale != 1.0:
        tensor = scale_(tensor.clone(), signature.prescale)
    whole, more = divmod(tensor.shape[0], comm.size)
    rows = [whole + (rank < more) for rank in range(comm.size)]
    width = tensor[0].numel() if tensor.shape[0] else 0
    result = tensor.new_empty((rows[comm.rank], *tensor.shape[1:]))
    op, divisor = _op(signature, tensor, comm.size)
    comm.reduce_scatter(tensor, result, op, [row * width for row in rows])
    return finish_(result, divisor, signature.postscale)
