"""What trains over process groups: DDP beside gloo, fully_shard, DeviceMesh, tensor parallel, checkpoints, ZeRO."""

import sys
import tempfile

import torch
import torch.distributed as dist
from checks import equal, needs_torch, needs_torch_2, run
from torch.nn.parallel import DistributedDataParallel

import dtrun.torch


def net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.BatchNorm1d(32), torch.nn.Linear(32, 4))


def train(model, rank, steps=4, optimizer=None):
    generator = torch.Generator().manual_seed(rank)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(16, 8, generator=generator)).square().mean().backward()
        optimizer.step()
    return model


def check_ddp_has_the_weights_that_gloo_gives(rank, world):
    gloo = dist.new_group(backend="gloo")
    ways = [
        {},
        {"gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
        {"static_graph": True},
        {"bucket_cap_mb": 0.001},
    ]
    for way in ways:
        ours = train(DistributedDataParallel(net(), **way), rank)
        theirs = train(DistributedDataParallel(net(), process_group=gloo, **way), rank)
        for a, b in zip(ours.parameters(), theirs.parameters()):
            same = torch.equal if world == 2 else torch.allclose  # the order of more than two summands is the backend's
            assert same(a, b), f"{way}: {(a - b).abs().max()}"


@needs_torch(2, 13)
def check_fully_shard_trains_as_one_rank_does(rank, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world,))
    plain, sharded = net()[:2], net()[:2]
    for layer in sharded:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    train(sharded, 0)  # the same samples on each rank
    train(plain, 0)
    for a, b in zip(sharded.parameters(), plain.parameters()):
        torch.testing.assert_close(a.full_tensor(), b, rtol=1e-4, atol=1e-5)


@needs_torch_2
def check_device_mesh_and_tensors_over_it(rank, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (world, 1), mesh_dim_names=("data", "model"))
    assert mesh["data"].get_local_rank() == rank
    whole = torch.arange(12.0).view(6, 2)
    shards = distribute_tensor(whole, mesh["data"], [Shard(0)])
    equal(shards.full_tensor(), whole)
    equal(shards.redistribute(mesh["data"], [Replicate()]).to_local(), whole)
    right = distribute_tensor(whole.t(), mesh["data"], [Replicate()])
    equal((shards @ right).full_tensor(), whole @ whole.t())


@needs_torch_2
def check_tensor_parallel_layers_give_the_plain_result(rank, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    def layers():
        torch.manual_seed(2)
        return torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 4))

    x = torch.ones(2, 8)
    parallel = parallelize_module(layers(), init_device_mesh("cpu", (world,)), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    torch.testing.assert_close(parallel(x), layers()(x))


@needs_torch_2
def check_functional_collectives(rank, world):
    import torch.distributed._functional_collectives as functional

    group = dist.group.WORLD
    x = torch.full((4,), rank + 1.0)
    equal(functional.all_reduce(x, "sum", group) + 0, torch.full((4,), world * (world + 1) / 2))
    equal(functional.all_gather_tensor(x, 0, group)[::4], list(range(1, world + 1)))
    equal(functional.reduce_scatter_tensor(torch.ones(2 * world), "sum", 0, group) + 0, [world, world])
    equal(functional.all_to_all_single(torch.full((world,), float(rank)), None, None, group) + 0, list(range(world)))
    equal(functional.broadcast(x, 0, group) + 0, torch.ones(4))
    for y in functional.all_reduce_coalesced([x, x], "avg", group):
        equal(y + 0, torch.full((4,), (world + 1) / 2))


@needs_torch_2
def check_checkpoints(rank, world):
    import torch.distributed.checkpoint as checkpoint

    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    saved, loaded = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    DistributedDataParallel(saved)  # rank 0's values on all
    checkpoint.save({"model": saved.state_dict()}, checkpoint_id=folder[0])
    state = {"model": loaded.state_dict()}
    checkpoint.load(state, checkpoint_id=folder[0])
    equal(loaded.weight.detach(), saved.weight.detach())


def check_zero_and_join(rank, world):
    from torch.distributed.algorithms.join import Join
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(net()[:2])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    with Join([model, optimizer]):
        train(model, rank, 2 + rank, optimizer)
    sums = [torch.zeros(()) for _ in range(world)]
    dist.all_gather(sums, model.module[0].weight.detach().sum())
    assert len({float(s) for s in sums}) == 1, sums


if __name__ == "__main__":
    run(sys.modules[__name__])
