"""Tensors as operations take them: dense, of a type that dtrun has; and lists of tensors as one flat tensor."""

import torch

from .. import buffers, errors

# torch.dtype to the numbers of dtrun/abi/types.h; what this torch lacks is left out.
NUMBERS = {getattr(torch, name): number for name, number in buffers.DTYPES.items() if hasattr(torch, name)}


def check(what, tensor):
    """Refuses what no operation takes."""
    if not isinstance(tensor, torch.Tensor):
        raise errors.InvalidArgument(f"{what}: {type(tensor).__name__} is no tensor")
    if tensor.layout is not torch.strided:
        raise errors.Unsupported(
            f"{what}: the tensor is {tensor.layout}; pass tensor.to_dense(), or use Embedding(sparse=False)"
        )
    if not tensor.is_cpu:
        raise errors.Unsupported(f"{what}: the tensor is on {tensor.device}; the backend dtrun moves tensors of cpu")


def single(what, tensors):
    """The tensor of a list of one, which is how torch passes it."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise errors.InvalidArgument(f"{what}: {len(tensors)} tensors; the backend dtrun takes one for each rank")
    return tensors[0]


def source(what, tensor):
    """A dense tensor with the values of `tensor`; itself where it is dense."""
    check(what, tensor)
    return tensor if tensor.is_contiguous() else tensor.detach().contiguous()


def target(what, tensor):
    """(a dense tensor to receive into, what to call afterwards or None)."""
    check(what, tensor)
    if tensor.is_contiguous():
        return tensor, None
    dense = torch.empty(tensor.shape, dtype=tensor.dtype)
    return dense, lambda: tensor.detach().copy_(dense)


def in_place(what, tensor):
    """As target(), with the values of `tensor`."""
    dense, finish = target(what, tensor)
    if finish:
        dense.copy_(tensor.detach())
    return dense, finish


def _check_alike(what, tensors):
    for tensor in tensors:
        check(what, tensor)
        if tensor.dtype != tensors[0].dtype:
            raise errors.InvalidArgument(f"{what}: tensors of different types: {tensors[0].dtype} and {tensor.dtype}")


def flat_source(what, tensors):
    """The elements of all of `tensors`, one after another."""
    _check_alike(what, tensors)
    adjacent = _adjacent(tensors)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]) if adjacent is None else adjacent


def flat_target(what, tensors):
    """(a flat tensor to receive all of `tensors` into, what to call afterwards or None)."""
    _check_alike(what, tensors)
    flat = _adjacent(tensors)
    if flat is not None:
        return flat, None
    counts = [tensor.numel() for tensor in tensors]
    flat = torch.empty(sum(counts), dtype=tensors[0].dtype)

    def finish():
        for tensor, part in zip(tensors, flat.split(counts)):
            tensor.detach().copy_(part.view(tensor.shape))

    return flat, finish


def _adjacent(tensors):
    """The tensors as one flat tensor without a copy, where they lie behind each other in one storage; or None."""
    first = tensors[0]
    storage, end = first.untyped_storage().data_ptr(), first.storage_offset()
    for tensor in tensors:
        if not tensor.is_contiguous() or tensor.storage_offset() != end or tensor.untyped_storage().data_ptr() != storage:
            return None
        end += tensor.numel()
    return first.detach().as_strided((end - first.storage_offset(),), (1,), first.storage_offset())


def counts(tensors):
    """Elements of each tensor, or None where all have as many."""
    every = [tensor.numel() for tensor in tensors]
    return None if len(set(every)) == 1 else every


def rows(what, tensor, splits, size, name):
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
