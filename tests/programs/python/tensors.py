"""A rank: torch tensors, in place and as results, and those that are refused."""

import torch
from checks import refused

import dtrun

INVALID = dtrun.InvalidArgument


def results(world):
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.complex64):
        mine = torch.ones(3, dtype=dtype)
        assert world.allreduce(mine) is mine
        assert torch.equal(mine, torch.full((3,), world.size, dtype=dtype)), dtype
    got = world.allgather(torch.full((2, 2), float(world.rank)))
    assert got.shape == (world.size, 2, 2) and got[:, 0, 0].tolist() == list(range(world.size))
    assert world.reduce_scatter(torch.ones(world.size, 3)).shape == (1, 3)
    weight = torch.nn.Parameter(torch.full((2,), float(world.rank)))
    world.broadcast(weight, root=world.size - 1)
    assert weight.tolist() == [world.size - 1] * 2 and weight.requires_grad
    shared = torch.arange(6.0).reshape(2, 3)
    world.allreduce(shared[1])
    assert shared.tolist() == [[0, 1, 2], [3 * world.size, 4 * world.size, 5 * world.size]]
    assert world.allreduce(torch.ones(())).shape == ()


def refusals(world):
    complex_values = torch.ones(2, dtype=torch.complex64) * 1j
    refused(lambda: world.allreduce(complex_values.conj()), "lazy conjugate", "resolve_conj()", error=INVALID)
    refused(lambda: world.allreduce(complex_values[:1].conj().imag), "lazy", "resolve_neg()", error=INVALID)
    refused(lambda: world.allreduce(torch.ones(2, 3).t()), "of shape (3, 2) is not contiguous", "tensor.contiguous()", error=INVALID)
    refused(lambda: world.allreduce(torch.ones(1).expand(4)), "is not contiguous", error=INVALID)
    refused(lambda: world.allreduce(torch.ones(2, device="meta")), "is on meta", error=INVALID)
    refused(lambda: world.allreduce(torch.eye(2).to_sparse()), "is sparse", "to_dense()", error=INVALID)
    refused(lambda: world.allreduce(torch.zeros(2, dtype=torch.complex32)), "has the type torch.complex32", error=INVALID)


with dtrun.init() as world:
    for check in (results, refusals):
        check(world)
    world.barrier()
    print(f"rank {world.rank} of {world.size} is done")
