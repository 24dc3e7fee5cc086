"""Operations that gradients flow through, as autograd functions. Those of several tensors start together, under one name."""

from typing import Any, List, Optional, Sequence

import torch

from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average
from ..submit import scatter_factor
from .submit import submit, submit_alltoall, submit_broadcast


def apply(function: Any, *given: Any) -> Any:
    """Its result, through which gradients flow."""
    return function.apply(*given)


def _contiguous(gradients: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    return [gradient.contiguous() for gradient in gradients]


def _average(gradients: Sequence[torch.Tensor], process_set: ProcessSet) -> List[torch.Tensor]:
    return allreduce(_contiguous(gradients), None, Average, 1.0, 1.0, process_set)


def allreduce(
    tensors: Sequence[torch.Tensor], name: Optional[str], op: int, prescale: float, postscale: float, process_set: ProcessSet
) -> List[torch.Tensor]:
    return list(apply(_Allreduce, name, op, prescale, postscale, process_set, *tensors))


def allgather(
    tensors: Sequence[torch.Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[torch.Tensor]:
    return list(apply(_Allgather, name, process_set, *tensors))


def reducescatter(
    tensors: Sequence[torch.Tensor], name: Optional[str], op: int, prescale: float, postscale: float, process_set: ProcessSet
) -> List[torch.Tensor]:
    return list(apply(_Reducescatter, name, op, prescale, postscale, process_set, *tensors))


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale, postscale, process_set, *tensors):  # type: ignore[no-untyped-def]
        ctx.given = op, prescale, postscale, process_set
        outputs = [torch.empty_like(tensor, requires_grad=False) for tensor in tensors]
        aspects = {"op": op, "prescale": prescale, "postscale": postscale}
        return tuple(submit("allreduce", tensors, outputs, name=name, process_set=process_set, unpack=list, **aspects).wait())

    @staticmethod
    def backward(ctx, *gradients):  # type: ignore[no-untyped-def]
        return (None,) * 5 + tuple(allreduce(_contiguous(gradients), None, *ctx.given))


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):  # type: ignore[no-untyped-def]
        gathered = submit("allgather", tensors, name=name, process_set=process_set, unpack=list).wait()
        ctx.rows, ctx.process_set = [tensor.shape[0] for tensor in tensors], process_set
        return tuple(gathered)

    @staticmethod
    def backward(ctx, *gradients):  # type: ignore[no-untyped-def]
        (every,) = allgather([torch.tensor([ctx.rows])], None, ctx.process_set)
        before = every[: ctx.process_set.rank()].sum(0).tolist()
        reduced = _average(gradients, ctx.process_set)
        return (None, None) + tuple(g.narrow(0, begin, rows) for g, begin, rows in zip(reduced, before, ctx.rows))


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale, postscale, process_set, *tensors):  # type: ignore[no-untyped-def]
        aspects = {"op": op, "prescale": prescale, "postscale": postscale}
        handle = submit("reducescatter", tensors, name=name, process_set=process_set, unpack=list, **aspects)  # checks them
        ctx.scale, ctx.process_set = scatter_factor(op, prescale, postscale, process_set), process_set
        return tuple(handle.wait())

    @staticmethod
    def backward(ctx, *gradients):  # type: ignore[no-untyped-def]
        return (None,) * 5 + tuple(allgather(_contiguous([g * ctx.scale for g in gradients]), None, ctx.process_set))


class Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root, name, process_set):  # type: ignore[no-untyped-def]
        ctx.root, ctx.process_set = root, process_set
        return submit_broadcast(tensor, None, root, name, process_set).wait()

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (reduced,) = _average([gradient], ctx.process_set)
        here = ctx.process_set.ranks[ctx.process_set.rank()] == ctx.root
        return (reduced if here else torch.zeros_like(reduced)), None, None, None


class Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):  # type: ignore[no-untyped-def]
        result, received = submit_alltoall(tensor, splits, name, process_set, tuple).wait()
        ctx.received, ctx.rows, ctx.process_set = received, tensor.shape[0], process_set
        ctx.mark_non_differentiable(received)
        return result, received

    @staticmethod
    def backward(ctx, gradient, _):  # type: ignore[no-untyped-def]
        back, _ = apply(Alltoall, gradient.contiguous(), ctx.received, None, ctx.process_set)
        unsent = ctx.rows - back.shape[0]
        return (torch.cat([back, back.new_zeros((unsent, *back.shape[1:]))]) if unsent else back), None, None, None
