"""torch's ReduceOp to dtrun's reductions."""

from torch.distributed import ReduceOp

from .. import errors
from ..operations import REDUCTIONS

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
NUMBERS = {getattr(ReduceOp, name): REDUCTIONS[ours] for name, ours in _NAMES.items()}


def reduction(what, op):
    """(number of the reduction, factor to multiply the elements with first or None)."""
    kind = getattr(op, "op", op)
    number = NUMBERS.get(kind)
    if number is not None:
        return number, None
    if kind == ReduceOp.PREMUL_SUM:
        return REDUCTIONS["sum"], op.factor if hasattr(op, "factor") else op.__getstate__()[1]
    raise errors.Unsupported(f"{what}: {kind} is no reduction of the backend dtrun; it has {', '.join(_NAMES)} and PREMUL_SUM")
