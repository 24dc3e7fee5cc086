"""torch's ReduceOp to dtrun's reductions."""

from __future__ import annotations

from torch.distributed import ReduceOp

from .. import errors
from ..operations import REDUCTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple

_NAMES = {
    "SUM": "sum",
    "PRODUCT": "prod",
    "MIN": "min",
    "MAX": "max",
    "AVG": "avg",
    "BAND": "band",
    "BOR": "bor",
    "BXOR": "bxor",
}


def _kind(op: Any) -> Any:
    """Without the factor that an op may have."""
    return getattr(op, "op", op)


NUMBERS: Dict[Any, int] = {_kind(getattr(ReduceOp, name)): REDUCTIONS[ours] for name, ours in _NAMES.items()}


def reduction(what: str, op: Any) -> Tuple[int, Optional[Any]]:
    """(number of the reduction, factor to multiply the elements with first or None)."""
    kind = _kind(op)
    number = NUMBERS.get(kind)
    if number is not None:
        return number, None
    if kind == _kind(ReduceOp.PREMUL_SUM):
        state = None if hasattr(op, "factor") else op.__getstate__()
        if state is None and not hasattr(op, "factor"):
            raise errors.Unsupported(f"{what}: this torch does not tell the factor of PREMUL_SUM; multiply first, and use SUM")
        return REDUCTIONS["sum"], state[1] if state else op.factor
    raise errors.Unsupported(f"{what}: the backend dtrun has no reduction {kind}; it has {', '.join(_NAMES)} and PREMUL_SUM")
