"""The operations as autograd functions, with their gradients."""

from typing import Any

import torch

from ..reductions import Average, Sum


def _operations() -> Any:
    from . import operations

    return operations


def apply(function: Any, *given: Any) -> Any:
    """Its result, through which gradients flow."""
    return function.apply(*given)


class Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale, postscale, process_set):  # type: ignore[no-untyped-def]
        ctx.args = {"op": op, "prescale_factor": prescale, "postscale_factor": postscale, "process_set": process_set}
        return _operations().allreduce_async(tensor, name=name, **ctx.args).wait()

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return _operations().allreduce(gradient.contiguous(), **ctx.args), None, None, None, None, None


class Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):  # type: ignore[no-untyped-def]
        handle = _operations().allgather_async(tensor, name, process_set)
        ctx.rows, ctx.process_set = tensor.shape[0], process_set
        return handle.wait()

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        operations = _operations()
        rows = operations.allgather(torch.tensor([ctx.rows]), process_set=ctx.process_set).tolist()
        reduced = operations.allreduce(gradient.contiguous(), op=Average, process_set=ctx.process_set)
        return reduced.narrow(0, sum(rows[: ctx.process_set.rank()]), ctx.rows), None, None


class Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root, name, process_set):  # type: ignore[no-untyped-def]
        ctx.root, ctx.process_set = root, process_set
        return _operations().broadcast_async(tensor, root, name, process_set).wait()

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        reduced = _operations().allreduce(gradient.contiguous(), op=Average, process_set=ctx.process_set)
        here = ctx.process_set.ranks[ctx.process_set.rank()] == ctx.root
        return (reduced if here else torch.zeros_like(reduced)), None, None, None


class Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):  # type: ignore[no-untyped-def]
        result, received = _operations()._alltoall(tensor, splits, name, process_set, tuple).wait()
        ctx.received, ctx.rows, ctx.process_set = received, tensor.shape[0], process_set
        ctx.mark_non_differentiable(received)
        return result, received

    @staticmethod
    def backward(ctx, gradient, _):  # type: ignore[no-untyped-def]
        back, _ = _operations().alltoall(gradient.contiguous(), ctx.received, process_set=ctx.process_set)
        unsent = ctx.rows - back.shape[0]
        return (torch.cat([back, back.new_zeros((unsent, *back.shape[1:]))]) if unsent else back), None, None, None


class Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):  # type: ignore[no-untyped-def]
        ctx.process_set = process_set
        result = _operations().reducescatter_async(tensor, name, op, process_set, prescale, postscale).wait()
        ctx.scale = prescale * postscale * (process_set.size() or 1 if op == Sum else 1)
        return result

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        gathered = _operations().allgather((gradient * ctx.scale).contiguous(), process_set=ctx.process_set)
        return gathered, None, None, None, None, None
