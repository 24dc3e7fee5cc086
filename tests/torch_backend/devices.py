"""The group on tensors of a device, the fake accelerator: its streams delay all work at random, so that a missing wait shows.

Streams wait, and the host does not: it is counted. MISSING_WAIT=1: waits of the default streams are left out, and
a rank has to notice. CALLS_DIFFER=1: only that a future has the failure.
"""

import os
import sys

import fake_device
import torch
import torch.distributed as dist
from checks import equal, needs_torch_2, refused, run

import dtrun.torch

SEEDS = 5


def here(rank):
    return torch.device(fake_device.NAME, rank % fake_device.device_count())


def on(rank, tensor):
    return tensor.to(here(rank))


def total(world):
    return world * (world + 1) // 2


def check_every_collective(rank, world):
    x = on(rank, torch.full((5,), rank + 1.0))
    dist.all_reduce(x)
    equal(x.cpu(), [total(world)] * 5)
    x = on(rank, torch.full((4,), float(rank)))
    dist.broadcast(x, 1)
    equal(x.cpu(), [1] * 4)
    every = [on(rank, torch.zeros(2)) for _ in range(world)]
    dist.all_gather(every, on(rank, torch.full((2,), float(rank))))
    for r in range(world):
        equal(every[r].cpu(), [r] * 2)
    flat = on(rank, torch.zeros(world, 2))
    dist.all_gather_into_tensor(flat, on(rank, torch.full((2,), float(rank))))
    equal(flat.cpu()[:, 0], list(range(world)))
    part = on(rank, torch.zeros(2))
    dist.reduce_scatter_tensor(part, on(rank, torch.arange(2.0 * world)))
    equal(part.cpu(), world * torch.arange(2.0 * world)[2 * rank : 2 * rank + 2])
    out = on(rank, torch.zeros(world))
    dist.all_to_all_single(out, on(rank, torch.full((world,), float(rank))))
    equal(out.cpu(), list(range(world)))
    x = on(rank, torch.full((3,), rank + 1.0))
    dist.reduce(x, 0)
    equal(x.cpu(), [rank + 1 if rank else total(world)] * 3)


def check_tensors_that_are_not_contiguous(rank, world):
    base = torch.arange(12.0).view(3, 4)
    x = on(rank, base).as_strided((4, 3), (1, 4))
    dist.all_reduce(x)
    equal(x.cpu(), world * base.t())
    dist.all_reduce(x, async_op=True).wait()
    equal(x.cpu(), world * world * base.t())


def check_messages_after_a_collective(rank, world):
    x, y = on(rank, torch.full((3,), float(rank))), on(rank, torch.zeros(3))
    ops = [dist.P2POp(dist.isend, x, (rank + 1) % world), dist.P2POp(dist.irecv, y, (rank - 1) % world)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    equal(y.cpu(), [(rank - 1) % world] * 3)


def check_streams_wait_and_the_host_does_not(rank, world):
    device = here(rank)
    for seed in range(1, SEEDS + 1):
        fake_device.library.fake_set_delays(seed, 400)
        other = fake_device.Stream(device)
        x = on(rank, torch.full((1000,), rank + 1.0))
        before = fake_device.host_waits()
        x.mul_(2)
        dist.all_reduce(x)
        x.add_(1)
        with fake_device.stream(other):
            other.wait_stream(fake_device.Stream(device, 0))
            work = dist.all_reduce(x, async_op=True)
        work.wait()
        x.add_(1)
        assert fake_device.host_waits() == before, "the host waited for the device"
        equal(x.cpu()[::100], [world * (2 * total(world) + 1) + 1] * 10)
    fake_device.library.fake_set_delays(0, 0)


def check_futures(rank, world):
    for seed in range(1, SEEDS + 1):
        fake_device.library.fake_set_delays(seed, 400)
        x = on(rank, torch.full((1000,), rank + 1.0))
        before = fake_device.host_waits()
        x.mul_(2)
        future = dist.all_reduce(x, async_op=True).get_future()
        halved = future.then(lambda done: [done.value()[0] / 2])
        (result,) = halved.wait()
        result = result + 1
        assert fake_device.host_waits() == before, "the host waited for the device"
        equal(result.cpu()[::100], [total(world) + 1] * 10)
    fake_device.library.fake_set_delays(0, 0)


def check_a_future_holds_up_no_caller(rank, world):
    store = dist.group.WORLD.get_group_store()
    x = on(rank, torch.full((1000,), rank + 1.0))
    if rank:
        store.wait(["future"])  # over staging its data comes after that alone
    future = dist.all_reduce(x, async_op=True).get_future()
    if rank == 0:
        store.set("future", "")
    (result,) = future.wait()
    equal(result.cpu()[::100], [total(world)] * 10)
    assert future.then(lambda done: fake_device.current_device()).wait() == here(rank).index


def check_a_work_is_asked_while_a_future_waits_for_it(rank, world):
    for _ in range(20):
        work = dist.all_reduce(on(rank, torch.full((1000,), rank + 1.0)), async_op=True)
        future = work.get_future()
        while not work.is_completed():
            pass
        work.wait()
        equal(future.wait()[0].cpu()[::100], [total(world)] * 10)


def check_memory_that_a_future_still_needs(rank, world):
    for seed in range(1, SEEDS + 1):
        fake_device.library.fake_set_delays(seed, 400)
        base = on(rank, torch.arange(4000.0).view(4, 1000))
        x = base.as_strided((1000, 4), (1, 1000))
        future = dist.all_reduce(x, async_op=True).get_future()  # a dense copy is reduced, and copied back on another stream
        others = [on(rank, torch.full((4000,), -1.0)).mul_(2) for _ in range(4)]
        (result,) = future.wait()
        equal(result.cpu(), world * torch.arange(4000.0).view(4, 1000).t())
        del others
    fake_device.library.fake_set_delays(0, 0)


def check_a_work_ends(rank, world):
    x = on(rank, torch.ones(10))
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    while not work.is_completed():
        pass
    assert work.exception() is None
    (result,) = work.result()
    assert result.data_ptr() == x.data_ptr()


def check_host_and_device_in_one_group(rank, world):
    x, y = on(rank, torch.ones(4)), torch.ones(4)
    for _ in range(3):
        dist.all_reduce(x)
        dist.all_reduce(y)
    equal(x.cpu(), y)
    every = [None] * world
    dist.all_gather_object(every, rank)
    assert every == list(range(world))
    refused(lambda: dist.all_gather_into_tensor(torch.zeros(world), x[:1]), RuntimeError, "the output on cpu")


@needs_torch_2
def check_training_has_the_hosts_weights(rank, world):
    def trained(device):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).to(device)
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        generator = torch.Generator().manual_seed(rank)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(16, 8, generator=generator).to(device)).square().mean().backward()
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    expected = trained(torch.device("cpu"))
    fake_device.set_device(here(rank))
    for seed in range(1, SEEDS + 1):
        fake_device.library.fake_set_delays(seed, 200)
        for ours, theirs in zip(trained(here(rank)), expected):
            assert torch.equal(ours, theirs), (ours - theirs).abs().max()
    fake_device.library.fake_set_delays(0, 0)


def calls_that_differ():
    """Ends the group."""
    dist.init_process_group("dtrun")
    rank = dist.get_rank()
    x = on(rank, torch.ones(10))
    dist.all_reduce(x)
    work = dist.broadcast(x, 0, async_op=True) if rank else dist.all_reduce(x, async_op=True)
    refused(work.get_future().wait, RuntimeError, "rank 0 calls allreduce", "rank 1 calls broadcast")
    print(f"rank {rank}: refused", flush=True)


if __name__ == "__main__":
    if os.environ.get("CALLS_DIFFER"):
        sys.exit(calls_that_differ())
    if os.environ.get("MISSING_WAIT"):
        fake_device.library.fake_ignore_waits_of_default_streams()
    run(sys.modules[__name__])
