"""torch.compile, export, meshes and copies of a process group, each as with gloo's. `inductor` as the argument: by that, too."""

import copy
import functools
import pickle
import sys

import torch
import torch.distributed as dist
from checks import equal, needs_torch, run
from torch.nn.parallel import DistributedDataParallel

import dtrun.torch

BACKENDS = ["aot_eager", *sys.argv[1:]]


@functools.lru_cache(maxsize=None)
def gloo():
    return dist.new_group(backend="gloo")


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4))


def trained(model, rank, compiled):
    generator = torch.Generator().manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        compiled(torch.randn(16, 8, generator=generator)).square().mean().backward()
        optimizer.step()
    return list(model.parameters())


def check_compiled_ddp_has_the_weights_of_gloo(rank, world):
    for backend in BACKENDS:
        ways = []
        for group in (dist.group.WORLD, gloo()):
            torch._dynamo.reset()
            model = DistributedDataParallel(net(), process_group=group)
            ways.append(trained(model, rank, torch.compile(model, backend=backend)))
        for ours, theirs in zip(*ways):
            torch.testing.assert_close(ours, theirs)


def check_ddp_of_a_compiled_model(rank, world):
    for backend in BACKENDS:
        plain = trained(model := DistributedDataParallel(net()), rank, model)
        torch._dynamo.reset()
        for ours, theirs in zip(trained(model := DistributedDataParallel(torch.compile(net(), backend=backend)), rank, model), plain):
            torch.testing.assert_close(ours, theirs)


def check_functional_collectives_in_one_graph(rank, world):
    import torch.distributed._functional_collectives as functional

    def program(x, group):
        y = functional.all_reduce(x * 2, "sum", group) + 1
        y = functional.all_gather_tensor(y, 0, group)
        y = functional.reduce_scatter_tensor(y, "sum", 0, group)
        y = functional.all_to_all_single(y, None, None, group)
        return functional.broadcast(y, 1, group) * 2

    x = torch.full((2 * world,), rank + 1.0)
    for backend in BACKENDS:
        for group in (dist.group.WORLD, gloo()):
            torch._dynamo.reset()
            compiled = torch.compile(program, backend=backend, fullgraph=True)
            expected = program(x, group)
            for _ in range(2):
                equal(compiled(x, group), expected)


@needs_torch(2, 13)  # older ones refuse it with gloo, too
def check_collectives_in_place_in_one_graph(rank, world):
    def program(x, out):
        dist.all_reduce(x)
        dist.all_gather_into_tensor(out, x)
        return out + x.sum()

    x, out = torch.full((2,), rank + 1.0), torch.zeros(2 * world)
    expected = program(x.clone(), out.clone())
    for backend in BACKENDS:
        torch._dynamo.reset()
        compiled = torch.compile(program, backend=backend, fullgraph=True)
        equal(compiled(x.clone(), out.clone()), expected)


def check_collectives_that_break_the_graph(rank, world):
    def program(x):
        work = dist.all_reduce(x * 1, async_op=True)
        y = x * 2
        group = dist.group.WORLD
        work.wait()
        dist.barrier()
        return y + dist.get_rank(group) + dist.get_world_size()

    x = torch.full((2,), rank + 1.0)
    for backend in BACKENDS:
        torch._dynamo.reset()
        equal(torch.compile(program, backend=backend)(x), program(x))


def check_what_a_program_asks_about_its_group(rank, world):
    def program(x, group):
        return x + group.rank() + 10 * group.size() + dist.get_rank(group) + dist.get_world_size(group) + len(group.group_name)

    x = torch.zeros(2)
    for group in (dist.group.WORLD, gloo()):
        torch._dynamo.reset()
        equal(torch.compile(program, backend="aot_eager")(x, group), program(x, group))


def check_tensor_parallel_layers(rank, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    def layers():
        torch.manual_seed(2)
        return torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 4))

    x, mesh = torch.ones(2, 8), init_device_mesh("cpu", (world,))
    for backend in BACKENDS:
        torch._dynamo.reset()
        parallel = parallelize_module(layers(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        torch.testing.assert_close(torch.compile(parallel, backend=backend)(x), layers()(x))


@needs_torch(2, 13)
def check_fully_shard(rank, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world,))
    ways = []
    for compiled in (False, True):
        torch._dynamo.reset()
        model = net()
        fully_shard(model, mesh=mesh)
        program = torch.compile(model, backend="aot_eager") if compiled else model
        ways.append([p.full_tensor() for p in trained(model, rank, program)])
    for ours, theirs in zip(*ways):
        torch.testing.assert_close(ours, theirs)


def check_a_mesh_of_a_group(rank, world):
    from torch.distributed.device_mesh import DeviceMesh

    for group in (dist.group.WORLD, gloo()):
        mesh = DeviceMesh.from_group(group, "cpu")
        assert mesh.get_group() is group and mesh.get_local_rank() == rank and mesh.size() == world


def check_copies_and_names_are_as_of_gloo(rank, world):
    def outcome(call):
        try:
            return "", call()
        except Exception as failure:
            return type(failure).__name__, None

    ours, theirs = dist.group.WORLD, gloo()
    for call in (pickle.dumps, copy.deepcopy, copy.copy, hash):
        assert outcome(lambda: call(ours))[0] == outcome(lambda: call(theirs))[0], (call, outcome(lambda: call(ours)), outcome(lambda: call(theirs)))
    for name in ("group_name", "group_desc"):
        assert type(getattr(ours, name)) is type(getattr(theirs, name)) is str
    named = dist.new_group(group_desc="mine")
    assert named.group_desc == "mine" and named.group_name and named.group_name != ours.group_name
    assert dist.distributed_c10d._resolve_process_group(named.group_name) is named
    assert (ours.rank(), ours.size(), ours.name()) == (rank, world, "dtrun")


def check_export(rank, world):
    import torch.distributed._functional_collectives as functional

    class Sum(torch.nn.Module):
        def forward(self, x):
            return functional.all_reduce(x, "sum", dist.group.WORLD) + 1

    x = torch.full((3,), rank + 1.0)
    equal(torch.export.export(Sum(), (x,)).module()(x), Sum()(x))


if __name__ == "__main__":
    run(sys.modules[__name__])
