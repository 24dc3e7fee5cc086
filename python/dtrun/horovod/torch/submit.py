"""From tensors to requests: makes the checks that this rank can make alone, and passes the request to the controller."""

from typing import Any, Callable, List, Optional, Sequence

import torch

from ..process_sets import ProcessSet, global_process_set
from ..reductions import Adasum
from ..request import Request
from ..signature import RAGGED, Signature, called
from ..submit import check_adasum, controller_of


class Handle:
    """A running operation, for poll() and synchronize(). `unpack` converts the request's result."""

    __slots__ = ("request", "_unpack")

    def __init__(self, request: Request, unpack: Callable[[Any], Any]) -> None:
        self.request = request
        self._unpack = unpack

    def wait(self) -> Any:
        return self._unpack(self.request.wait())


def first(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return tensors[0]


def tensor_of(kind: str, value: Any, argument: str = "tensor") -> torch.Tensor:
    """Returns `value`. Raises ValueError if it is no tensor, before its tensor members are used."""
    if isinstance(value, torch.Tensor):
        return value
    raise ValueError(f"{kind}: {argument} is a {type(value).__name__}; pass a torch tensor, such as torch.as_tensor({argument})")


def handle_of(kind: str, value: Any) -> Handle:
    if isinstance(value, Handle):
        return value
    raise ValueError(f"{kind}: handle is {value!r} ({type(value).__name__}); pass what an operation such as hvd.allreduce_async returned")


def submit(
    kind: str,
    tensors: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor] = (),
    *,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    unpack: Callable[[Any], Any] = first,
    **aspects: Any,
) -> Handle:
    controller = controller_of(kind, process_set)
    tensors = [tensor_of(kind, tensor) for tensor in tensors]
    name = controller.next_name(kind) if name is None else name
    for tensor in tensors:
        _check(kind, name, tensor)
    described = tuple((str(t.dtype).rpartition(".")[2], tuple(t.shape), t.device.type) for t in tensors)
    signature = Signature(kind, name, described, **aspects)
    if signature.op == Adasum:
        check_adasum(kind, name, [dtype for dtype, _, _ in described], len(process_set.ranks))
    ready = None
    if any(tensor.is_cuda for tensor in tensors):
        event: Any = torch.cuda.Event
        ready = event()
        ready.record(torch.cuda.current_stream(tensors[0].device))
    request = Request(signature, [t.detach() for t in tensors], list(outputs), ready)
    if outputs and any(output is tensor for output, tensor in zip(outputs, tensors)):
        request.outputs = request.inputs  # in place
        unpack = _originals(list(outputs), unpack)
    controller.submit(request)
    return Handle(request, unpack)


def _originals(tensors: List[torch.Tensor], unpack: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """In-place operations return the caller's tensors."""
    return lambda result: unpack(tensors)


def _check(kind: str, name: str, tensor: torch.Tensor) -> None:
    if tensor.layout != torch.strided:
        raise ValueError(f"{called(kind, name)}: the tensor is sparse; use hvd.sparse_allreduce_async, or sparse_as_dense")
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError(f"{called(kind, name)}: the tensor is a lazy conjugate; pass tensor.resolve_conj().resolve_neg()")
    if not tensor.is_contiguous():
        raise ValueError(f"{called(kind, name)}: the tensor of shape {tuple(tensor.shape)} is not contiguous; pass tensor.contiguous()")
    if tensor.dim() == 0 and (kind in RAGGED or kind == "reducescatter"):
        raise ValueError(f"{called(kind, name)}: a tensor without dimensions has no rows; pass tensor.unsqueeze(0)")
