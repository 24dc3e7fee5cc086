"""Operations with ranks that come late: none is over before its results are there, whichever way it was started and is waited for.

The other ranks start an operation when rank 0 has found it unfinished, so nothing here depends on times.
"""

import contextlib
import sys
import time
from functools import partial

import torch
import torch.distributed as dist
from checks import equal, needs_torch_2, run

import dtrun.torch

SIZE = 3000
_number = 0


def _poll(work):
    while not work.is_completed():
        time.sleep(0.001)
    assert work.is_success()


def _then(work):
    assert isinstance(work.get_future().then(lambda done: done.value()).wait(), list)


ENDS = [lambda work: work.wait(), lambda work: work.synchronize(), _poll, _then, lambda work: work.get_future().wait()]


def late(rank, start, check, blocks=False):
    """start() gives works; check() holds on rank 0 at their end. Each end in turn."""
    global _number
    store = dist.group.WORLD.get_group_store()
    for end in ENDS[:1] if blocks else ENDS:
        _number += 1
        go = f"late/{_number}"
        if rank:
            store.wait([go])
        elif blocks:
            store.set(go, "")
        works = start()
        works = works if isinstance(works, list) else [works]
        if isinstance(works[0] if works else None, torch._C.Future):  # all torch gives of a call on several tensors
            assert rank or not any(future.done() for future in works)
            store.set(go, "")
            torch.futures.wait_all(works)
            if rank == 0:
                check()
            continue
        if rank == 0 and not blocks:
            assert works
            for work in works:
                assert not work.is_completed(), start
            futures = [work.get_future() for work in works] if end is _then else []
            assert not any(future.done() for future in futures)
            store.set(go, "")
        for work in works:
            if work is not None:
                end(work)
        if rank == 0:
            check()


def _full(value, size=SIZE):
    return torch.full((size,), float(value))


def check_plain_ones(rank, world):
    x = torch.empty(SIZE)
    odd = torch.zeros(SIZE, 2)[:, 1]
    parts = [torch.empty(SIZE + r) for r in range(world)]
    whole = torch.empty(world * SIZE)
    total, last = world * (world + 1) / 2, world - 1

    def on(tensor, call, *rest, **named):
        def start():
            tensor.fill_(rank + 1)
            return call(tensor, *rest, async_op=True, **named)

        return start

    late(rank, on(x, dist.all_reduce), lambda: equal(x, _full(total)))
    late(rank, on(odd, dist.all_reduce), lambda: equal(odd, _full(total)))
    late(rank, on(x, dist.reduce, 0), lambda: equal(x, _full(total)))
    late(rank, on(x, dist.broadcast, last), lambda: equal(x, _full(world)))
    late(rank, lambda: dist.barrier(async_op=True), lambda: None)
    own = torch.full((SIZE + rank,), rank + 1.0)
    late(rank, lambda: dist.all_gather([p.zero_() for p in parts], own, async_op=True),
         lambda: [equal(p, _full(r + 1, SIZE + r)) for r, p in enumerate(parts)])  # fmt: skip
    even = [torch.empty(SIZE) for _ in range(world)]
    gathered = lambda: [equal(p, _full(r + 1)) for r, p in enumerate(even)]  # noqa: E731
    mine = _full(rank + 1)
    late(rank, lambda: dist.gather(mine, [p.zero_() for p in even] if rank == 0 else None, async_op=True), gathered)
    late(rank, lambda: dist.all_gather_into_tensor(whole.zero_(), mine, async_op=True), lambda: equal(whole[-1:], [world]))
    late(rank, lambda: dist.reduce_scatter_tensor(x.zero_(), torch.ones(world * SIZE), async_op=True), lambda: equal(x, _full(world)))
    ins = [_full(rank + 1, SIZE + r) for r in range(world)]
    out = torch.empty(SIZE + rank)
    late(rank, lambda: dist.reduce_scatter(out.zero_(), ins, async_op=True), lambda: equal(out, _full(total)))
    late(rank, lambda: dist.scatter(x.zero_(), even_ins(world) if rank == last else None, last, async_op=True), lambda: equal(x, _full(1)))
    late(rank, lambda: dist.all_to_all([p.zero_() for p in even], [mine] * world, async_op=True), gathered)
    late(rank, lambda: dist.all_to_all_single(whole.zero_(), mine.repeat(world), async_op=True), lambda: equal(whole[-1:], [world]))
    splits = [SIZE + r for r in range(world)]  # rank r gives SIZE + r to each
    cut = torch.empty(sum(splits))
    late(rank, lambda: dist.all_to_all_single(cut.zero_(), own.repeat(world), splits, [SIZE + rank] * world, async_op=True),
         lambda: equal(cut[-1:], [world]))  # fmt: skip


def even_ins(world):
    return [_full(r + 1) for r in range(world)]


def check_messages(rank, world):
    x, y = _full(rank + 1), torch.empty(SIZE)
    last = world - 1

    def one():
        return dist.irecv(y.zero_(), last) if rank == 0 else dist.isend(x, 0) if rank == last else []

    def batch():
        ops = [dist.P2POp(dist.irecv, y.zero_(), (rank - 1) % world), dist.P2POp(dist.isend, x, (rank + 1) % world)]
        works = dist.batch_isend_irecv(ops)
        return works if rank else works[:1]  # what it sends may be on its way before the other comes

    for start in (one, batch):
        late(rank, start, lambda: equal(y, _full(world)))


def check_calls_on_several_tensors(rank, world):
    tensors = [torch.empty(SIZE), torch.empty(3), torch.empty(5, 2)[:, 1]]
    total = world * (world + 1) // 2

    def reduce():
        for x in tensors:
            x.fill_(rank + 1)
        return dist.all_reduce_coalesced(tensors, async_op=True)

    late(rank, reduce, lambda: [equal(x, torch.full_like(x, total)) for x in tensors])
    rows = [[torch.empty(SIZE), torch.empty(3)] for _ in range(world)]
    mine = [_full(rank + 1), _full(rank + 1, 3)]

    def gather():
        for row in rows:
            for x in row:
                x.zero_()
        return dist.all_gather_coalesced(rows, mine, async_op=True)

    late(rank, gather, lambda: [equal(x, torch.full_like(x, r + 1)) for r, row in enumerate(rows) for x in row])


@needs_torch_2
def check_blocks(rank, world):
    """Every call that a block collects, with a device and without one."""
    outs = [torch.empty(SIZE), torch.empty(3)]
    wide = [torch.empty(SIZE * world), torch.empty(3 * world)]
    mine = [_full(rank + 1), _full(rank + 1, 3)]
    total = world * (world + 1) / 2

    def reduced(x):
        dist.all_reduce(x.fill_(rank + 1))

    def scattered(x):
        dist.reduce_scatter_tensor(x.zero_(), torch.full((x.numel() * world,), rank + 1.0))

    def all_are(tensors, value):
        for x in tensors:
            equal(x[-1:], [value])

    calls = [
        (lambda: [reduced(x) for x in outs], lambda: all_are(outs, total)),
        (lambda: [dist.all_gather_into_tensor(x.zero_(), y) for x, y in zip(wide, mine)], lambda: all_are(wide, world)),
        (lambda: [scattered(x) for x in outs], lambda: all_are(outs, total)),
    ]
    for device in (None, torch.device("cpu")):
        for asynchronous in (True, False):
            for call, check in calls:
                late(rank, partial(block, call, device, asynchronous), check, blocks=not asynchronous)
    more = [
        (lambda: [dist.broadcast(x.fill_(rank + 1), world - 1, async_op=True) for x in outs], lambda: all_are(outs, world)),
        (lambda: [dist.all_to_all_single(x.zero_(), y.repeat(world), async_op=True) for x, y in zip(wide, mine)], lambda: all_are(wide, world)),
        (lambda: dist.group.WORLD.allreduce_coalesced([x.fill_(rank + 1) for x in outs]), lambda: all_are(outs, total)),
        (lambda: dist.group.WORLD.all_gather_single_coalesced([x.zero_() for x in wide], mine), lambda: all_are(wide, world)),
    ]
    for call, check in more:
        for asynchronous in (True, False):
            late(rank, partial(block, call, torch.device("cpu"), asynchronous), check, blocks=not asynchronous)

    def singly():
        """The works of the calls in a block, which end as the block's does."""
        works = []
        with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True):
            for x in outs:
                works.append(dist.broadcast(x.fill_(rank + 1), world - 1, async_op=True))
        return works

    late(rank, singly, lambda: all_are(outs, world))


def block(call, device, asynchronous):
    with dist._coalescing_manager(device=device, async_ops=asynchronous) as manager:
        call()
    return manager.works if asynchronous else []


@needs_torch_2
def check_functional_collectives(rank, world):
    import torch.distributed._functional_collectives as functional

    store, group = dist.group.WORLD.get_group_store(), dist.group.WORLD
    x, total = _full(rank + 1), world * (world + 1) / 2
    calls = {
        "all_reduce": (lambda: functional.all_reduce(x, "sum", group), total),
        "all_gather": (lambda: functional.all_gather_tensor(x, 0, group), world),
        "reduce_scatter": (lambda: functional.reduce_scatter_tensor(x.repeat(world), "sum", 0, group), total),
        "all_to_all": (lambda: functional.all_to_all_single(x.repeat(world), None, None, group), world),
        "broadcast": (lambda: functional.broadcast(x, world - 1, group), world),
        "several": (lambda: functional.all_reduce_coalesced([x, x[:3]], "sum", group), total),
        "gathered": (lambda: functional.all_gather_into_tensor_coalesced([x, x[:3]], group), world),
        "scattered": (lambda: functional.reduce_scatter_tensor_coalesced([x.repeat(world)] * 2, "sum", [0, 0], group), total),
    }
    for name, (call, value) in calls.items():
        if rank:
            store.wait([f"functional/{name}"])
        results = call()
        if rank == 0:
            store.set(f"functional/{name}", "")
        for result in results if isinstance(results, (list, tuple)) else [results]:
            equal((result + 0)[-1:], [value])


if __name__ == "__main__":
    run(sys.modules[__name__])
