"""Sparse tensors: DDP reduces the gradients of torch.nn.Embedding(sparse=True) as such."""

from __future__ import annotations

import torch

from .. import errors
from ..operations import ALLGATHER, ALLGATHERV
from ..operations import REDUCTIONS as _NUMBERS
from .submit import submit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from ..communicator import Communicator

# Without it torch 2 warns.
_UNCHECKED: Any = {"check_invariants": False} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}


def allreduce(comm: Communicator, tensor: torch.Tensor, number: int, timeout_ns: int) -> None:
    """The sum of the sparse `tensor` of all ranks, in place; blocks. Indices and their number may differ between ranks."""
    if number != _NUMBERS["sum"]:
        raise errors.Unsupported("allreduce: sparse tensors can only be summed; use ReduceOp.SUM")
    mine = tensor.detach().coalesce()
    gathered = torch.empty(comm.size, dtype=torch.int64)
    here = torch.tensor([mine._nnz()])
    submit(comm, "allreduce", ALLGATHER, here, gathered, wait=True, timeout_ns=timeout_ns, count=1)
    lengths = gathered.tolist()
    indices = _gather(comm, mine.indices().t(), lengths, timeout_ns).t()
    values = _gather(comm, mine.values(), lengths, timeout_ns)
    with torch.no_grad():
        tensor.copy_(torch.sparse_coo_tensor(indices, values, tensor.shape, **_UNCHECKED).coalesce())


def _gather(comm: Communicator, rows: torch.Tensor, lengths: List[int], timeout_ns: int) -> torch.Tensor:
    rows = rows.contiguous()
    width = rows[0].numel() if len(rows) else rows.new_empty((1, *rows.shape[1:])).numel()
    every = rows.new_empty((sum(lengths), *rows.shape[1:]))
    counts = [length * width for length in lengths]
    submit(comm, "allreduce", ALLGATHERV, rows, every, wait=True, timeout_ns=timeout_ns, count=rows.numel(), recv_counts=counts)
    return every
