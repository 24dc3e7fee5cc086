"""Every operation of dtrun.horovod.torch against a reference computed here, submitted in other orders on other ranks."""

import json
import os
import tempfile

import torch

import dtrun.horovod.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
everyone = range(size)
TYPES = [torch.float16, torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8]


def tensor(of, dtype=torch.float32):
    """What rank `of` submits."""
    return (torch.arange(6).reshape(2, 3) + 2 * of + 1).to(dtype)


def same(result, expected):
    assert result.dtype == expected.dtype and torch.equal(result, expected), (result, expected)


def reduced(op, dtype):
    parts = torch.stack([tensor(r, torch.float64) for r in everyone])
    totals = {hvd.Sum: parts.sum(0), hvd.Average: parts.mean(0), hvd.Product: parts.prod(0)}
    totals.update({hvd.Min: parts.amin(0), hvd.Max: parts.amax(0)})
    return totals[op].to(dtype)


def reductions():
    for dtype in TYPES:
        for op in (hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product):
            same(hvd.allreduce(tensor(rank, dtype), op=op), reduced(op, dtype))
            here = tensor(rank, dtype)
            assert hvd.allreduce_(here, op=op) is here
            same(here, reduced(op, dtype))
    same(hvd.allreduce(tensor(rank), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0), 2 * reduced(hvd.Sum, torch.float32))
    same(hvd.allreduce(tensor(rank), op=hvd.Sum, compression=hvd.Compression.fp16), reduced(hvd.Sum, torch.float32))
    two = hvd.grouped_allreduce([tensor(rank), tensor(rank, torch.int32)], op=hvd.Sum)
    same(two[0], reduced(hvd.Sum, torch.float32))
    same(two[1], reduced(hvd.Sum, torch.int32))
    rows = torch.arange(2.0 * size + 1).reshape(-1, 1) + rank  # one row more than the ranks divide
    total = sum(torch.arange(2.0 * size + 1).reshape(-1, 1) + r for r in everyone)
    begin = 2 * rank + min(rank, 1)
    mine = total[begin : begin + 2 + (rank < 1)]
    same(hvd.reducescatter(rows, op=hvd.Sum), mine)
    same(hvd.reducescatter(rows), mine / size)
    same(hvd.grouped_reducescatter([rows, rows], op=hvd.Sum)[1], mine)
    same(hvd.allreduce(torch.empty(0), op=hvd.Sum), torch.empty(0))


def movements():
    for dtype in [*TYPES, torch.bool, torch.int16]:
        ragged = [tensor(r, dtype)[:1].repeat(r + 1, 1) for r in everyone]
        same(hvd.allgather(ragged[rank]), torch.cat(ragged))
        for root in everyone:
            same(hvd.broadcast(tensor(rank, dtype), root), tensor(root, dtype))
            here = tensor(rank, dtype)
            same(hvd.broadcast_(here, root), here)
            same(here, tensor(root, dtype))
    rows = torch.tensor([[rank, to] for to in everyone for _ in range(to + 1)])
    got, splits = hvd.alltoall(rows, splits=torch.tensor([to + 1 for to in everyone], dtype=torch.int32))
    same(got, torch.tensor([[of, rank] for of in everyone for _ in range(rank + 1)]))
    assert splits.tolist() == [rank + 1] * size
    same(hvd.alltoall(torch.tensor([10 * rank + to for to in everyone])), torch.tensor([10 * of + rank for of in everyone]))
    one, two = hvd.grouped_allgather([torch.full((rank + 1,), rank), torch.tensor([rank])])
    same(one, torch.tensor([r for r in everyone for _ in range(r + 1)]))
    same(two, torch.tensor(list(everyone)))
    sparse = torch.sparse_coo_tensor([[rank, size]], torch.tensor([1.0, 2.0]), (size + 1,))
    same(hvd.sparse_allreduce_async(sparse, "sparse", hvd.Sum)().to_dense(), torch.tensor([1.0] * size + [2.0 * size]))


def orders():
    """All start, and each rank submits in an order of its own: forwards, backwards, and rotated."""
    for repeat in range(3):  # the second time, names travel as numbers
        names = [f"order.{i}" for i in range(40)]
        order = list(reversed(names)) if rank == 1 else names[rank:] + names[:rank]
        handles = {}
        for name in order:
            mine = torch.full((5,), float(names.index(name) + rank))
            handles[name] = hvd.allreduce_async(mine, name=name, op=hvd.Sum)
        if rank % 2:
            gathered = hvd.allgather_async(torch.tensor([rank]), "gathered")
            sent = hvd.broadcast_async(torch.tensor([rank]), 0, "sent")
        else:
            sent = hvd.broadcast_async(torch.tensor([rank]), 0, "sent")
            gathered = hvd.allgather_async(torch.tensor([rank]), "gathered")
        for name in reversed(order):
            same(hvd.synchronize(handles[name]), torch.full((5,), float(size * names.index(name) + sum(everyone))))
            assert hvd.poll(handles[name])
        same(hvd.synchronize(gathered), torch.tensor(list(everyone)))
        same(hvd.synchronize(sent), torch.tensor([0]))


def sets():
    evens = hvd.add_process_set([r for r in everyone if r % 2 == 0])
    last = hvd.add_process_set(hvd.ProcessSet([size - 1]))
    assert evens.included() == (rank % 2 == 0) and evens.size() == (size + 1) // 2
    if evens.included():
        same(hvd.allreduce(torch.tensor([rank]), op=hvd.Sum, process_set=evens), torch.tensor([sum(range(0, size, 2))]))
        assert evens.ranks[evens.rank()] == rank
    if last.included():
        same(hvd.broadcast(torch.tensor([rank]), size - 1, process_set=last), torch.tensor([rank]))
        assert hvd.broadcast_object({"of": rank}, size - 1, process_set=last) == {"of": size - 1}
    assert hvd.remove_process_set(evens) and evens.process_set_id is None
    assert not hvd.remove_process_set(evens) and not hvd.remove_process_set(hvd.global_process_set)


def gradients():
    x = tensor(rank).requires_grad_()
    hvd.allreduce(x, op=hvd.Sum).sum().backward()
    same(x.grad, torch.full((2, 3), float(size)))
    x = tensor(rank)[:1].repeat(rank + 1, 1).requires_grad_()
    weights = torch.arange(float(sum(r + 1 for r in everyone))).reshape(-1, 1)
    (hvd.allgather(x) * weights).sum().backward()
    begin = sum(r + 1 for r in range(rank))
    same(x.grad, weights[begin : begin + rank + 1].expand(-1, 3))
    x = torch.ones(size, requires_grad=True)
    (hvd.alltoall(x) * (rank + 1)).sum().backward()
    same(x.grad, torch.arange(1.0, size + 1))


def objects_and_join():
    assert hvd.allgather_object({"rank": rank}) == [{"rank": r} for r in everyone]
    assert hvd.broadcast_object([rank] * 300, size - 1) == [size - 1] * 300
    for step in range(rank):  # rank r has data for r steps
        same(hvd.allreduce(torch.ones(3), op=hvd.Sum, name=f"step.{step}"), torch.full((3,), float(size - 1 - step)))
    assert hvd.join() == size - 1
    hvd.barrier()


def timelines():
    path = os.path.join(tempfile.gettempdir(), f"timeline-{size}.json")
    hvd.start_timeline(path, mark_cycles=True)
    same(hvd.allreduce(torch.ones(3), op=hvd.Max, name="seen"), torch.ones(3))
    hvd.stop_timeline()
    if rank == 0:
        with open(path) as file:
            events = json.load(file)
        rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        seen = [event["name"] for event in events if event["ph"] == "X" and rows[event["tid"]] == "seen"]
        assert seen == ["NEGOTIATE_ALLREDUCE", "ALLREDUCE"], events
        assert "CYCLE_START" in [event["name"] for event in events]


for part in (reductions, movements, orders, sets, gradients, objects_and_join, timelines):
    part()
assert (hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()) == (rank, size, 0, 1) and hvd.is_homogeneous()
hvd.shutdown()
assert not hvd.is_initialized()
hvd.init()
same(hvd.allreduce(torch.ones(1), op=hvd.Sum), torch.full((1,), float(size)))
print(f"rank {rank} of {size} is done")
