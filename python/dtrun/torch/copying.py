"""Operations that copy: broadcast, allgather, gather, scatter, all_to_all, and messages between two ranks. Messages start at once,
and their futures complete in any order."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence, Tuple

import torch

from .. import errors
from ..operations import ALLGATHER, ALLGATHERV, ALLTOALLV, ANY_SOURCE, BROADCAST, GATHER, RECV, SCATTER, SEND, integer
from . import tensors as t
from .launching import Launching
from .tensors import Target, Tensors
from .work import Work


class Copying(Launching):
    def broadcast(self, tensors: Tensors, opts: Any = None, timeout: Any = None, root: int = 0) -> Work:
        """Every rank gets the root's tensor."""
        tensor = t.single("broadcast", tensors)
        opts, root = _root(opts, root)
        dense, finish = t.in_place("broadcast", tensor)
        return self._launch("broadcast", opts, BROADCAST, None, dense, [finish], [tensor], count=dense.numel(), root=root)

    def allgather(self, outputs: List[Tensors], inputs: Tensors, opts: Any = None, timeout: Any = None) -> Work:
        """outputs[0][r] on every rank = inputs[0] of rank r; sizes may differ between ranks."""
        targets, source = t.only("allgather", outputs), t.single("allgather", inputs)
        t.check_one_for_each("allgather", "outputs", targets, self.comm.size)
        own = targets[self.comm.rank].numel()
        if own != source.numel():
            raise errors.InvalidArgument(
                f"allgather: output {self.comm.rank} has {own} elements, and this rank sends {source.numel()}"
            )
        t.check_same_type("allgather", source, targets[0])
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
        t.check_same_type(what, source, output)
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
        flat, finish, targets = None, None, t.only("gather", outputs)
        if root == self.comm.rank:
            t.check_one_for_each("gather", "outputs", targets, self.comm.size)
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
            sources = t.only("scatter", inputs)
            t.check_one_for_each("scatter", "inputs", sources, self.comm.size)
            _equal("scatter", sources, output)
            flat = t.flat_source("scatter", sources)
        dense, finish = t.target("scatter", output)
        return self._launch("scatter", opts, SCATTER, flat, dense, [finish], [output], count=dense.numel(), root=root)

    # ---- different data for each rank

    def alltoall(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor], opts: Any = None) -> Work:
        """outputs[r] = inputs[rank] of rank r; sizes may differ."""
        t.check_one_for_each("all_to_all", "outputs", outputs, self.comm.size)
        t.check_one_for_each("all_to_all", "inputs", inputs, self.comm.size)
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
        t.check_same_type(what, send, recv)
        return self._launch(
            what, opts, ALLTOALLV, send, recv, [finish], result, send_counts=send_counts, recv_counts=recv_counts
        )

    # ---- messages

    def send(self, tensors: List[torch.Tensor], peer: int, tag: int = 0) -> Work:
        """Sends to `peer`, which receives the same number of elements with the same tag."""
        dense = t.source("send", t.single("send", tensors))
        return self._launch(
            "send", None, SEND, dense, None, [], list(tensors), ordered=False, count=dense.numel(), peer=peer,
            tag=_checked("send", tag),
        )  # fmt: skip

    def recv(self, tensors: List[torch.Tensor], peer: int, tag: int = 0) -> Work:
        """Receives from `peer`."""
        return self._recv(tensors, peer, tag)

    def recv_anysource(self, tensors: List[torch.Tensor], tag: int = 0) -> Work:
        """Receives from any rank that sends with this tag; the Work's source_rank() is the sender."""
        return self._recv(tensors, ANY_SOURCE, tag, ctypes.c_int32(-1))

    def _recv(self, tensors: List[torch.Tensor], peer: int, tag: int, source: Optional[ctypes.c_int32] = None) -> Work:
        dense, finish = t.target("recv", t.single("recv", tensors))
        return self._launch(
            "recv", None, RECV, None, dense, [finish], list(tensors), ordered=False,
            count=dense.numel(), peer=peer, tag=_checked("recv", tag), source=source,
        )  # fmt: skip


def _root(opts: Any, root: int) -> Tuple[Any, int]:
    """The root; torch passes it in opts, in place of opts, or by name."""
    if isinstance(opts, int):
        return None, opts
    return opts, root if opts is None else opts.rootRank


def _equal(what: str, tensors: Sequence[torch.Tensor], like: torch.Tensor) -> None:
    for r, tensor in enumerate(tensors):
        if tensor.numel() != like.numel() or tensor.dtype != like.dtype:
            raise errors.InvalidArgument(
                f"{what}: tensor {r} of the list has {tensor.numel()} elements of {tensor.dtype}, "
                f"and needs {like.numel()} of {like.dtype}"
            )


def _checked(what: str, tag: int) -> int:
    """Checks a tag: torch allows 64 bits, dtrun's messages 32."""
    return integer(what, "tag", tag, 0, 2**32 - 1)
