"""The parameters of an optimizer by name, and their groups: checked before training starts."""

from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import torch

from ..gradients import split


def by_name(optimizer: torch.optim.Optimizer, named: Optional[Iterable[Any]]) -> Dict[torch.Tensor, str]:
    """The name of each parameter. Raises ValueError if `named_parameters` does not match the optimizer."""
    owned = {p: f"{i}.{j}" for i, group in enumerate(optimizer.param_groups) for j, p in enumerate(group["params"])}
    if named is None:
        return {parameter: f"parameter.{place}" for parameter, place in owned.items()}
    pairs = list(named)
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise ValueError("named_parameters is a sequence of tuples (name, parameter), such as model.named_parameters()")
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"named_parameters: {', '.join(twice)} is there twice; names are unique, as in model.named_parameters()")
    found = {parameter: name for name, parameter in pairs}
    unnamed = [parameter for parameter in owned if parameter not in found]
    if unnamed:
        group, _, place = owned[unnamed[0]].partition(".")
        raise ValueError(
            f"named_parameters lacks {len(unnamed)} of the optimizer's {len(owned)} parameters; the first is parameter {place} of its "
            f"group {group}, of shape {tuple(unnamed[0].shape)}; pass a name for each, such as model.named_parameters()"
        )
    return found


def grouped(groups: Union[int, List[List[Any]]], names: Dict[torch.Tensor, str], trained: List[torch.Tensor]) -> List[Tuple[torch.Tensor, ...]]:
    """Groups of parameters with gradients that travel together. The same on every rank, in the order of names."""
    if isinstance(groups, int):
        return [tuple(group) for group in split(sorted(trained, key=lambda parameter: names[parameter]), groups)]
    wanted, result, seen = set(trained), [], set()
    for group in groups:
        for parameter in group:
            if not isinstance(parameter, torch.Tensor):
                raise ValueError(f"groups holds a {type(parameter).__name__}; groups are lists of parameters")
            if parameter in seen:
                raise ValueError(f"groups holds '{names.get(parameter)}' twice; a parameter is in one group at most")
            seen.add(parameter)
        if chosen := tuple(parameter for parameter in group if parameter in wanted):
            result.append(chosen)
    return result + [(parameter,) for parameter in trained if parameter not in seen]
