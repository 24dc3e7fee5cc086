"""The options that optimizers and tapes of torch and TensorFlow share: checks, and groups of gradients."""

import warnings
from typing import Any, List, Sequence, Union

from .reductions import Average, check

Groups = Union[None, int, List[List[Any]]]


def check_scaling(op: int, gradient_predivide_factor: float, backward_passes_per_step: int = 1) -> int:
    """`op`, if these options go together."""
    if backward_passes_per_step <= 0:
        raise ValueError(f"backward_passes_per_step must be > 0, not {backward_passes_per_step}")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor goes with op=hvd.Average only")
    return check(op)


def check_groups(groups: Groups, num_groups: int, members: str) -> Groups:
    """The groups of an optimizer or a tape, from `groups` or, in older scripts, `num_groups`. `members`: what they are made of."""
    if num_groups:
        warnings.warn("num_groups is deprecated; use groups", DeprecationWarning, stacklevel=3)
        groups = num_groups if groups is None else groups
    whole = isinstance(groups, int) and not isinstance(groups, bool) and groups > 0
    if groups is not None and not whole and not isinstance(groups, list):
        raise ValueError(f"groups is a number from 1 on or a list of lists of {members}, not {groups!r}")
    return groups


def split(members: Sequence[Any], number: int) -> List[Sequence[Any]]:
    """`number` groups or fewer, in order, all of one size except the last."""
    size = -(-len(members) // number)
    return [members[i : i + size] for i in range(0, len(members), size)] if members else []
