"""Operations of horovod.torch on one tensor. Those without a trailing underscore return a new tensor.

Ranks may submit them in different orders: an operation starts when every rank of the process set has submitted its name.
Without a name, the nth operation of a kind is the same on each rank. The *_async calls return a handle for poll() and
synchronize(); the others wait. Errors that concern all ranks are HorovodInternalError, on each rank that submitted.
"""

from typing import Any, Callable, List, Optional, Sequence, Type, Union

import torch

from ..compression import compressed
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average, check
from ..submit import barrier as barrier
from ..submit import reduction_of
from ..submit import join as join_all
from . import differentiable
from .compression import Compression, Compressor
from .submit import Handle, handle_of, submit, submit_alltoall, submit_broadcast, tensor_of


def poll(handle: Handle) -> bool:
    """Whether synchronize() would not block."""
    return handle_of("poll", handle).request.done()


def synchronize(handle: Handle) -> Any:
    """Waits for the operation, and returns its result."""
    return handle_of("synchronize", handle).wait()


def allreduce_async(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """postscale_factor * reduction over the ranks of prescale_factor * tensor."""
    return submit(
        "allreduce", [tensor], [torch.empty_like(tensor_of("allreduce", tensor), requires_grad=False)], name=name, op=reduction_of(op, average),
        prescale=prescale_factor, postscale=postscale_factor, process_set=process_set,
    )  # fmt: skip


def allreduce_async_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """As allreduce_async, in place."""
    return submit(
        "allreduce", [tensor], [tensor], name=name, op=reduction_of(op, average),
        prescale=prescale_factor, postscale=postscale_factor, process_set=process_set,
    )  # fmt: skip


def allreduce(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Type[Compressor] = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """As allreduce_async, but waits. Gradients flow through it."""
    given = (name, reduction_of(op, average), prescale_factor, postscale_factor, process_set)
    return _compressed(compression, tensor_of("allreduce", tensor), lambda tensors: differentiable.allreduce(tensors, *given))


def _compressed(compression: Any, tensor: torch.Tensor, operation: Callable[[List[Any]], Sequence[Any]]) -> torch.Tensor:
    result: torch.Tensor = compressed(compression, [tensor], operation)[0]
    return result


def allreduce_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))
    return tensor


def sparse_allreduce_async(
    tensor: torch.Tensor, name: Optional[str], op: int, process_set: ProcessSet = global_process_set
) -> Callable[[], torch.Tensor]:
    """The sum or average of sparse tensors; entries may differ between ranks. Call the returned function to wait."""
    names = (None, None) if name is None else (f"{name}.indices", f"{name}.values")
    tensor = tensor_of("sparse_allreduce", tensor)
    indices = allgather_async(tensor._indices().t().contiguous(), names[0], process_set)
    values = allgather_async(tensor._values(), names[1], process_set)

    def wait() -> torch.Tensor:
        gathered = synchronize(values)
        if op == Average:
            gathered = gathered / process_set.size()
        return torch.sparse_coo_tensor(synchronize(indices).t(), gathered, tensor.size(), device=tensor.device)

    return wait


def allgather_async(tensor: torch.Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Handle:
    """The rows of every rank's tensor, in the order of ranks; their numbers may differ."""
    return submit("allgather", [tensor], name=name, process_set=process_set)


def allgather(tensor: torch.Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    return differentiable.allgather([tensor_of("allgather", tensor)], name, process_set)[0]


def broadcast_async(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """The tensor of `root_rank`, a rank of the job, on every rank."""
    return submit_broadcast(tensor, None, root_rank, name, process_set)


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Handle:
    return submit_broadcast(tensor, tensor, root_rank, name, process_set)


def broadcast(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    result: torch.Tensor = differentiable.apply(differentiable.Broadcast, tensor, root_rank, name, process_set)
    return result


def broadcast_(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    synchronize(broadcast_async_(tensor, root_rank, name, process_set))
    return tensor


def alltoall_async(
    tensor: torch.Tensor,
    splits: Union[None, torch.Tensor, Sequence[int]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """splits[r] rows of tensor go to rank r, in order; equal parts without splits. Gives the rows received.

    With splits it gives a tuple: the rows, and how many came from each rank.
    """
    return submit_alltoall(tensor, splits, name, process_set, tuple if splits is not None else lambda result: result[0])


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):  # type: ignore[no-untyped-def]
    """As alltoall_async, but waits. Gradients flow through it."""
    result, received = differentiable.apply(differentiable.Alltoall, tensor, splits, name, process_set)
    return result if splits is None else (result, received)


def reducescatter_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    """This rank's rows of the reduction over the ranks; the first ranks get one more where the rows do not divide."""
    return submit(
        "reducescatter", [tensor], name=name, op=check(op), prescale=prescale_factor, postscale=postscale_factor,
        process_set=process_set,
    )  # fmt: skip


def reducescatter(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    compression: Type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    given = (name, check(op), prescale_factor, postscale_factor, process_set)
    return _compressed(compression, tensor_of("reducescatter", tensor), lambda tensors: differentiable.reducescatter(tensors, *given))


def join(device: int = -1) -> int:
    """submit.join(). `device` is not used: zeros are made on the device of the others' tensors."""
    return join_all()
