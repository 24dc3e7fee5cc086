"""Collectives that copy: broadcast, allgather, gather, scatter."""

from .. import errors
from ..operations import ALLGATHER, ALLGATHERV, BROADCAST, GATHER, SCATTER
from . import tensors as t
from .reducing import _only


class Gathering:
    def broadcast(self, tensors, opts=None, timeout=None, root=0):
        """Every rank gets the root's tensor."""
        tensor = t.single("broadcast", tensors)
        opts, root = _root(opts, root)
        dense, finish = t.in_place("broadcast", tensor)
        return self._launch("broadcast", opts, BROADCAST, None, dense, [finish], [tensor], count=dense.numel(), root=root)

    def allgather(self, outputs, inputs, opts=None, timeout=None):
        """outputs[0][r] on every rank = inputs[0] of rank r; sizes may differ between ranks."""
        outputs, source = _only("allgather", outputs), t.single("allgather", inputs)
        _parts("allgather", "outputs", outputs, self.comm.size)
        if outputs[self.comm.rank].numel() != source.numel():
            raise errors.InvalidArgument(
                f"allgather: output {self.comm.rank} has {outputs[self.comm.rank].numel()} elements, "
                f"and this rank sends {source.numel()}"
            )
        _same_type("allgather", source, outputs[0])
        flat, finish = t.flat_target("allgather", outputs)
        counts = t.counts(outputs)
        dense = t.source("allgather", source)
        return self._launch(
            "allgather", opts, ALLGATHER if counts is None else ALLGATHERV, dense, flat, [finish], list(outputs),
            count=dense.numel(), recv_counts=counts,
        )  # fmt: skip

    def _allgather_base(self, output, source, opts=None):
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

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        """As all_gather_single of each pair."""
        return self._join([self._allgather_base(*pair, opts) for pair in zip(outputs, inputs)], list(outputs))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(self, output_lists, inputs, opts=None):
        """output_lists[r][i] = inputs[i] of rank r."""
        works = [self.allgather([[row[i] for row in output_lists]], [tensor], opts) for i, tensor in enumerate(inputs)]
        return self._join(works, [tensor for row in output_lists for tensor in row])

    def gather(self, outputs, inputs, opts=None, timeout=None, root=0):
        """outputs[0][r] on the root = inputs[0] of rank r."""
        source = t.single("gather", inputs)
        opts, root = _root(opts, root)
        flat, finish, outputs = None, None, _only("gather", outputs)
        if root == self.comm.rank:
            _parts("gather", "outputs", outputs, self.comm.size)
            _equal("gather", outputs, source)
            flat, finish = t.flat_target("gather", outputs)
        dense = t.source("gather", source)
        return self._launch("gather", opts, GATHER, dense, flat, [finish], list(outputs), count=dense.numel(), root=root)

    def scatter(self, outputs, inputs, opts=None, timeout=None, root=0):
        """outputs[0] of rank r = inputs[0][r] of the root."""
        output = t.single("scatter", outputs)
        opts, root = _root(opts, root)
        flat = None
        if root == self.comm.rank:
            inputs = _only("scatter", inputs)
            _parts("scatter", "inputs", inputs, self.comm.size)
            _equal("scatter", inputs, output)
            flat = t.flat_source("scatter", inputs)
        dense, finish = t.target("scatter", output)
        return self._launch("scatter", opts, SCATTER, flat, dense, [finish], [output], count=dense.numel(), root=root)


def _root(opts, root):
    """torch passes the root in opts, or in their place, or by name."""
    if isinstance(opts, int):
        return None, opts
    return opts, root if opts is None else opts.rootRank


def _parts(what, name, tensors, size):
    if len(tensors) != size:
        raise errors.InvalidArgument(f"{what}: {len(tensors)} {name} for {size} ranks; give one tensor for each")


def _same_type(what, source, target):
    if source.dtype != target.dtype:
        raise errors.InvalidArgument(f"{what}: the input is {source.dtype} and the output {target.dtype}")


def _equal(what, tensors, like):
    for r, tensor in enumerate(tensors):
        if tensor.numel() != like.numel() or tensor.dtype != like.dtype:
            raise errors.InvalidArgument(
                f"{what}: tensor {r} of the list has {tensor.numel()} elements of {tensor.dtype}, "
                f"and needs {like.numel()} of {like.dtype}"
            )
