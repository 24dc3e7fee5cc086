"""Converts tensors for operations: dense, of a type that dtrun supports; lists of tensors as one flat tensor."""

from __future__ import annotations

import torch

from .. import buffers, errors
from . import streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Sequence, Tuple

    Target = Tuple[torch.Tensor, Optional[Callable[[], object]]]

# torch.dtype to the numbers of dtrun/abi/types.h; types that this torch lacks are left out.
NUMBERS = {getattr(torch, name): number for name, number in buffers.DTYPES.items() if hasattr(torch, name)}


def check(what: str, tensor: Any) -> None:
    """Raises an error for tensors that no operation supports."""
    if not isinstance(tensor, torch.Tensor):
        raise errors.InvalidArgument(f"{what}: {type(tensor).__name__} is not a tensor")
    if tensor.layout is not torch.strided:
        raise errors.Unsupported(
            f"{what}: the tensor is {tensor.layout}; pass tensor.to_dense(), or use Embedding(sparse=False)"
        )
    if not tensor.is_cpu and streams.kind_of(tensor.device.type) is None:
        raise errors.Unsupported(
            f"{what}: the tensor is on {tensor.device}; the backend dtrun moves tensors of cpu and cuda, so move it there"
        )


def plain(tensor: torch.Tensor) -> bool:
    """Whether its memory holds its values contiguously. A lazy view, such as x.conj() or its .imag, does not."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def single(what: str, tensors: Any) -> Any:
    """The tensor of a list of one; torch passes it so."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise errors.InvalidArgument(f"{what}: {len(tensors)} tensors; the backend dtrun takes one for each rank")
    return tensors[0]


def source(what: str, tensor: torch.Tensor) -> torch.Tensor:
    """A dense tensor with the values of `tensor`; itself where it is dense."""
    check(what, tensor)
    return tensor if plain(tensor) else tensor.detach().contiguous().resolve_conj().resolve_neg()


def target(what: str, tensor: torch.Tensor) -> Target:
    """(a dense tensor to receive into, what to call afterwards or None)."""
    check(what, tensor)
    if plain(tensor):
        return tensor, None
    dense = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return dense, lambda: tensor.detach().copy_(dense)


def in_place(what: str, tensor: torch.Tensor) -> Target:
    """As target(), with the values of `tensor`."""
    dense, finish = target(what, tensor)
    if finish:
        dense.copy_(tensor.detach())
    return dense, finish


def _check_alike(what: str, tensors: Sequence[torch.Tensor]) -> None:
    for tensor in tensors:
        check(what, tensor)
        if tensor.dtype != tensors[0].dtype:
            raise errors.InvalidArgument(f"{what}: tensors of different types: {tensors[0].dtype} and {tensor.dtype}")


def flat_source(what: str, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The elements of all of `tensors`, one after another."""
    _check_alike(what, tensors)
    adjacent = _adjacent(tensors)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]) if adjacent is None else adjacent


def flat_target(what: str, tensors: Sequence[torch.Tensor]) -> Target:
    """(a flat tensor to receive all of `tensors` into, what to call afterwards or None)."""
    _check_alike(what, tensors)
    adjacent = _adjacent(tensors)
    if adjacent is not None:
        return adjacent, None
    counts = [tensor.numel() for tensor in tensors]
    flat: Any = torch.empty(sum(counts), dtype=tensors[0].dtype, device=tensors[0].device)

    def finish() -> None:
        for tensor, part in zip(tensors, flat.split(counts)):
            tensor.detach().copy_(part.view(tensor.shape))

    return flat, finish


def _storage(tensor: Any) -> int:
    """Where the tensor's storage begins."""
    if hasattr(tensor, "untyped_storage"):
        return int(tensor.untyped_storage().data_ptr())
    return int(tensor.storage().data_ptr())  # torch 1.13


def _adjacent(tensors: Sequence[torch.Tensor]) -> Optional[torch.Tensor]:
    """The tensors as one flat tensor without a copy, if they are contiguous in one storage; else None."""
    first = tensors[0]
    storage, end = _storage(first), first.storage_offset()
    for tensor in tensors:
        if not plain(tensor) or tensor.storage_offset() != end or _storage(tensor) != storage:
            return None
        end += tensor.numel()
    return first.detach().as_strided((int(end - first.storage_offset()),), (1,), first.storage_offset())


def counts(tensors: Sequence[torch.Tensor]) -> Optional[List[int]]:
    """Elements of each tensor, or None where all have as many."""
    every = [tensor.numel() for tensor in tensors]
    return None if len(set(every)) == 1 else every


def rows(what: str, tensor: torch.Tensor, splits: Optional[Sequence[int]], size: int, name: str) -> List[int]:
    """Elements for each of `size` ranks, where `splits` are rows of `tensor`; none: equal parts."""
    length = tensor.shape[0] if tensor.dim() else 0
    if not splits:
        if length % size:
            raise errors.InvalidArgument(
                f"{what}: {name} has {length} rows, which {size} ranks do not divide; give {name}_split_sizes"
            )
        return [tensor.numel() // size] * size
    if len(splits) != size or sum(splits) != length:
        raise errors.InvalidArgument(
            f"{what}: {name}_split_sizes {list(splits)} must have {size} entries, with the sum {length}, "
            f"which is the first dimension of {name}"
        )
    row = tensor.numel() // length if length else 0
    return [split * row for split in splits]
