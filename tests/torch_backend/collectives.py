"""Every collective of torch.distributed against its definition."""

import functools
import math
import operator
import sys

import torch
import torch.distributed as dist
from checks import equal, needs_torch_2, refused, run
from torch.distributed import ReduceOp

import dtrun.torch

TYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
]


def total(world):
    return world * (world + 1) // 2


def check_all_reduce_of_every_type(rank, world):
    for dtype in TYPES:
        x = torch.full((5,), rank + 1, dtype=dtype)
        dist.all_reduce(x)
        equal(x, torch.full((5,), total(world)))


def check_every_reduction(rank, world):
    expected = {
        ReduceOp.SUM: total(world),
        ReduceOp.PRODUCT: math.factorial(world),
        ReduceOp.MIN: 1,
        ReduceOp.MAX: world,
        ReduceOp.AVG: (world + 1) / 2,
    }
    for op, value in expected.items():
        x = torch.full((3,), rank + 1.0)
        dist.all_reduce(x, op)
        equal(x, torch.full((3,), value))
    bits = [1 | (2 << r) for r in range(world)]
    for op, combine in ((ReduceOp.BAND, operator.and_), (ReduceOp.BOR, operator.or_), (ReduceOp.BXOR, operator.xor)):
        x = torch.tensor([bits[rank]])
        dist.all_reduce(x, op)
        equal(x, [functools.reduce(combine, bits)])


@needs_torch_2
def check_a_factor_for_each_rank(rank, world):
    x = torch.ones(4)
    dist.all_reduce(x, dist._make_nccl_premul_sum(rank + 1.0))
    equal(x, torch.full((4,), total(world)))


def check_bool_and_complex(rank, world):
    x = torch.tensor([rank == 0, True, False])
    dist.all_reduce(x)
    equal(x, [True, True, False])
    x = torch.tensor([rank == 0, True])
    dist.all_reduce(x, ReduceOp.MIN)
    equal(x, [False, True])
    c = torch.full((2,), complex(1, rank))
    dist.all_reduce(c)
    equal(torch.view_as_real(c), [[world, total(world) - world]] * 2)


def check_tensors_that_are_not_contiguous(rank, world):
    base = torch.arange(12.0).view(3, 4)
    x = base.clone().t()
    dist.all_reduce(x)
    equal(x, world * base.t())
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    equal(x, world * world * base.t())
    x = torch.zeros(4, 6)[:, ::2]
    dist.broadcast(x.fill_(rank), 1)
    equal(x, torch.ones(4, 3))
    out = torch.zeros(world, 2, 2).transpose(1, 2)
    dist.all_gather_into_tensor(out, torch.full((2, 2), float(rank)).t())
    equal(out[:, 0, 0], list(range(world)))


def check_conjugated_and_negated_views(rank, world):
    """Such a view shows other values than its memory holds, and what is received goes through it. Most of torch's own functions
    refuse the conjugated ones before they ask a backend, and say what to do; no function may move what the memory holds."""
    ranks, mine = range(world), rank + 1

    def conjugated(count):
        return torch.zeros(count, dtype=torch.complex64).conj()

    def negated(count):
        return torch._neg_view(torch.zeros(count))

    def apart(count):
        return conjugated(count).imag

    for make in (conjugated, negated, apart):

        def of(*values, each=2, make=make):
            shown = torch.tensor([value for value in values for _ in range(each)])
            view = make(len(shown))
            assert view.is_conj() or view.is_neg()
            return view.copy_(shown * (1 + 2j) if view.is_complex() else shown)

        def gives(call, outputs, *expected):
            try:
                call()
            except RuntimeError as failure:
                assert outputs[0].is_conj() and "view_as_real doesn't work on unresolved conjugated tensors" in str(failure), failure
                return
            for output, value in zip(outputs, expected):
                torch.testing.assert_close(output, value)

        xs = [of(mine), of(2 * mine)]
        gives(lambda: dist.all_reduce(xs[0]), xs, of(total(world)))
        xs = [of(mine), of(2 * mine)]
        gives(lambda: dist.all_reduce(xs[0], async_op=True).wait(), xs, of(total(world)))
        xs = [of(mine), of(2 * mine)]
        gives(lambda: dist.group.WORLD.allreduce([xs[0]]).wait(), xs, of(total(world)))
        gives(lambda: dist.all_reduce_coalesced(xs), xs, of(world * total(world)), of(2 * total(world)))
        xs = [of(mine)]
        gives(lambda: dist.broadcast(xs[0], 1), xs, of(2))
        xs = [of(mine)]
        gives(lambda: dist.reduce(xs[0], 0), xs, of(mine if rank else total(world)))
        xs = [of(0) for _ in ranks]
        gives(lambda: dist.all_gather(xs, of(mine)), xs, *map(of, range(1, world + 1)))
        xs = [of(0, each=2 * world)]
        gives(lambda: dist.all_gather_into_tensor(xs[0], of(mine)), xs, of(*range(1, world + 1)))
        xs = [of(0) for _ in ranks]
        gives(lambda: dist.gather(of(mine), None if rank else xs), xs, *(of(0 if rank else r + 1) for r in ranks))
        xs = [of(0)]
        gives(lambda: dist.scatter(xs[0], None if rank else [of(r + 1) for r in ranks]), xs, of(mine))
        gives(lambda: dist.reduce_scatter_tensor(xs[0], of(*(mine * (r + 1) for r in ranks))), xs, of(total(world) * mine))
        gives(lambda: dist.reduce_scatter(xs[0], [of(r + 1) for r in ranks]), xs, of(world * mine))
        xs = [of(0, each=2 * world)]
        gives(lambda: dist.all_to_all_single(xs[0], of(*[mine] * world)), xs, of(*range(1, world + 1)))
        xs = [of(0) for _ in ranks]
        gives(lambda: dist.all_to_all(xs, [of(mine) for _ in ranks]), xs, *map(of, range(1, world + 1)))
        if rank == 0:
            xs = [of(7)]
            gives(lambda: dist.send(xs[0], 1), xs)
        elif rank == 1:
            xs = [of(0)]
            gives(lambda: dist.recv(xs[0], 0), xs, of(7))


def check_tensors_without_elements(rank, world):
    x = torch.empty(0)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.all_gather([torch.empty(0) for _ in range(world)], x)
    dist.all_to_all_single(torch.empty(0), x)


def check_a_parameter_is_reduced_in_place(rank, world):
    p = torch.nn.Parameter(torch.ones(3, 2).t())
    dist.all_reduce(p)
    equal(p.detach(), torch.full((2, 3), world))


@needs_torch_2
def check_broadcast_moves_types_that_nothing_reduces(rank, world):
    x = torch.full((4,), float(rank)).to(torch.float8_e4m3fn)
    dist.broadcast(x, 1)
    equal(x.float(), torch.ones(4))


def check_reduce(rank, world):
    for root in range(world):
        x = torch.full((3,), rank + 1.0)
        dist.reduce(x, root)
        equal(x, torch.full((3,), total(world) if rank == root else rank + 1.0))


def check_gathers(rank, world):
    mine = torch.full((2, 2), rank)
    every = [torch.zeros(2, 2, dtype=torch.int64) for _ in range(world)]
    dist.all_gather(every, mine)
    for r in range(world):
        equal(every[r], torch.full((2, 2), r))
    uneven = [torch.zeros(r + 1) for r in range(world)]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank)))
    for r in range(world):
        equal(uneven[r], torch.full((r + 1,), r))
    flat = torch.zeros(world * 2, 2, dtype=torch.int64)
    dist.all_gather_into_tensor(flat, mine)
    equal(flat[::2, 0], list(range(world)))
    every = [torch.zeros(2, 2, dtype=torch.int64) for _ in range(world)] if rank == 1 else None
    dist.gather(mine, every, dst=1)
    if rank == 1:
        equal(torch.stack(every)[:, 0, 0], list(range(world)))
    out = torch.zeros(3)
    dist.scatter(out, [torch.full((3,), float(r)) for r in range(world)] if rank == 0 else None, src=0)
    equal(out, torch.full((3,), rank))


def check_reduce_scatter(rank, world):
    out = torch.zeros(2)
    dist.reduce_scatter_tensor(out, torch.arange(2.0 * world))
    equal(out, world * torch.arange(2.0 * world)[2 * rank : 2 * rank + 2])
    dist.reduce_scatter_tensor(out, torch.arange(2.0 * world), ReduceOp.AVG)
    equal(out, torch.arange(2.0 * world)[2 * rank : 2 * rank + 2])
    uneven = torch.zeros(rank + 1)
    dist.reduce_scatter(uneven, [torch.full((r + 1,), float(r)) for r in range(world)])
    equal(uneven, torch.full((rank + 1,), world * rank))


def check_all_to_all(rank, world):
    out = torch.zeros(world)
    dist.all_to_all_single(out, torch.full((world,), float(rank)))
    equal(out, list(range(world)))
    rows = torch.full((world * (rank + 1), 2), float(rank))
    out = torch.zeros(sum(range(1, world + 1)), 2)
    dist.all_to_all_single(out, rows, [r + 1 for r in range(world)], [rank + 1] * world)
    equal(out[:, 0], [r for r in range(world) for _ in range(r + 1)])
    parts = [torch.zeros(r + 1) for r in range(world)]
    dist.all_to_all(parts, [torch.full((rank + 1,), float(rank)) for _ in range(world)])
    for r in range(world):
        equal(parts[r], torch.full((r + 1,), r))


def check_objects(rank, world):
    every = [None] * world
    dist.all_gather_object(every, {"rank": rank, "text": "x" * rank})
    assert every == [{"rank": r, "text": "x" * r} for r in range(world)], every
    some = [rank, None] if rank == 1 else [None, None]
    dist.broadcast_object_list(some, src=1)
    assert some == [1, None], some
    mine = [None]
    dist.scatter_object_list(mine, [f"for {r}" for r in range(world)] if rank == 0 else None)
    assert mine == [f"for {rank}"], mine


def check_sparse_gradients_are_summed(rank, world):
    embedding = torch.nn.Embedding(8, 2, sparse=True)
    with torch.no_grad():
        embedding.weight.fill_(0.0)
    model = torch.nn.parallel.DistributedDataParallel(embedding)
    model(torch.tensor([rank, 7])).sum().backward()
    expected = torch.zeros(8, 2)
    expected[:world] = 1 / world
    expected[7] = 1
    torch.testing.assert_close(embedding.weight.grad.to_dense(), expected)


def check_another_sparse_layout_is_refused(rank, world):
    for call in (dist.all_reduce, lambda tensor: dist.broadcast(tensor, 0)):
        refused(lambda: call(torch.eye(3).to_sparse_csr()), RuntimeError, "the tensor is torch.sparse_csr; pass tensor.to_dense()")


if __name__ == "__main__":
    run(sys.modules[__name__])
