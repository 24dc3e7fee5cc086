"""Operations as libdtrun takes them: kinds, reductions, checks of a call's arguments, and the start of one."""

from __future__ import annotations

import ctypes
import math
import operator
import sys
from ctypes import byref, c_int32, c_uint64
from itertools import islice

from . import _library, errors
from .buffers import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional

    from .buffers import Buffer
    from .communicator import Communicator

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


def start(
    comm: Communicator, op: _library.Op, kept: List[Any], send_counts: Optional[List[int]],
    recv_counts: Optional[List[int]], source: Optional[c_int32], stream: Optional[_library.Stream], out: Any,
) -> int:  # fmt: skip
    """Submits `op` and returns the status; the caller is inside. Adds to `kept` what libdtrun uses until the operation ends."""
    if send_counts is not None:
        op.send_counts = _address_of(send_counts, kept)
    if recv_counts is not None:
        op.recv_counts = _address_of(recv_counts, kept)
    if source is not None:
        op.source = ctypes.pointer(source)
        kept.append(source)
    status: int
    library, error = comm._library, _library.error()
    if stream is None:
        status = library.dtrun_submit(comm._handle or comm._live(), byref(op), out, error)
    else:
        status = library.dtrun_submit_on(comm._handle or comm._live(), byref(op), byref(stream), out, error)
    return status


def _address_of(counts: List[int], kept: List[Any]) -> int:
    array = (c_uint64 * len(counts))(*counts)
    kept.append(array)
    return ctypes.addressof(array)


# ---- checks of arguments

_INT32 = (-(2**31), 2**31 - 1)
_LONGEST_S = 2**33  # in nanoseconds they fit in 63 bits


def integer(what: str, name: str, value: Any, least: int = _INT32[0], most: int = _INT32[1]) -> int:
    """`value` as an int; accepts numpy's integers."""
    try:
        number = operator.index(value)
    except TypeError:
        raise errors.InvalidArgument(f"{what}: {name} is {value!r}, a {type(value).__name__}; give an integer") from None
    if not least <= number <= most:
        raise errors.InvalidArgument(f"{what}: {name} is {number}; give one from {least} to {most}")
    return number


def integers(what: str, name: str, values: Any, most: Optional[int] = None, where: str = "") -> List[int]:
    """`values` as a list. More than `most` entries, the ranks of `where`, are an error, found before the list is made."""
    try:
        if most is not None and (length := _length(values)) > most:
            raise errors.InvalidArgument(f"{what}: {name} has {length} entries, and {where} has {most} ranks")
        limit = None if most is None else most + 1  # iterators have no length
        values = list(islice(values, limit))
        if limit is not None and len(values) == limit:
            raise errors.InvalidArgument(f"{what}: {name} has more than {most} entries, and {where} has {most} ranks")
    except TypeError:
        raise errors.InvalidArgument(f"{what}: {name} is {values!r}, of type {type(values).__name__}; give a list of integers") from None
    return [integer(what, f"{name}[{i}]", value, most=2**63 - 1) for i, value in enumerate(values)]


def limit(what: str, seconds: Any) -> Optional[float]:
    """The seconds that a call may wait. None means no limit, as do infinity and values beyond the range of clocks."""
    if seconds is None:
        return None
    try:
        number = math.nan if isinstance(seconds, (str, bytes)) else float(seconds)
    except OverflowError:  # of an int
        return None if seconds > 0 else 0.0
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise errors.InvalidArgument(
            f"{what}: timeout is {seconds!r}, a {type(seconds).__name__}; give a number of seconds, or None to wait without limit"
        )
    return max(0.0, number) if number < _LONGEST_S else None


def _length(values: Any) -> int:
    """The number of entries, or a lower bound; 0 if unknown."""
    try:
        return operator.length_hint(values)
    except OverflowError:  # of a range
        return sys.maxsize


class Checks:
    """Mixed into Communicator; errors contain its `name` and `size`."""

    name: str
    size: int

    def _counts(self, what: str, counts: Iterable[int], name: str = "counts") -> List[int]:
        counts = integers(what, name, counts, self.size, self.name)
        if len(counts) != self.size:
            raise errors.InvalidArgument(f"{what}: {name} has {len(counts)} entries, and {self.name} has {self.size} ranks")
        if min(counts) < 0:
            raise errors.InvalidArgument(f"{what}: {name} has a negative entry: {min(counts)}")
        return counts

    def _part(self, what: str, send: Buffer, instead: str) -> int:
        if send.count % self.size:
            raise errors.InvalidArgument(
                f"{what}: send has {send.count} elements, which {self.size} ranks do not divide; give {instead}"
            )
        return int(send.count // self.size)

    @staticmethod
    def _elements(what: str, name: str, buffer: Buffer, count: int) -> None:
        if buffer.count != count:
            raise errors.InvalidArgument(f"{what}: {name} has {buffer.count} elements, and needs {count}")

    def _same(self, what: str, a: Buffer, b: Buffer, count: int, name: str = "recv") -> None:
        self._elements(what, name, b, count)
        if a.dtype != b.dtype:
            raise errors.InvalidArgument(f"{what}: send and recv are of different types: {NAMES[a.dtype]} and {NAMES[b.dtype]}")
        if a.device != b.device:
            raise errors.InvalidArgument(f"{what}: send and recv are on different devices")
