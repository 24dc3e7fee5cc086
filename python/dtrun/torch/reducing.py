"""Collectives that reduce."""

import torch
from torch.distributed import ReduceOp

from .. import errors
from ..operations import ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTERV
from . import sparse
from . import tensors as t
from .reductions import reduction
from .work import Work


def _op(opts, op):
    """The ReduceOp of a call: torch passes it in opts, or as an argument of its own, or in the place of opts."""
    if opts is not None and hasattr(opts, "reduceOp"):
        return opts.reduceOp, opts
    return (opts if opts is not None else op), None


def _scaled(tensor, factor):
    return tensor if factor is None else tensor.detach() * factor


class Reducing:
    def _allreduce(self, tensors, opts=None, timeout=None, op=ReduceOp.SUM):
        tensor = t.single("allreduce", tensors)
        op, opts = _op(opts, op)
        number, factor = reduction("allreduce", op)
        if tensor.layout is torch.sparse_coo and tensor.is_cpu and factor is None:
            sparse.allreduce(self.comm, tensor, number, self._timeout_ns)
            return Work([], [tensor])
        dense, finish = t.in_place("allreduce", tensor)
        if factor is not None:
            dense.mul_(factor)
        return self._launch("allreduce", opts, ALLREDUCE, dense, dense, [finish], [tensor], count=dense.numel(), reduce=number)

    def allreduce_coalesced(self, tensors, opts=None):
        """As allreduce of each of `tensors`; those of one type go as one."""
        op, opts = _op(opts, ReduceOp.SUM)
        number, factor = reduction("allreduce_coalesced", op)
        by_type = {}
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

    def reduce(self, tensors, opts=None, op=ReduceOp.SUM, timeout=None, root=0):
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

    def reduce_scatter(self, outputs, inputs, opts=None, op=ReduceOp.SUM, timeout=None):
        """outputs[0] of rank r = reduction of inputs[0][r]; sizes may differ between ranks."""
        output, inputs = t.single("reduce_scatter", outputs), _only("reduce_scatter", inputs)
        op, opts = _op(opts, op)
        if len(inputs) != self.comm.size:
            raise errors.InvalidArgument(
                f"reduce_scatter: {len(inputs)} tensors to reduce for {self.comm.size} ranks; give one for each"
            )
        if inputs[self.comm.rank].numel() != output.numel():
            raise errors.InvalidArgument(
                f"reduce_scatter: the output has {output.numel()} elements, "
                f"and input {self.comm.rank} has {inputs[self.comm.rank].numel()}"
            )
        return self._reduce_scatter(
            "reduce_scatter", output, t.flat_source("reduce_scatter", inputs), op, opts, t.counts(inputs)
        )

    def _reduce_scatter_base(self, output, source, opts=None):
        """output of rank r = reduction of part r of `source`, which has equal parts."""
        op, opts = _op(opts, ReduceOp.SUM)
        if source.numel() != output.numel() * self.comm.size:
            raise errors.InvalidArgument(
                f"reduce_scatter_tensor: the input has {source.numel()} elements, "
                f"and must have {output.numel()} for each of {self.comm.size} ranks"
            )
        return self._reduce_scatter("reduce_scatter_tensor", output, t.source("reduce_scatter_tensor", source), op, opts)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        """As reduce_scatter_single of each pair."""
        return self._join([self._reduce_scatter_base(*pair, opts) for pair in zip(outputs, inputs)], list(outputs))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _reduce_scatter(self, what, output, source, op, opts, counts=None):
        number, factor = reduction(what, op)
        if output.dtype != source.dtype:
            raise errors.InvalidArgument(f"{what}: the input is {source.dtype} and the output {output.dtype}")
        source = _scaled(source, factor)
        dense, finish = t.target(what, output)
        kind = REDUCE_SCATTER if counts is None else REDUCE_SCATTERV
        return self._launch(
            what, opts, kind, source, dense, [finish], [output], count=dense.numel(), reduce=number, recv_counts=counts
        )


def _only(what, lists):
    """The list of a list of lists, which is how torch passes it; or the list itself."""
    if lists and isinstance(lists[0], (list, tuple)):
        if len(lists) != 1:
            raise errors.InvalidArgument(f"{what}: {len(lists)} lists of tensors; the backend dtrun takes one")
        return lists[0]
    return lists
