"""From tensors to requests: checks the tensors, and passes the request to the controller."""

from typing import Any, Callable, Optional, Sequence

import torch

from ..process_sets import ProcessSet, check_root, global_process_set
from ..request import Request
from ..signature import Signature, called
from ..submit import controller_of, rows_for_each, submitted


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
        _check(called(kind, name), tensor)
    described = tuple((str(t.dtype).rpartition(".")[2], tuple(t.shape), t.device.type) for t in tensors)
    ready = None
    if any(tensor.is_cuda for tensor in tensors):
        event: Any = torch.cuda.Event
        ready = event()
        ready.record(torch.cuda.current_stream(tensors[0].device))
    inputs, results = [t.detach() for t in tensors], list(outputs)
    if any(output is tensor for output, tensor in zip(outputs, tensors)):  # in place; the caller gets its own tensors
        request = submitted(controller, Signature(kind, name, described, **aspects), inputs, inputs, ready)
        return Handle(request, lambda _: unpack(results))
    return Handle(submitted(controller, Signature(kind, name, described, **aspects), inputs, results, ready), unpack)


def submit_broadcast(
    tensor: torch.Tensor, output: Optional[torch.Tensor], root: int, name: Optional[str], process_set: ProcessSet
) -> Handle:
    """Into `output`, or into a new tensor."""
    if output is None:
        output = torch.empty_like(tensor_of("broadcast", tensor), requires_grad=False)
    check_root("broadcast", root, process_set)
    return submit("broadcast", [tensor], [output], name=name, root=root, process_set=process_set)


def submit_alltoall(
    tensor: torch.Tensor, splits: Any, name: Optional[str], process_set: ProcessSet, unpack: Callable[[Any], Any]
) -> Handle:
    """unpack([the rows received, their numbers by rank])"""
    tensor = tensor_of("alltoall", tensor)
    if isinstance(splits, torch.Tensor) and (splits.dtype.is_floating_point or splits.dim() != 1):
        raise ValueError(f"alltoall: splits is a {splits.dtype} tensor of {splits.dim()} dimensions; pass whole numbers in one")
    rows = rows_for_each(splits, tensor.shape[0] if tensor.dim() else 0, process_set.size() or 1)
    tensor = tensor[: sum(rows)] if tensor.dim() else tensor

    def received(result: Any) -> Any:
        return unpack([result[0], torch.tensor(result[1], dtype=torch.int32)])

    return submit("alltoall", [tensor], name=name, splits=rows, process_set=process_set, unpack=received)


def _check(what: str, tensor: torch.Tensor) -> None:
    if tensor.layout != torch.strided:
        raise ValueError(f"{what}: the tensor is sparse; use hvd.sparse_allreduce_async, or sparse_as_dense")
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError(f"{what}: the tensor is a lazy conjugate; pass tensor.resolve_conj().resolve_neg()")
    if not tensor.is_contiguous():
        raise ValueError(f"{what}: the tensor of shape {tuple(tensor.shape)} is not contiguous; pass tensor.contiguous()")
