"""Collectives that reduce."""

from __future__ import annotations

import torch
from torch.distributed import ReduceOp

from .. import errors
from ..operations import ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTERV
from . import sparse
from . import tensors as t
from .launching import Launching
from .reductions import reduction
from .work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    Tensors = List[torch.Tensor]


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
        number, factor = reduction("allreduce", op)
        if tensor.layout is torch.sparse_coo and factor is None:
            sparse.allreduce(self.comm, tensor, number, self._timeout_ns)
            return self._keep(Work([], [tensor], follow=self._follow))
        dense, finish = t.in_place("allreduce", tensor)
        if factor is not None:
            dense.mul_(factor)
        return self._launch("allreduce", opts, ALLREDUCE, dense, dense, [finish], [tensor], count=dense.numel(), reduce=number)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        """allreduce of each of `tensors`; tensors of one type travel together."""
        op, opts = _op(opts, ReduceOp.SUM)
        number, factor = reduction("allreduce_coalesced", op)
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
        number, factor = reduction("reduce", op)
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
        output, sources = t.single("reduce_scatter", outputs), only("reduce_scatter", inputs)
        op, opts = _op(opts, op)
        if len(sources) != self.comm.size:
            raise errors.InvalidArgument(
                f"reduce_scatter: {len(sources)} tensors to reduce for {self.comm.size} ranks; give one for each"
            )
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
        number, factor = reduction(what, op)
        if output.dtype != source.dtype:
            raise errors.InvalidArgument(f"{what}: the input is {source.dtype} and the output {output.dtype}")
        source = _scaled(source, factor)
        dense, finish = t.target(what, output)
        kind = REDUCE_SCATTER if counts is None else REDUCE_SCATTERV
        return self._launch(
            what, opts, kind, source, dense, [finish], [output], count=dense.numel(), reduce=number, recv_counts=counts
        )


def only(what: str, lists: Any) -> Tensors:
    """The list of a list of lists, which is how torch passes it; or the list itself."""
    if lists and isinstance(lists[0], (list, tuple)):
        if len(lists) != 1:
            raise errors.InvalidArgument(f"{what}: {len(lists)} lists of tensors; the backend dtrun takes one")
        return list(lists[0])
    return list(lists)
