"""Agreed operations on torch tensors, one after the other, on the controller's thread."""

import functools
import math
import time
from typing import Any, Callable, Dict, List, Tuple

import torch

from ... import errors
from ...communicator import Communicator
from ..controller import Agreed, Controller
from ..negotiation import Decision
from ..request import Request
from ..signature import Signature
from ..timeline import timeline
from . import reduction

_ALONE_BYTES = 1 << 20  # a tensor of this size gains nothing from travelling with others


def execute(controller: Controller, agreed: List[Agreed]) -> None:
    with torch.no_grad():
        for batch in _batches(agreed, controller.settings.fusion_bytes):
            requests = [request for _, request in batch if request is not None]
            begin = time.monotonic()
            try:
                results = _on_device(requests, lambda batch=batch: _run(controller, batch))
            except (errors.InvalidArgument, errors.Unsupported) as refused:  # alike on every rank, and nothing has started
                for request in requests:
                    request.fail(f"{request.signature.kind} '{request.signature.name}': {refused}")
                continue
            timeline.ran([decision for decision, _ in batch], begin)
            for request, result in zip(requests, results):
                request.end(result)


def _batches(agreed: List[Agreed], limit: int) -> List[List[Agreed]]:
    """In order; small allreduces that may travel as one are together. The same on every rank."""
    batches: List[List[Agreed]] = []
    open_key, open_bytes = None, 0
    for item in agreed:
        signature = item[0].signature
        size = _bytes(signature)
        alike = len({tensor[0::2] for tensor in signature.tensors}) == 1
        fusible = alike and signature.kind == "allreduce" and size < min(limit, _ALONE_BYTES)
        key = (signature.tensors[0][0::2], signature.op, signature.prescale, signature.postscale) if fusible else None
        if key is not None and key == open_key and open_bytes + size <= limit:
            batches[-1].append(item)
            open_bytes += size
        else:
            batches.append([item])
            open_key, open_bytes = key, size
    return batches


def _bytes(signature: Signature) -> int:
    return sum(math.prod(shape) * _itemsize(name) for name, shape, _ in signature.tensors)


@functools.lru_cache(maxsize=None)
def _itemsize(dtype: str) -> int:
    return torch.empty((), dtype=getattr(torch, dtype)).element_size()


def _run(controller: Controller, batch: List[Agreed]) -> List[Any]:
    """The results of the requests of `batch`, in its order."""
    decision, request = batch[0]
    if decision.signature.kind == "allreduce":
        inputs, outputs = [], []
        for one, own in batch:
            ins, outs = (own.inputs, own.outputs) if own is not None else _zeros(one.signature)
            inputs += ins
            outputs += outs
        reduction.allreduce(controller.comm, decision.signature, inputs, outputs)
        return [own.outputs for _, own in batch if own is not None]
    return [] if request is None else [_OPERATIONS[decision.signature.kind](controller, decision, request)]


def _zeros(signature: Signature) -> Tuple[List[torch.Tensor], List[torch.Tensor]]:
    """What a rank that has joined contributes."""
    zeros = [torch.zeros(shape, dtype=getattr(torch, name), device=device) for name, shape, device in signature.tensors]
    return zeros, zeros


def _on_device(requests: List[Request], run: Callable[[], List[Any]]) -> List[Any]:
    """Runs after the work that was queued on a device when the tensors were submitted, and ends with the device."""
    ready = [event for request in requests for event in [request.ready] if event is not None]
    if not ready:
        return run()
    stream = torch.cuda.Stream(requests[0].inputs[0].device)
    with torch.cuda.device(stream.device), torch.cuda.stream(stream):
        for event in ready:
            stream.wait_event(event)
        results = run()
    stream.synchronize()
    return results


def _broadcast(controller: Controller, decision: Decision, request: Request) -> List[torch.Tensor]:
    root = controller.ranks.index(request.signature.root)
    for tensor, output in zip(request.inputs, request.outputs):
        if controller.comm.rank == root and output is not tensor:
            output.copy_(tensor)
        controller.comm.broadcast(output, root)
    return request.outputs


def _allgather(controller: Controller, decision: Decision, request: Request) -> List[torch.Tensor]:
    results = []
    for i, tensor in enumerate(request.inputs):
        rows = [decision.signatures[rank].tensors[i][1][0] for rank in range(controller.comm.size)]
        results.append(_gather_rows(controller.comm, tensor, rows))
    return results


def _gather_rows(comm: Communicator, tensor: torch.Tensor, rows: List[int]) -> torch.Tensor:
    width = math.prod(tensor.shape[1:])
    result = tensor.new_empty((sum(rows), *tensor.shape[1:]))
    comm.allgather(tensor, result, [row * width for row in rows])
    return result


def _alltoall(controller: Controller, decision: Decision, request: Request) -> List[torch.Tensor]:
    comm, tensor = controller.comm, request.inputs[0]
    width = math.prod(tensor.shape[1:])
    sent = request.signature.splits
    received = [decision.signatures[rank].splits[comm.rank] for rank in range(comm.size)]
    result = tensor.new_empty((sum(received), *tensor.shape[1:]))
    comm.alltoall(tensor, result, [n * width for n in sent], [n * width for n in received])
    return [result, torch.tensor(received, dtype=torch.int32)]


def _reducescatter(controller: Controller, decision: Decision, request: Request) -> List[torch.Tensor]:
    return [reduction.reduce_scatter(controller.comm, request.signature, tensor) for tensor in request.inputs]


def _barrier(controller: Controller, decision: Decision, request: Request) -> None:
    """Nothing: that every rank has submitted it was what it waits for."""


def _join(controller: Controller, decision: Decision, request: Request) -> int:
    return controller.ranks[decision.last]


_OPERATIONS: Dict[str, Callable] = {
    "broadcast": _broadcast, "allgather": _allgather, "alltoall": _alltoall, "reducescatter": _reducescatter,
    "barrier": _barrier, "join": _join,
}  # fmt: skip
