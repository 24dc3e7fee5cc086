"""Collectives in which every rank sends different data to each rank."""

from __future__ import annotations

from .. import errors
from ..operations import ALLTOALLV
from . import tensors as t
from .launching import Launching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Sequence

    import torch

    from .tensors import Target
    from .work import Work


class Exchange(Launching):
    def alltoall(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor], opts: Any = None) -> Work:
        """outputs[r] = inputs[rank] of rank r; sizes may differ."""
        size = self.comm.size
        for name, tensors in (("outputs", outputs), ("inputs", inputs)):
            if len(tensors) != size:
                raise errors.InvalidArgument(f"all_to_all: {len(tensors)} {name} for {size} ranks; give one tensor for each")
        target, source = t.flat_target("all_to_all", outputs), t.flat_source("all_to_all", inputs)
        return self._alltoall(
            "all_to_all", opts, target, source, list(outputs),
            [tensor.numel() for tensor in outputs], [tensor.numel() for tensor in inputs],
        )  # fmt: skip

    def alltoall_base(
        self, output: torch.Tensor, source: torch.Tensor, output_splits: Sequence[int] = (), input_splits: Sequence[int] = (),
        opts: Any = None, timeout: Any = None,
    ) -> Work:  # fmt: skip
        """Part r of output = part `rank` of `source` of rank r. Splits are rows for each rank; none: equal parts."""
        what = "all_to_all_single"
        recv_counts = t.rows(what, output, output_splits, self.comm.size, "output")
        send_counts = t.rows(what, source, input_splits, self.comm.size, "input")
        return self._alltoall(what, opts, t.target(what, output), t.source(what, source), [output], recv_counts, send_counts)

    all_to_all_single = alltoall_base

    def _alltoall(
        self, what: str, opts: Any, target: Target, send: torch.Tensor, result: List[torch.Tensor], recv_counts: List[int],
        send_counts: List[int],
    ) -> Work:  # fmt: skip
        recv, finish = target
        if recv.dtype != send.dtype:
            raise errors.InvalidArgument(f"{what}: the input is {send.dtype} and the output {recv.dtype}")
        return self._launch(
            what, opts, ALLTOALLV, send, recv, [finish], result, send_counts=send_counts, recv_counts=recv_counts
        )
