"""Tensors of operations: made dense, of a type that dtrun supports; lists of tensors as one flat tensor. Their devices, and torch's
streams there.

A device's module (torch.cuda, or what torch._register_device_module has been given) has current_stream(), Stream and
stream(), as torch.cuda has them, and may have record_stream(tensor, stream) where Tensor's does not take its streams.
*Not yet run on a GPU*: tests use the fake accelerator of sdk/fake.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

from .. import buffers, errors
from .._library import Stream

Tensors = List[torch.Tensor]
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
    if not tensor.is_cpu and kind_of(tensor.device.type) is None:
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
    """(a dense tensor to receive into, a function to call afterwards or None)."""
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


def only(what: str, lists: Any) -> Tensors:
    """The list of a list of lists, which is how torch passes it; or the list itself."""
    if lists and isinstance(lists[0], (list, tuple)):
        if len(lists) != 1:
            raise errors.InvalidArgument(f"{what}: {len(lists)} lists of tensors; the backend dtrun takes one")
        return list(lists[0])
    return list(lists)


def check_one_for_each(what: str, name: str, tensors: Sequence[torch.Tensor], size: int) -> None:
    if len(tensors) != size:
        raise errors.InvalidArgument(f"{what}: {len(tensors)} {name} for {size} ranks; give one tensor for each")


def check_same_type(what: str, source: torch.Tensor, target: torch.Tensor) -> None:
    if source.dtype != target.dtype:
        raise errors.InvalidArgument(f"{what}: the input is {source.dtype} and the output {target.dtype}")


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
    """(a flat tensor to receive all of `tensors` into, a function to call afterwards or None)."""
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


# ---- devices and their streams

OTHER = 32  # DTRUN_DEVICE_OTHER: torch's PrivateUse1


def kind_of(kind: str) -> Optional[int]:
    """dtrun's number for torch's type of device; None: dtrun moves no memory of it."""
    if kind == "cpu":
        return buffers.HOST
    if kind == "cuda":
        return buffers.ROCM if getattr(torch.version, "hip", None) else buffers.CUDA
    private = getattr(torch._C, "_get_privateuse1_backend_name", lambda: "privateuseone")  # a backend may rename it
    return OTHER if kind == private() else None


class Place:
    """A device in this process, by place_of(). `kind`: dtrun's number."""

    def __init__(self, device: torch.device) -> None:
        kind, self.device, self._side = kind_of(device.type), device, None
        self._module: Any = getattr(torch, device.type, None)
        if kind is None or not hasattr(self._module, "current_stream"):
            raise errors.Unsupported(
                f"torch.{device.type} has no current_stream(), which dtrun needs for tensors of {device}; "
                "register the device's module by torch._register_device_module"
            )
        self.kind = kind

    def current(self) -> Any:
        """torch's current stream, of the calling thread."""
        return self._module.current_stream(self.device)

    def native(self, stream: Any) -> Stream:
        """The same for libdtrun: cudaStream_t, or the number that torch gave it."""
        handle = stream.cuda_stream if hasattr(stream, "cuda_stream") else stream.stream_id
        return Stream(ctypes.sizeof(Stream), 0, self.kind, self.device.index or 0, int(handle))

    def use(self, tensor: torch.Tensor, stream: Any) -> None:
        """Tells the allocator that `stream` uses the tensor, so that its memory is not reused before that use ends."""
        record = getattr(self._module, "record_stream", torch.Tensor.record_stream)
        record(tensor, stream)

    def on_side(self) -> Any:
        """`with place.on_side():` makes a private stream current, where waits block no other work."""
        return self._module.stream(self.side())

    def side(self) -> Any:
        """The private stream."""
        if self._side is None:
            self._side = self._module.Stream(self.device)
        return self._side


place_of = functools.lru_cache(maxsize=None)(Place)
