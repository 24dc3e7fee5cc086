"""Runs agreed operations on tensors of any framework, one after the other, on the controller's thread.

layers.py finds the module with the framework's tensor functions.
"""

import functools
import math
import time
from typing import Any, Callable, Dict, List, Tuple

from .. import errors
from . import reduction
from .controller import Agreed, Controller
from .layers import Layer, layer_of
from .negotiation import Decision
from .reductions import Adasum
from .request import Request
from .signature import Signature
from .timeline import timeline

_ALONE_BYTES = 1 << 20  # a tensor of this size gains nothing from fusion


def execute(controller: Controller, agreed: List[Agreed]) -> None:
    for batch in _batches(agreed, controller.settings.fusion_bytes):
        layer = layer_of(batch[0][0].signature)
        requests = [request for _, request in batch if request is not None]
        begin = time.monotonic()
        try:
            results = layer.run(requests, functools.partial(_run, controller, layer, batch))
        except (errors.InvalidArgument, errors.Unsupported) as refused:  # the same on every rank, and nothing has started
            for request in requests:
                request.fail(f"{request.signature.called}: {refused}")
            continue
        timeline.ran([decision for decision, _ in batch], begin)
        for request, result in zip(requests, results):
            request.end(result)


def _batches(agreed: List[Agreed], limit: int) -> List[List[Agreed]]:
    """Groups operations in order; small allreduces are fused. The same on every rank."""
    batches: List[List[Agreed]] = []
    open_key, open_bytes = None, 0
    for item in agreed:
        signature = item[0].signature
        size = _bytes(signature)
        alike = len({tensor[0::2] for tensor in signature.tensors}) == 1
        fusible = alike and signature.kind == "allreduce" and size < min(limit, _ALONE_BYTES) and signature.op != Adasum
        key = (signature.tensors[0][0::2], signature.op, signature.prescale, signature.postscale) if fusible else None
        if key is not None and key == open_key and open_bytes + size <= limit:
            batches[-1].append(item)
            open_bytes += size
        else:
            batches.append([item])
            open_key, open_bytes = key, size
    return batches


def _bytes(signature: Signature) -> int:
    layer = layer_of(signature)
    return sum(math.prod(shape) * layer.itemsize(dtype) for dtype, shape, _ in signature.tensors)


def _run(controller: Controller, layer: Layer, batch: List[Agreed]) -> List[Any]:
    """The results of the requests of `batch`, in its order."""
    decision, request = batch[0]
    if decision.signature.kind == "allreduce":
        inputs, outputs = [], []
        for one, own in batch:
            ins, outs = (own.inputs, own.outputs) if own is not None else _zeros(layer, one.signature)
            inputs += ins
            outputs += outs
        reduction.allreduce(controller.comm, layer, decision.signature, inputs, outputs)
        return [own.outputs for _, own in batch if own is not None]
    return [] if request is None else [_OPERATIONS[decision.signature.kind](controller, layer, decision, request)]


def _zeros(layer: Layer, signature: Signature) -> Tuple[List[Any], List[Any]]:
    """The contribution of a rank that has joined."""
    zeros = [layer.zeros(shape, dtype, device) for dtype, shape, device in signature.tensors]
    return zeros, zeros


def _broadcast(controller: Controller, layer: Layer, decision: Decision, request: Request) -> List[Any]:
    root = controller.ranks.index(request.signature.root)
    for tensor, output in zip(request.inputs, request.outputs):
        if controller.comm.rank == root and output is not tensor:
            layer.assign(output, tensor)
        controller.comm.broadcast(output, root)
    return request.outputs


def _allgather(controller: Controller, layer: Layer, decision: Decision, request: Request) -> List[Any]:
    results = []
    for i, tensor in enumerate(request.inputs):
        rows = [decision.signatures[rank].tensors[i][1][0] for rank in range(controller.comm.size)]
        width = math.prod(tensor.shape[1:])
        result = layer.empty(tensor, (sum(rows), *tensor.shape[1:]))
        controller.comm.allgather(tensor, result, [row * width for row in rows])
        results.append(result)
    return results


def _alltoall(controller: Controller, layer: Layer, decision: Decision, request: Request) -> List[Any]:
    """The rows, and how many came from each rank."""
    comm, tensor = controller.comm, request.inputs[0]
    width = math.prod(tensor.shape[1:])
    sent = request.signature.splits
    received = [decision.signatures[rank].splits[comm.rank] for rank in range(comm.size)]
    result = layer.empty(tensor, (sum(received), *tensor.shape[1:]))
    comm.alltoall(tensor, result, [n * width for n in sent], [n * width for n in received])
    return [result, received]


def _reducescatter(controller: Controller, layer: Layer, decision: Decision, request: Request) -> List[Any]:
    return [reduction.reduce_scatter(controller.comm, layer, request.signature, tensor) for tensor in request.inputs]


def _barrier(controller: Controller, layer: Layer, decision: Decision, request: Request) -> None:
    """Does nothing: a barrier only waits until every rank has submitted it."""


def _join(controller: Controller, layer: Layer, decision: Decision, request: Request) -> int:
    return controller.ranks[decision.last]


_OPERATIONS: Dict[str, Callable[..., Any]] = {
    "broadcast": _broadcast, "allgather": _allgather, "alltoall": _alltoall, "reducescatter": _reducescatter,
    "barrier": _barrier, "join": _join,
}  # fmt: skip
