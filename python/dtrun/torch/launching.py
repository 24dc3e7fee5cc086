"""The common part of a process group's operations: passes an operation to libdtrun and returns a Work.

Operations on tensors of a device start after the work queued on torch's current stream. Blocking ones return once that
stream waits for them.
"""

from __future__ import annotations

from . import streams
from .submit import submit
from .work import ENDED, FORGETFUL, DeviceWork, Follower, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any, Callable, List, Optional, Sequence

    import torch

    from ..communicator import Communicator


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
            work = DeviceWork([part], result, calls, self._follow, ordered, streams.Place(tensor.device))
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
