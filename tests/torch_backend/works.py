"""Works, messages, coalescing, groups, and a process group that is made again."""

import sys
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from checks import equal, needs_torch_2, refused, run

import dtrun.torch


def check_a_work_ends_and_has_a_future(rank, world):
    x = torch.ones(1000)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    assert work.is_completed() and work.is_success() and work.exception() is None
    equal(x[:2], [world, world])
    work = dist.all_reduce(x, async_op=True)
    (result,) = work.get_future().wait()
    assert result.data_ptr() == x.data_ptr()
    equal(x[:2], [world**2] * 2)
    doubled = dist.all_reduce(x, async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    equal(doubled.wait()[:1], [2 * world**3])
    assert work.wait()  # again


def check_many_works_at_once_end_in_any_order_of_waiting(rank, world):
    tensors = [torch.full((100,), float(i)) for i in range(50)]
    works = [dist.all_reduce(x, async_op=True) for x in tensors]
    futures = [work.get_future() for work in works[::2]]
    for work in reversed(works):
        work.wait()
    torch.futures.wait_all(futures)
    for i, x in enumerate(tensors):
        equal(x[:1], [i * world])


def check_a_wait_that_is_too_short_says_so_and_goes_on(rank, world):
    if rank == 0:
        x = torch.zeros(1)
        work = dist.irecv(x, 1)
        refused(lambda: work.wait(timedelta(milliseconds=20)), RuntimeError, "still runs after 0.02 s")
        assert not work.is_completed()
        dist.send(torch.ones(1), 1, tag=1)
        work.wait()
        equal(x, [5])
    elif rank == 1:
        dist.recv(torch.zeros(1), 0, tag=1)
        dist.send(torch.full((1,), 5.0), 0)


def check_tags_are_those_that_were_given_or_refused(rank, world):
    for tag in (-1, 2**32, 2**32 + 5):
        for call in (dist.send, dist.recv):
            refused(lambda: call(torch.zeros(1), 1 - min(rank, 1), tag=tag), RuntimeError, f"{call.__name__}: tag is {tag}; give one from 0 to 4294967295")
    if rank == 0:
        dist.send(torch.ones(1), 1, tag=2**32 - 1)
    elif rank == 1:
        dist.recv(torch.zeros(1), 0, tag=2**32 - 1)


def check_a_wait_longer_than_clocks_count_has_no_limit(rank, world):
    ones = torch.ones(1)
    for limit in (timedelta.max, timedelta(seconds=2**33 - 1)):
        dist.all_reduce(ones, async_op=True).wait(limit)
    assert ones.item() == world * world


def check_a_work_that_is_not_kept_goes_on(rank, world):
    x, odd = torch.full((200000,), float(rank)), torch.zeros(200000, 2)[:, 1]
    if rank < 2:
        dist.isend(x, 1 - rank)
        dist.recv(odd, 1 - rank)
        equal(odd, torch.full((200000,), 1 - rank))
    dist.all_reduce(x, async_op=True)
    dist.all_reduce(odd.zero_().fill_(1), async_op=True)
    dist.barrier()
    equal(x[:1], [world * (world - 1) / 2])


def check_messages(rank, world):
    after, before = (rank + 1) % world, (rank - 1) % world
    x, y = torch.full((3,), float(rank)), torch.zeros(3)
    ops = [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, y, before)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    equal(y, torch.full((3,), before))
    if rank == 0:
        senders = {dist.recv(y) for _ in range(world - 1)}
        assert senders == set(range(1, world)), senders
    else:
        dist.send(x, 0)
    if rank == 0:
        odd = torch.zeros(4, 4)[:, 1]
        future = dist.irecv(odd, 1, tag=7).get_future()
        future.wait()
        equal(odd, [0, 1, 2, 3])
    elif rank == 1:
        dist.send(torch.arange(4.0), 0, tag=7)


def check_coalescing(rank, world):
    tensors = [torch.full((3,), rank + 1.0) for _ in range(3)]
    dist.all_reduce_coalesced(tensors)
    equal(tensors[2], [world * (world + 1) / 2] * 3)


@needs_torch_2
def check_coalescing_in_a_block(rank, world):
    tensors = [torch.full((3,), rank + 1.0) for _ in range(3)] + [torch.full((2,), rank + 1)]
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        for x in tensors:
            dist.broadcast(x, 0)
    manager.wait()
    with dist._coalescing_manager(async_ops=True) as manager:
        for x in tensors[:3]:
            dist.all_reduce(x)
    manager.wait()
    equal(tensors[0], [world] * 3)
    outs, ins = [torch.zeros(world * 2) for _ in range(2)], [torch.full((2,), float(rank)) for _ in range(2)]
    with dist._coalescing_manager():
        for out, x in zip(outs, ins):
            dist.all_gather_into_tensor(out, x)
    equal(outs[1][::2], list(range(world)))


def check_groups(rank, world):
    pair = dist.new_group([1, 0])
    alone = [dist.new_group([r]) for r in range(world)][rank]
    x = torch.ones(2)
    dist.all_reduce(x, group=alone)
    equal(x, [1, 1])
    if rank < 2:
        assert dist.get_rank(pair) == rank
        dist.all_reduce(x, group=pair)
        equal(x, [2, 2])
        x.fill_(rank)
        dist.broadcast(x, src=1, group=pair)
        equal(x, [1, 1])
        split = dist.group.WORLD.split_group([0, 1], group_name="split")
        split.allreduce([x]).wait()
        equal(x, [2, 2])
        split.shutdown()
    else:
        assert dist.group.WORLD.split_group([0, 1], group_name="split") is None
    if rank < 2:
        dist.destroy_process_group(pair)


def check_barriers(rank, world):
    dist.barrier()
    dist.barrier(async_op=True).wait()
    dist.group.WORLD.monitored_barrier(20.0)
    late = "Rank 1" if world == 2 else "Ranks 1, 2"
    if rank == 0:
        barrier = dist.group.WORLD.monitored_barrier
        refused(
            lambda: barrier(timedelta(milliseconds=50), True), RuntimeError, f"{late} failed to pass monitoredBarrier in 50 ms"
        )
        refused(lambda: barrier(timedelta(milliseconds=50)), RuntimeError, "Rank 1 failed to pass")
        refused(lambda: barrier(timedelta(0)), RuntimeError, "in 0 ms, after which Rank 0 timed out in monitoredBarrier")


def check_a_group_that_is_made_again_works(rank, world):
    place = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(place)
    dist.destroy_process_group()
    store = dist.FileStore(f"{place[0]}/store", world)  # at the port of env:// rank 0's first store may still answer
    dist.init_process_group("dtrun", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=30))
    x = torch.ones(1)
    dist.all_reduce(x)
    equal(x, [world])


if __name__ == "__main__":
    run(sys.modules[__name__])
