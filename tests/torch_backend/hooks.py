"""DDP's communication hooks, all that torch has, beside gloo: equal weights, or the same refusal."""

import functools
import os
import sys

import torch
import torch.distributed as dist
from checks import VERSION, run
from torch.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks, post_localSGD_hook, powerSGD_hook, quantization_hooks
from torch.nn.parallel import DistributedDataParallel
from training import net, train

import dtrun.torch


@functools.lru_cache
def gloo():
    return dist.new_group(backend="gloo")  # for all checks: to destroy one while a model holds it ends the process


def same(world, register, **ways):
    """DDP after register(model, group) over dtrun and over gloo. The text of the refusal, or ""."""
    ends = []
    for group in (dist.group.WORLD, gloo()):
        model = DistributedDataParallel(net(), process_group=group, **ways)
        torch.manual_seed(3)
        try:
            register(model, group)
            train(model, dist.get_rank())
        except Exception as failure:
            ends.append((type(failure), str(failure)))
        else:
            ends.append([p.detach().clone() for p in model.parameters()])
    ours, theirs = ends
    if isinstance(theirs, tuple) or isinstance(ours, tuple):
        assert ours[0] is theirs[0], ends
        return ours[1]
    for a, b in zip(ours, theirs):
        assert torch.equal(a, b) if world == 2 else torch.allclose(a, b, rtol=1e-2, atol=1e-3), (a - b).abs().max()
    return ""


def check_builtin_hooks(rank, world):
    for kind in (dist.BuiltinCommHookType.ALLREDUCE, dist.BuiltinCommHookType.FP16_COMPRESS):
        for ways in ({}, {"bucket_cap_mb": 0.001}, {"gradient_as_bucket_view": True}):
            assert same(world, lambda model, group: model._register_builtin_comm_hook(kind), **ways) == ""


def check_default_hooks(rank, world):
    hooks = [default_hooks.allreduce_hook, default_hooks.fp16_compress_hook]
    hooks += [default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)]
    for hook in hooks:
        assert same(world, lambda model, group: model.register_comm_hook(group, hook), bucket_cap_mb=0.001) == ""
    same(world, lambda model, group: model.register_comm_hook(group, default_hooks.bf16_compress_hook))  # torch may want a GPU
    assert same(world, lambda model, group: model.register_comm_hook(None, debugging_hooks.noop_hook)) == ""


def check_power_sgd(rank, world):
    wrapped = default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook)
    for hook in (powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook, wrapped):
        for warm in (True, False):

            def register(model, group):
                state = powerSGD_hook.PowerSGDState(group, start_powerSGD_iter=2, matrix_approximation_rank=2,
                                                    use_error_feedback=warm, warm_start=warm)  # fmt: skip
                model.register_comm_hook(state, hook)

            refusal = same(world, register)
            broken = VERSION < (2, 0) and hook is not powerSGD_hook.powerSGD_hook  # in torch, over gloo too
            assert broken or refusal == "", (hook, warm, refusal)


def check_quantization(rank, world):
    for hook in (quantization_hooks.quantization_pertensor_hook, quantization_hooks.quantization_perchannel_hook):
        same(world, lambda model, group: model.register_comm_hook(group, hook))  # torch's code wants a GPU in some versions


def check_post_local_sgd(rank, world):
    def register(model, group):
        state = post_localSGD_hook.PostLocalSGDState(group, group, start_localSGD_iter=2, post_local_gradient_allreduce=True)
        model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)

    assert same(world, register) == ""


def check_an_optimizer_in_the_hook(rank, world):
    if VERSION < (2, 0):
        return

    def register(model, group):
        model._register_fused_optim(torch.optim.SGD, lr=0.01, optim_params=list(model.parameters()))

    assert same(world, register, bucket_cap_mb=0.001) == ""


if __name__ == "__main__":
    run(sys.modules[__name__])
    if VERSION < (2, 0):  # a worker of torch's gloo that drops a hook's callback as Python ends calls std::terminate
        sys.stdout.flush()
        os._exit(0)
