"""Sparse tensors: DDP reduces the gradients of torch.nn.Embedding(sparse=True) as such."""

import torch

from .. import errors
from ..operations import ALLGATHER, ALLGATHERV
from ..operations import REDUCTIONS as _NUMBERS
from .submit import submit


def allreduce(comm, tensor, number, timeout_ns):
    """The sum of the sparse `tensor` of all ranks, in place; blocks. Ranks may have other indices, and as many as they like."""
    if number != _NUMBERS["sum"]:
        raise errors.Unsupported("allreduce: sparse tensors can only be summed; use ReduceOp.SUM")
    mine = tensor.detach().coalesce()
    lengths = torch.empty(comm.size, dtype=torch.int64)
    here = torch.tensor([mine._nnz()])
    submit(comm, "allreduce", ALLGATHER, here, lengths, wait=True, timeout_ns=timeout_ns, count=1)
    lengths = lengths.tolist()
    indices = _gather(comm, mine.indices().t(), lengths, timeout_ns).t()
    values = _gather(comm, mine.values(), lengths, timeout_ns)
    with torch.no_grad():
        tensor.copy_(torch.sparse_coo_tensor(indices, values, tensor.shape, check_invariants=False).coalesce())


def _gather(comm, rows, lengths, timeout_ns):
    rows = rows.contiguous()
    width = rows[0].numel() if len(rows) else rows.new_empty((1, *rows.shape[1:])).numel()
    every = rows.new_empty((sum(lengths), *rows.shape[1:]))
    counts = [length * width for length in lengths]
    submit(comm, "allreduce", ALLGATHERV, rows, every, wait=True, timeout_ns=timeout_ns, count=rows.numel(), recv_counts=counts)
    return every
