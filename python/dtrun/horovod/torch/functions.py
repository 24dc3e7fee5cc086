"""Whole states between ranks: parameters and optimizers."""

from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import torch

from ..printable import printable
from ..objects import allgather_object as allgather_object
from ..objects import broadcast_object as broadcast_object
from ..runtime import rank
from .operations import broadcast_async_, synchronize

Named = Union[Dict[str, Any], Iterable[Tuple[str, torch.Tensor]], Iterable[torch.Tensor]]


def broadcast_parameters(params: Named, root_rank: int) -> None:
    """Every rank's `params` = those of `root_rank`: a state_dict(), named_parameters() or parameters()."""
    if isinstance(params, dict):
        items = sorted(params.items())
    elif isinstance(params, Iterable) and not isinstance(params, (str, torch.Tensor)):
        items = [item if isinstance(item, tuple) else (None, item) for item in params]
    else:
        raise ValueError(f"broadcast_parameters: {type(params).__name__} is neither a dict nor a list of parameters")
    parts = []
    for name, tensor in items:
        if not torch.is_tensor(tensor):  # state dicts may contain other things, which torch skips too
            raise ValueError(
                f"broadcast_parameters: '{printable(str(name))}' is a {type(tensor).__name__}; send it with hvd.broadcast_object"
            )
        whole = tensor.detach()
        part = whole if whole.is_contiguous() else whole.contiguous()
        parts.append((whole, part, broadcast_async_(part, root_rank, name)))
    for whole, part, handle in parts:
        synchronize(handle)
        if part is not whole:
            whole.copy_(part)


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int, model: Optional[torch.nn.Module] = None) -> None:
    """Copies the optimizer's state and options, such as the learning rate, from `root_rank` to every rank."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("broadcast_optimizer_state: LBFGS keeps state that cannot be sent; use another optimizer")
    tensors: List[torch.Tensor] = []
    outline = _outline(optimizer.state_dict(), tensors) if rank() == root_rank else None
    outline = broadcast_object(outline, root_rank)
    if rank() != root_rank:
        tensors = _empty(outline, optimizer)
    handles = [broadcast_async_(tensor, root_rank) for tensor in tensors]
    for handle in handles:
        synchronize(handle)
    if rank() != root_rank:
        groups = optimizer.param_groups
        optimizer.load_state_dict(_filled(outline, iter(tensors)))
        for group, loaded in zip(groups, optimizer.param_groups):
            group.update(loaded)
        optimizer.param_groups = groups  # schedulers and the wrapped optimizer hold these


class _Tensor(Tuple[Any, ...]):
    """Place of a tensor in an outline: its element type, shape and kind of device."""


def _outline(value: Any, tensors: List[torch.Tensor]) -> Any:
    """`value` with places instead of tensors; the tensors are appended to `tensors`."""
    if torch.is_tensor(value):
        tensors.append(value.detach().contiguous())
        return _Tensor((value.dtype, tuple(value.shape), value.device.type))
    if isinstance(value, dict):
        return {key: _outline(item, tensors) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_outline(item, tensors) for item in value)
    return value


def _places(outline: Any) -> Iterator[_Tensor]:
    if isinstance(outline, _Tensor):
        yield outline
    elif isinstance(outline, dict) or type(outline) in (list, tuple):
        for item in outline.values() if isinstance(outline, dict) else outline:
            yield from _places(item)


def _empty(outline: Any, optimizer: torch.optim.Optimizer) -> List[torch.Tensor]:
    """New tensors for the places of an outline, in their order."""
    device = next((p.device for group in optimizer.param_groups for p in group["params"] if p.device.type != "cpu"), "cpu")
    return [
        torch.empty(shape, dtype=dtype, device="cpu" if kind == "cpu" else device) for dtype, shape, kind in _places(outline)
    ]


def _filled(outline: Any, tensors: Iterator[torch.Tensor]) -> Any:
    if isinstance(outline, _Tensor):
        return next(tensors)
    if isinstance(outline, dict):
        return {key: _filled(item, tensors) for key, item in outline.items()}
    if type(outline) in (list, tuple):
        return type(outline)(_filled(item, tensors) for item in outline)
    return outline
