"""The common part of a process group's operations: passes an operation from tensors to libdtrun and returns a Work.

Operations on tensors of a device start after the work queued on torch's current stream. Blocking ones return once that
stream waits for them.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_void_p
from datetime import timedelta
from typing import Any, Callable, List, Optional, Sequence

import torch

from .. import _library, errors
from ..communicator import Communicator
from ..operations import start
from .following import await_turn, overtakers
from .tensors import NUMBERS, place_of
from .work import ENDED, FORGETFUL, DeviceWork, Follower, Started, Work, explained, note_caller

_SIZEOF_OP = ctypes.sizeof(_library.Op)
_BYTES = 7  # uint8


def submit(
    comm: Communicator, what: str, kind: int, send: Optional[torch.Tensor], recv: Optional[torch.Tensor], *, wait: bool,
    timeout_ns: int = 0, count: int = 0, reduce: int = 0, root: int = -1, peer: int = -1, tag: int = 0,
    send_counts: Optional[List[int]] = None, recv_counts: Optional[List[int]] = None,
    source: Optional[ctypes.c_int32] = None,
) -> Optional[Started]:  # fmt: skip
    """Starts an operation. Returns a dtrun.Work, or None if it blocked (`wait`); on a device only torch's current stream blocks.
    Tensors are dense. A type that dtrun lacks is moved as bytes and cannot be reduced."""
    if overtakers:
        await_turn(what, timeout_ns / 1e9)
    tensor = recv if send is None else send
    number, width = _BYTES, 1
    if tensor is not None:
        if recv is not None and recv is not tensor and recv.device != tensor.device:
            raise errors.InvalidArgument(f"{what}: the input is on {tensor.device} and the output on {recv.device}")
        known = NUMBERS.get(tensor.dtype)
        if known is not None:
            number = known
        elif reduce:
            raise errors.Unsupported(
                f"{what}: {tensor.dtype} cannot be reduced; convert the tensor first, as in tensor.float()"
            )
        else:
            width = tensor.element_size()
    op = _library.Op(
        _SIZEOF_OP, 0, kind, number, reduce, root, peer, tag, 0, count * width, None if send is None else send.data_ptr(),
        None if recv is None else recv.data_ptr(), timeout_ns,
    )
    kept: List[Any] = [send, recv]
    if width != 1:
        send_counts, recv_counts = (counts and [n * width for n in counts] for counts in (send_counts, recv_counts))
    if threading.get_ident() not in comm._callers:
        note_caller(comm)
    stream = None
    if tensor is not None and not tensor.is_cpu:
        place = place_of(tensor.device)
        stream = place.native(place.current())
    handle = None if wait else c_void_p()
    out = None if handle is None else byref(handle)
    with comm._inside:
        status = start(comm, op, kept, send_counts, recv_counts, source, stream, out)
        if status:
            raise explained(comm._failure(what, status), comm)
        return None if handle is None else Started(handle, None, kept, what, source, comm)


class Launching:
    """Base of the classes with torch's calls, one class for each kind of operation."""

    comm: Communicator
    _follow: Follower
    _timeout_ns: int
    _coalesced: Optional[List[Work]]  # works since _start_coalescing

    def _ns(self, timeout: Optional[timedelta]) -> int:
        seconds = timeout.total_seconds() if timeout else 0
        return int(seconds * 1e9) if seconds > 0 else self._timeout_ns

    def _launch(
        self, what: str, opts: Any, kind: int, send: Optional[torch.Tensor], recv: Optional[torch.Tensor],
        finish: Sequence[Optional[Callable[[], object]]], result: List[torch.Tensor], ordered: bool = True, **given: Any,
    ) -> Work:  # fmt: skip
        """Starts an operation; runs it to its end if opts say that the caller blocks (torch 2.7 and later)."""
        wait = opts is not None and not getattr(opts, "asyncOp", True) and self._coalesced is None
        timeout_ns = self._timeout_ns if opts is None else self._ns(opts.timeout)
        part = submit(self.comm, what, kind, send, recv, wait=wait, timeout_ns=timeout_ns, **given)
        calls = [call for call in finish if call is not None]
        if part is None:
            for call in calls:
                call()
            return ENDED
        tensor = recv if send is None else send
        if tensor is None or tensor.is_cpu:
            work = Work([part], result, calls, self._follow, ordered)
        else:
            work = DeviceWork([part], result, calls, self._follow, ordered, place_of(tensor.device))
        if self._coalesced is not None:
            self._coalesced.append(work)
        return self._keep(work)

    def _join(self, works: List[Work], result: List[torch.Tensor]) -> Work:
        """One Work of several."""
        works = [work for work in works if work is not ENDED]
        if not works:
            return ENDED
        alike = len({work._place for work in works}) == 1  # else the host waits for all
        return self._keep((type(works[0]) if alike else Work).joined(works, result))

    def _keep(self, work: Work) -> Work:
        if FORGETFUL:
            self._follow.keep(work)
        return work

    def _start_coalescing(self, device: Optional[torch.device] = None) -> None:
        self._coalesced = []

    def _end_coalescing(self, device: Any = None) -> Work:
        """One Work for all operations since _start_coalescing; torch 1.13 passes the list of works, and keeps them."""
        works, self._coalesced = self._coalesced or [], None
        if isinstance(device, list):
            return ENDED
        return self._join(works, [tensor for work in works for tensor in work.tensors])

    start_coalescing, end_coalescing = _start_coalescing, _end_coalescing  # as torch after 2.13 calls them
