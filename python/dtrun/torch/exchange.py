"""Collectives in which every rank sends something else to each."""

from .. import errors
from ..operations import ALLTOALLV
from . import tensors as t


class Exchange:
    def alltoall(self, outputs, inputs, opts=None):
        """outputs[r] = inputs[rank] of rank r; sizes may differ."""
        size = self.comm.size
        for name, tensors in (("outputs", outputs), ("inputs", inputs)):
            if len(tensors) != size:
                raise errors.InvalidArgument(f"all_to_all: {len(tensors)} {name} for {size} ranks; give one tensor for each")
        flat, finish = t.flat_target("all_to_all", outputs)
        source = t.flat_source("all_to_all", inputs)
        return self._alltoall(
            "all_to_all", opts, flat, source, [finish], list(outputs),
            [tensor.numel() for tensor in outputs], [tensor.numel() for tensor in inputs],
        )  # fmt: skip

    def alltoall_base(self, output, source, output_splits=(), input_splits=(), opts=None, timeout=None):
        """Part r of output = part `rank` of `source` of rank r. Splits are rows for each rank; none: equal parts."""
        what = "all_to_all_single"
        recv_counts = t.rows(what, output, output_splits, self.comm.size, "output")
        send_counts = t.rows(what, source, input_splits, self.comm.size, "input")
        dense, finish = t.target(what, output)
        return self._alltoall(what, opts, dense, t.source(what, source), [finish], [output], recv_counts, send_counts)

    all_to_all_single = alltoall_base

    def _alltoall(self, what, opts, recv, send, finish, result, recv_counts, send_counts):
        if recv.dtype != send.dtype:
            raise errors.InvalidArgument(f"{what}: the input is {send.dtype} and the output {recv.dtype}")
        return self._launch(what, opts, ALLTOALLV, send, recv, finish, result, send_counts=send_counts, recv_counts=recv_counts)
