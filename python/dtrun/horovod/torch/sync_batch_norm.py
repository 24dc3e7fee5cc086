"""SyncBatchNorm: batch statistics of all ranks' samples. It runs on every device, with operations of torch alone."""

from typing import Any, List, Optional, Tuple

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ..reductions import Sum
from ..runtime import size
from .differentiable import apply
from .operations import allgather_async, allreduce_async


class SyncBatchNorm(_BatchNorm):
    """As torch.nn.BatchNorm1d, 2d and 3d, over the samples of every rank. Every rank calls it, in training."""

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm: an input of {input.dim()} dimensions; it has at least two, samples and channels")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if size() == 1 or not (self.training or not self.track_running_stats):
            return super().forward(input)
        self._check_input_dim(input)
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        running = (self.running_mean, self.running_var) if self.training else (None, None)
        result: torch.Tensor = apply(_Normalize, input, self.weight, self.bias, *running, self.eps, momentum or 0.0)
        return result


def _all_but_channels(tensor: torch.Tensor) -> List[int]:
    return [dim for dim in range(tensor.dim()) if dim != 1]


def _statistics(input: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Number, mean and variance of every channel over all ranks, from those of each rank."""
    count = input.numel() // input.size(1)
    dims = _all_but_channels(input)
    mean = input.mean(dims)
    variance = input.var(dims, unbiased=False)
    own = torch.stack([torch.full_like(mean, count), mean, variance]).unsqueeze(0)
    counts, means, variances = allgather_async(own).wait().unbind(1)
    total = counts.sum(0)
    mean = (counts * means).sum(0) / total
    variance = (counts * (variances + (means - mean) ** 2)).sum(0) / total
    return total, mean, variance


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        input: torch.Tensor,
        weight: Optional[torch.Tensor],
        bias: Optional[torch.Tensor],
        running_mean: Optional[torch.Tensor],
        running_var: Optional[torch.Tensor],
        eps: float,
        momentum: float,
    ) -> torch.Tensor:
        total, mean, variance = _statistics(input)
        if running_mean is not None and running_var is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            unbiased = variance * total / (total - 1).clamp(min=1)
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
        shape = [1, -1] + [1] * (input.dim() - 2)
        scale = torch.rsqrt(variance + eps).view(shape)
        normal = (input - mean.view(shape)) * scale
        ctx.save_for_backward(normal, weight, scale, total.view(shape))
        output = normal if weight is None else normal * weight.view(shape)
        return output.clone() if bias is None else output + bias.view(shape)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        normal, weight, scale, total = ctx.saved_tensors
        dims = _all_but_channels(gradient)
        sum_gradient, sum_product = gradient.sum(dims), (gradient * normal).sum(dims)
        every = allreduce_async(torch.stack([sum_gradient, sum_product]), op=Sum).wait()
        shape = [1, -1] + [1] * (gradient.dim() - 2)
        through = gradient - (every[0].view(shape) + normal * every[1].view(shape)) / total
        through = through * scale if weight is None else through * scale * weight.view(shape)
        affine = (None, None) if weight is None else (sum_product, sum_gradient)
        return (through, *affine, None, None, None, None)
