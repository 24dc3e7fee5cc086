"""Collectives that copy: broadcast, allgather, gather, scatter."""

from __future__ import annotations

from .. import errors
from ..operations import ALLGATHER, ALLGATHERV, BROADCAST, GATHER, SCATTER
from . import tensors as t
from .launching import Launching
from .reducing import only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Sequence, Tuple

    import torch

    from .work import Work

    Tensors = List[torch.Tensor]


class Gathering(Launching):
    def broadcast(self, tensors: Tensors, opts: Any = None, timeout: Any = None, root: int = 0) -> Work:
        """Every rank gets the root's tensor."""
        tensor = t.single("broadcast", tensors)
        opts, root = _root(opts, root)
        dense, finish = t.in_place("broadcast", tensor)
        return self._launch("broadcast", opts, BROADCAST, None, dense, [finish], [tensor], count=dense.numel(), root=root)

    def allgather(self, outputs: List[Tensors], inputs: Tensors, opts: Any = None, timeout: Any = None) -> Work:
        """outputs[0][r] on every rank = inputs[0] of rank r; sizes may differ between ranks."""
        targets, source = only("allgather", outputs), t.single("allgather", inputs)
        _parts("allgather", "outputs", targets, self.comm.size)
        own = targets[self.comm.rank].numel()
        if own != source.numel():
            raise errors.InvalidArgument(
                f"allgather: output {self.comm.rank} has {own} elements, and this rank sends {source.numel()}"
            )
        _same_type("allgather", source, targets[0])
        flat, finish = t.flat_target("allgather", targets)
        counts = t.counts(targets)
        dense = t.source("allgather", source)
        return self._launch(
            "allgather", opts, ALLGATHER if counts is None else ALLGATHERV, dense, flat, [finish], list(targets),
            count=dense.numel(), recv_counts=counts,
        )  # fmt: skip

    def _allgather_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Work:
        """output on every rank = `source` of rank 0, of rank 1, ..."""
        what = "all_gather_into_tensor"
        if output.numel() != source.numel() * self.comm.size:
            raise errors.InvalidArgument(
                f"{what}: the output has {output.numel()} elements, "
                f"and must have {source.numel()} for each of {self.comm.size} ranks"
            )
        _same_type(what, source, output)
        dense, finish = t.target(what, output)
        source = t.source(what, source)
        return self._launch(what, opts, ALLGATHER, source, dense, [finish], [output], count=source.numel())

    all_gather_single = _allgather_base

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        """As all_gather_single of each pair."""
        return self._join([self._allgather_base(*pair, opts) for pair in zip(outputs, inputs)], list(outputs))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(self, output_lists: List[Tensors], inputs: Tensors, opts: Any = None) -> Work:
        """output_lists[r][i] = inputs[i] of rank r."""
        works = [self.allgather([[row[i] for row in output_lists]], [tensor], opts) for i, tensor in enumerate(inputs)]
        return self._join(works, [tensor for row in output_lists for tensor in row])

    def gather(self, outputs: List[Tensors], inputs: Tensors, opts: Any = None, timeout: Any = None, root: int = 0) -> Work:
        """outputs[0][r] on the root = inputs[0] of rank r."""
        source = t.single("gather", inputs)
        opts, root = _root(opts, root)
        flat, finish, targets = None, None, only("gather", outputs)
        if root == self.comm.rank:
            _parts("gather", "outputs", targets, self.comm.size)
            _equal("gather", targets, source)
            flat, finish = t.flat_target("gather", targets)
        dense = t.source("gather", source)
        return self._launch("gather", opts, GATHER, dense, flat, [finish], list(targets), count=dense.numel(), root=root)

    def scatter(self, outputs: Tensors, inputs: List[Tensors], opts: Any = None, timeout: Any = None, root: int = 0) -> Work:
        """outputs[0] of rank r = inputs[0][r] of the root."""
        output = t.single("scatter", outputs)
        opts, root = _root(opts, root)
        flat = None
        if root == self.comm.rank:
            sources = only("scatter", inputs)
            _parts("scatter", "inputs", sources, self.comm.size)
            _equal("scatter", sources, output)
            flat = t.flat_source("scatter", sources)
        dense, finish = t.target("scatter", output)
        return self._launch("scatter", opts, SCATTER, flat, dense, [finish], [output], count=dense.numel(), root=root)


def _root(opts: Any, root: int) -> Tuple[Any, int]:
    """The root; torch passes it in opts, in place of opts, or by name."""
    if isinstance(opts, int):
        return None, opts
    return opts, root if opts is None else opts.rootRank


def _parts(what: str, name: str, tensors: Sequence[torch.Tensor], size: int) -> None:
    if len(tensors) != size:
        raise errors.InvalidArgument(f"{what}: {len(tensors)} {name} for {size} ranks; give one tensor for each")


def _same_type(what: str, source: torch.Tensor, target: torch.Tensor) -> None:
    if source.dtype != target.dtype:
        raise errors.InvalidArgument(f"{what}: the input is {source.dtype} and the output {target.dtype}")


def _equal(what: str, tensors: Sequence[torch.Tensor], like: torch.Tensor) -> None:
    for r, tensor in enumerate(tensors):
        if tensor.numel() != like.numel() or tensor.dtype != like.dtype:
            raise errors.InvalidArgument(
                f"{what}: tensor {r} of the list has {tensor.numel()} elements of {tensor.dtype}, "
                f"and needs {like.numel()} of {like.dtype}"
            )
