"""What hvd says where ranks do not agree, and where a rank alone is wrong; afterwards operations still work."""

import os
import resource
import sys
import time
from pathlib import Path

import torch

import dtrun.horovod.torch as hvd


def fails(kind, call, *texts):
    try:
        call()
    except kind as error:
        for text in texts:
            assert text in str(error), f"'{text}' is not in: {error}"
        return
    raise AssertionError(f"no {kind.__name__} with {texts}")


fails(ValueError, lambda: hvd.allreduce(torch.ones(1)), "hvd.init() has not been called")
fails(ValueError, hvd.rank, "hvd.init() has not been called")
hvd.init()
rank, size = hvd.rank(), hvd.size()
lost = hvd.HorovodInternalError
one = torch.ones(1)

# Ranks differ: every rank is told, with the name and who has what.
fails(lost, lambda: hvd.allreduce(torch.ones(3 + rank), name="g"), "'g': the shapes differ: rank 0 has (3,), rank 1 has (4,)")
fails(lost, lambda: hvd.allreduce(one.to([torch.int32, torch.float32][rank % 2]), name="t"), "'t'", "int32", "rank 1 has float32")
fails(lost, lambda: hvd.allreduce(one, name="o", op=[hvd.Sum, hvd.Max][rank % 2]), "the reductions differ", "rank 1 has Max")
fails(lost, lambda: hvd.broadcast(one, rank, name="b"), "the root ranks differ", "rank 1 has 1")
fails(lost, lambda: hvd.allgather(torch.ones(1, 2 + rank), name="a"), "the shapes differ", "rank 1 has (*, 3)")
fails(lost, lambda: [hvd.allgather, hvd.allreduce][rank % 2](one, name="k"), "the operations differ", "rank 1 has allreduce")
fails(lost, lambda: hvd.add_process_set([rank]), "the process sets differ", "rank 1 has (1,)")

# This rank alone is wrong.
handle = hvd.allreduce_async(one, name="twice") if rank == 0 else None
if rank == 0:
    fails(ValueError, lambda: hvd.allreduce_async(one, name="twice"), "'twice'", "is under way on this rank")
hvd.barrier()
hvd.synchronize(handle or hvd.allreduce_async(one, name="twice"))
fails(ValueError, lambda: hvd.allreduce(torch.ones(4, 4).t()), "not contiguous")
for call in (hvd.allreduce, hvd.allreduce_, hvd.allgather, hvd.alltoall, hvd.reducescatter, lambda values: hvd.broadcast(values, 0)):
    for values in ([1.0], memoryview(b"1")):
        fails(ValueError, lambda: call(values), f": tensor is a {type(values).__name__}; pass a torch tensor")
fails(ValueError, lambda: hvd.allreduce([1.0], compression=hvd.Compression.fp16), "allreduce: tensor is a list; pass")
fails(ValueError, lambda: hvd.grouped_allgather([one, 1.0]), "tensors[1] is a float; pass a torch tensor")
fails(ValueError, lambda: hvd.grouped_allreduce(one), "tensors is a Tensor; pass a list")
for call in (hvd.allreduce, hvd.allreduce_, hvd.allgather, hvd.alltoall, hvd.reducescatter, lambda x, name: hvd.broadcast(x, 0, name)):
    for name in (5, b"g", 1.5, ["g"], True):
        fails(ValueError, lambda: call(torch.ones(size), name=name), f": name is {name!r} ({type(name).__name__}); pass a str, such as name=")
fails(ValueError, lambda: hvd.allreduce(one, name=5), "allreduce: name is 5 (int); pass a str, such as name='5'")
for call in (hvd.allreduce, hvd.reducescatter, lambda x, **aspects: hvd.grouped_allreduce([x], **aspects)):
    for factor in ("x", "1", None, [1]):
        text = f"_factor is {factor!r} ({type(factor).__name__}); pass a number"
        fails(ValueError, lambda: call(one, name="f", prescale_factor=factor), "'f': pre", text)
        fails(ValueError, lambda: call(one, name="f", postscale_factor=factor), "'f': post", text)
    for op in (9, "x", [1], 1.0):
        fails(ValueError, lambda: call(one, op=op), f"op {op!r} is none of hvd.Average, ")
fails(ValueError, lambda: hvd.broadcast(one, 0.0, name="b"), "broadcast 'b': root_rank is 0.0 (float); pass an int")
fails(ValueError, lambda: hvd.allreduce(torch.ones(1, dtype=torch.complex64), name="c"), "allreduce 'c': complex tensors have sums")
assert hvd.allreduce(torch.ones(1, dtype=torch.complex64), op=hvd.Sum) == size
fails(ValueError, lambda: hvd.allgather(torch.ones(1, dtype=torch.complex64).conj(), "l"), "allgather 'l': the tensor is a lazy conjugate")
for handle in (5, None, one):
    fails(ValueError, lambda: hvd.synchronize(handle), f"synchronize: handle is {handle!r} ({type(handle).__name__}); pass what")
    fails(ValueError, lambda: hvd.poll(handle), f"poll: handle is {handle!r} ({type(handle).__name__}); pass what")
fails(ValueError, lambda: hvd.allreduce(one, process_set=5), "allreduce: process_set is 5 (int); pass a ProcessSet")
fails(ValueError, lambda: hvd.remove_process_set(5), "remove_process_set: process_set is 5 (int); pass a ProcessSet")
fails(ValueError, lambda: hvd.ProcessSet([0, "a"]), "ProcessSet: ranks are whole numbers, not [0, 'a']")
obeyed, shown = "a\nb\u202e%s\x1b[1m\ud800", "'a\\nb\\u202e%s\\u001b[1m\\ud800'"
fails(lost, lambda: hvd.allreduce(torch.ones(3 + rank), name=obeyed), f"allreduce {shown}: the shapes differ")
fails(ValueError, lambda: hvd.allgather(torch.tensor(1), obeyed), f"allgather {shown}: a tensor without")
fails(ValueError, lambda: hvd.broadcast_parameters({obeyed: 1}, 0), f"broadcast_parameters: {shown} is a int")
assert shown in repr(hvd.allreduce_async(one, name=obeyed).request) and hvd.allreduce(one, name=obeyed[:-1]) == 1
fails(ValueError, lambda: hvd.allgather(torch.tensor(1)), "without dimensions")
fails(ValueError, lambda: hvd.alltoall(torch.ones(size + 1)), f"{size + 1} rows, which {size} ranks do not divide")
fails(ValueError, lambda: hvd.alltoall(one, [1] * (size + 1)), "splits")
fails(ValueError, lambda: hvd.allreduce(one, process_set=hvd.ProcessSet([0])), "is not known")
fails(ValueError, lambda: hvd.add_process_set([size]), f"rank {size}")
fails(ValueError, lambda: hvd.broadcast(one, size), f"root_rank {size}")
fails(NotImplementedError if size & (size - 1) else ValueError, lambda: hvd.allreduce(one.int(), op=hvd.Adasum), "hvd.Adasum of")
fails(lost, lambda: hvd.broadcast_object(lambda: 0, 0), "could not pickle") if rank else fails(
    Exception, lambda: hvd.broadcast_object(lambda: 0, 0), "cannot be pickled"
)
fails(lost, lambda: hvd.allgather_object(rank), "allgather_object: rank 0 could not pickle") if rank else fails(
    Exception, lambda: hvd.allgather_object(lambda: 0), "cannot be pickled"
)
assert hvd.allgather_object(rank) == list(range(size))

# The optimizer.
model = torch.nn.Linear(2, 2)
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
named = list(model.named_parameters())
fails(ValueError, lambda: hvd.DistributedOptimizer(sgd, named[:1]), "lacks 1 of the optimizer's 2 parameters", "parameter 1 of its group 0, of shape (2,)")
fails(ValueError, lambda: hvd.DistributedOptimizer(sgd, [("w", p) for _, p in named]), "w is there twice")
fails(ValueError, lambda: hvd.DistributedOptimizer(sgd, list(model.parameters())), "tuples")
fails(ValueError, lambda: hvd.DistributedOptimizer(sgd, named, backward_passes_per_step=0), "backward_passes_per_step")
optimizer = hvd.DistributedOptimizer(sgd, named)
model(torch.ones(1, 2)).sum().backward()
fails(AssertionError, optimizer.zero_grad, "before optimizer.step()")
fails(AssertionError, lambda: model(torch.ones(1, 2)).sum().backward(), "more than backward_passes_per_step=1")
optimizer.step()

assert torch.equal(hvd.allreduce(one, op=hvd.Sum), one * size)
print(f"rank {rank} of {size} is done", flush=True)

if sys.argv[1:2] == ["stall"]:  # rank 1 never submits it: the job's environment says when it is told and ended
    told = Path(sys.argv[2])
    if rank != 1:
        fails(lost, lambda: hvd.allreduce(one, name="late"), "'late'", "rank 1")
        told.touch()
    while not told.exists():
        time.sleep(0.01)
    assert torch.equal(hvd.allreduce(one, op=hvd.Sum, name="after"), one * size)
    print(f"rank {rank} of {size} went on", flush=True)
if sys.argv[1:] == ["memory"]:  # rank 1 cannot hold the result of an operation that all have agreed on
    mine = torch.ones(8 << 20)
    if rank == 1:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), resource.RLIM_INFINITY))
    fails(lost, lambda: hvd.allgather(mine, name="large"), "allgather 'large'")
    fails(lost, lambda: hvd.allreduce(one), "allreduce")
    print(f"rank {rank} of {size} was told", flush=True)
    os._exit(0)
if sys.argv[1:] == ["leave"]:
    if rank == 1:
        sys.exit(0)
    fails(lost, lambda: hvd.allreduce(one, name="late"), "'late'", "rank 1")
    print(f"rank {rank} of {size} was told", flush=True)
