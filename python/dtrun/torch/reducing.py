"""Collectives that reduce, and torch's ReduceOp as dtrun's reductions."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch.distributed import ReduceOp

from .. import errors
from ..communicator import Communicator
from ..operations import ALLGATHER, ALLGATHERV, ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTERV, REDUCTIONS
from . import tensors as t
from .launching import Launching, submit
from .tensors import Tensors
from .work import Work

_NAMES = {name: {"PRODUCT": "prod"}.get(name, name.lower()) for name in ("SUM", "PRODUCT", "MIN", "MAX", "AVG", "BAND", "BOR", "BXOR")}
# Without it torch 2 warns.
_UNCHECKED: Any = {"check_invariants": False} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}


def _kind(op: Any) -> Any:
    """Without the factor that an op may have."""
    return getattr(op, "op", op)


NUMBERS: Dict[Any, int] = {_kind(getattr(ReduceOp, name)): REDUCTIONS[ours] for name, ours in _NAMES.items()}


def _reduction(what: str, op: Any) -> Tuple[int, Optional[Any]]:
    """(number of the reduction, factor to multiply the elements with first or None)."""
    kind = _kind(op)
    number = NUMBERS.get(kind)
    if number is not None:
        return number, None
    if kind == _kind(ReduceOp.PREMUL_SUM):
        state = None if hasattr(op, "factor") else op.__getstate__()
        if state is None and not hasattr(op, "factor"):
            raise errors.Unsupported(f"{what}: this torch does not tell the factor of PREMUL_SUM; multiply first, and use SUM")
        return REDUCTIONS["sum"], state[1] if state else op.factor
    raise errors.Unsupported(f"{what}: the backend dtrun has no reduction {kind}; it has {', '.join(_NAMES)} and PREMUL_SUM")


def _op(opts: Any, op: Any) -> Tuple[Any, Any]:
    """The ReduceOp of a call; torch passes it in opts, as a separate argument, or in place of opts."""
    if opts is not None and hasattr(opts, "reduceOp"):
        return opts.reduceOp, opts
    return (opts if opts is not None else op), None


def _scaled(tensor: torch.Tensor, factor: Any) -> torch.Tensor:
    return tensor if factor is None else tensor.detach() * factor


class Reducing(Launching):
    def _allreduce(self, tensors: Tensors, opts: Any = None, timeout: Any = None, op: Any = ReduceOp.SUM) -> Work:
        tensor = t.single("allreduce", tensors)
        op, opts = _op(opts, op)
        number, factor = _reduction("allreduce", op)
        if tensor.layout is torch.sparse_coo and factor is None:
            _allreduce_sparse(self.comm, tensor, number, self._timeout_ns)
            return self._keep(Work([], [tensor], follow=self._follow))
        dense, finish = t.in_place("allreduce", tensor)
        if factor is not None:
            dense.mul_(factor)
        return self._launch("allreduce", opts, ALLREDUCE, dense, dense, [finish], [tensor], count=dense.numel(), reduce=number)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        """allreduce of each of `tensors`; tensors of one type travel together."""
        op, opts = _op(opts, ReduceOp.SUM)
        number, factor = _reduction("allreduce_coalesced", op)
        by_type: Dict[torch.dtype, Tensors] = {}
        for tensor in tensors:
            t.check("allreduce_coalesced", tensor)
            by_type.setdefault(tensor.dtype, []).append(tensor)
        works = []
        for some in by_type.values():
            source = _scaled(t.flat_source("allreduce_coalesced", some), factor)
            flat, finish = t.flat_target("allreduce_coalesced", some)
            works.append(self._launch(
                "allreduce_coalesced", opts, ALLREDUCE, source, flat, [finish], some, count=flat.numel(), reduce=number
            ))  # fmt: skip
        return self._join(works, list(tensors))

    def reduce(
        self, tensors: Tensors, opts: Any = None, op: Any = ReduceOp.SUM, timeout: Any = None, root: int = 0
    ) -> Work:
        """The root gets the reduction of the tensor; others keep theirs."""
        tensor = t.single("reduce", tensors)
        if isinstance(opts, int):
            root, opts = opts, None
        root = getattr(opts, "rootRank", root)
        op, opts = _op(opts, op)
        number, factor = _reduction("reduce", op)
        dense, finish = t.in_place("reduce", tensor)
        source = _scaled(dense, factor)
        here = root == self.comm.rank
        return self._launch(
            "reduce", opts, REDUCE, source, dense if here else None, [finish] if here else [], [tensor],
            count=dense.numel(), reduce=number, root=root,
        )  # fmt: skip

    def reduce_scatter(
        self, outputs: Tensors, inputs: List[Tensors], opts: Any = None, op: Any = ReduceOp.SUM, timeout: Any = None
    ) -> Work:
        """outputs[0] of rank r = reduction of inputs[0][r]; sizes may differ between ranks."""
        output, sources = t.single("reduce_scatter", outputs), t.only("reduce_scatter", inputs)
        op, opts = _op(opts, op)
        t.check_one_for_each("reduce_scatter", "tensors to reduce", sources, self.comm.size)
        own = sources[self.comm.rank].numel()
        if own != output.numel():
            raise errors.InvalidArgument(
                f"reduce_scatter: the output has {output.numel()} elements, and input {self.comm.rank} has {own}"
            )
        source = t.flat_source("reduce_scatter", sources)
        return self._reduce_scatter("reduce_scatter", output, source, op, opts, t.counts(sources))

    def _reduce_scatter_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Work:
        """output of rank r = reduction of part r of `source`, which has equal parts."""
        op, opts = _op(opts, ReduceOp.SUM)
        if source.numel() != output.numel() * self.comm.size:
            raise errors.InvalidArgument(
                f"reduce_scatter_tensor: the input has {source.numel()} elements, "
                f"and must have {output.numel()} for each of {self.comm.size} ranks"
            )
        return self._reduce_scatter("reduce_scatter_tensor", output, t.source("reduce_scatter_tensor", source), op, opts)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        """As reduce_scatter_single of each pair."""
        return self._join([self._reduce_scatter_base(*pair, opts) for pair in zip(outputs, inputs)], list(outputs))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _reduce_scatter(
        self, what: str, output: torch.Tensor, source: torch.Tensor, op: Any, opts: Any, counts: Optional[List[int]] = None
    ) -> Work:
        number, factor = _reduction(what, op)
        t.check_same_type(what, source, output)
        source = _scaled(source, factor)
        dense, finish = t.target(what, output)
        kind = REDUCE_SCATTER if counts is None else REDUCE_SCATTERV
        return self._launch(
            what, opts, kind, source, dense, [finish], [output], count=dense.numel(), reduce=number, recv_counts=counts
        )


# ---- sparse tensors: DDP reduces the gradients of torch.nn.Embedding(sparse=True) as such


def _allreduce_sparse(comm: Communicator, tensor: torch.Tensor, number: int, timeout_ns: int) -> None:
    """The sum of the sparse `tensor` of all ranks, in place; blocks. Indices and their number may differ between ranks."""
    if number != REDUCTIONS["sum"]:
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
