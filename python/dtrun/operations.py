"""The numbers of operations and reductions (dtrun/abi/types.h), and their parameters other than buffers."""

from __future__ import annotations

import ctypes

from . import _library, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from .buffers import Buffer

REDUCTIONS = {
    "sum": 1, "prod": 2, "min": 3, "max": 4, "avg": 5, "premul_sum": 6, "band": 7, "bor": 8, "bxor": 9, "land": 10, "lor": 11,
}  # fmt: skip
ANY_SOURCE = -1

(ALLREDUCE, BROADCAST, ALLGATHER, REDUCE_SCATTER, BARRIER, SEND, RECV, REDUCE, ALLTOALL, GATHER, SCATTER, ALLGATHERV,
 REDUCE_SCATTERV, ALLTOALLV, GATHERV, SCATTERV) = range(1, 17)  # fmt: skip


def reduction(op: str) -> int:
    number = REDUCTIONS.get(op)
    if number is None:
        raise errors.InvalidArgument(f"op {op!r} is none of {', '.join(REDUCTIONS)}")
    return number


def scaled(what: str, op: str, scale: Optional[float]) -> Dict[str, Any]:
    """`reduce` and `scale` of an operation: "sum" with a scale is premul_sum; without one premul_sum has the scale 1."""
    if scale is None:
        return {"reduce": reduction(op), "scale": 1.0}
    if op not in ("sum", "premul_sum"):
        raise errors.InvalidArgument(f"{what}: scale goes with op 'sum', not with {op!r}")
    try:
        if isinstance(scale, (str, bytes)):
            raise TypeError
        return {"reduce": REDUCTIONS["premul_sum"], "scale": float(scale)}
    except (TypeError, ValueError):
        raise errors.InvalidArgument(f"{what}: scale is {scale!r}, a {type(scale).__name__}; give a number") from None


def current_stream(buffer: Buffer) -> _library.Stream:
    """torch's current stream on the buffer's device."""
    import torch

    kind, index = buffer.device
    handle = torch.cuda.current_stream(index).cuda_stream
    return _library.Stream(ctypes.sizeof(_library.Stream), 0, kind, index, handle)
