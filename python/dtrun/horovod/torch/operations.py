"""Operations of horovod.torch on one tensor. Those without a trailing underscore return a new tensor.

Ranks may submit them in different orders: an operation starts when every rank of the process set has submitted its name.
Without a name, the nth operation of a kind is the same on each rank. The *_async calls return a handle for poll() and
synchronize(); the others wait. Errors that concern all ranks are HorovodInternalError, on each rank that submitted.
"""

from typing import Any, Callable, Optional, Sequence, Type, Union

import torch

from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average, check
from ..submit import barrier as barrier
from ..submit import reduction_of, rows_for_each
from ..submit import join as join_all
from . import differentiable
from .compression import Compression, Compressor
from .submit import Handle, handle_of, submit, tensor_of


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
    compressed, ctx = compression.compress(tensor_of("allreduce", tensor))
    op = reduction_of(op, average)
    result = differentiable.apply(differentiable.Allreduce, compressed, name, op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(result, ctx)


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
    gathered: torch.Tensor = differentiable.apply(differentiable.Allgather, tensor, name, process_set)
    return gathered


def broadcast_async(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """The tensor of `root_rank`, a rank of the job, on every rank."""
    return _broadcast(tensor, torch.empty_like(tensor_of("broadcast", tensor), requires_grad=False), root_rank, name, process_set)


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Handle:
    return _broadcast(tensor, tensor, root_rank, name, process_set)


def _broadcast(tensor: torch.Tensor, output: torch.Tensor, root: int, name: Optional[str], process_set: ProcessSet) -> Handle:
    if process_set.ranks and root not in process_set.ranks:
        raise ValueError(f"broadcast: root_rank {root} is not in {process_set}")
    return submit("broadcast", [tensor], [output], name=name, root=root, process_set=process_set)


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
    return _alltoall(tensor, splits, name, process_set, tuple if splits is not None else lambda result: result[0])


def _alltoall(tensor, splits, name, process_set, unpack) -> Handle:  # type: ignore[no-untyped-def]
    tensor = tensor_of("alltoall", tensor)
    if isinstance(splits, torch.Tensor) and (splits.dtype.is_floating_point or splits.dim() != 1):
        raise ValueError(f"alltoall: splits is a {splits.dtype} tensor of {splits.dim()} dimensions; pass whole numbers in one")
    rows = rows_for_each(splits, tensor.shape[0] if tensor.dim() else 0, process_set.size() or 1)
    tensor = tensor[: sum(rows)] if tensor.dim() else tensor

    def received(result: Any) -> Any:
        return unpack([result[0], torch.tensor(result[1], dtype=torch.int32)])

    return submit("alltoall", [tensor], name=name, splits=rows, process_set=process_set, unpack=received)


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
    compressed, ctx = compression.compress(tensor_of("reducescatter", tensor))
    result = differentiable.apply(differentiable.Reducescatter, compressed, name, op, process_set, prescale_factor, postscale_factor)
    return compression.decompress(result, ctx)


def join(device: int = -1) -> int:
    """submit.join(). `device` is not used: zeros are made on the device of the others' tensors."""
    return join_all()
