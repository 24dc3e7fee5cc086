"""Controller: the thread that agrees with the other ranks on the next operations, and runs them in that order.

One for each process set, on a private communicator. It works in rounds: every rank announces the operations that were
submitted since the last round, and all ranks make the same decisions (negotiation.py). A rank joins a round at once if it has
new operations or waits for others. Otherwise it joins now and then, so that the others know what it has not submitted.
Nothing polls while all ranks compute.
"""

import contextlib
import itertools
import sys
import threading
from collections import defaultdict
from typing import Callable, DefaultDict, Dict, Iterator, List, Optional, Tuple

from .. import errors
from ..communicator import Communicator
from .announcements import Announcements
from .checks import checked
from .exceptions import HorovodInternalError
from .negotiation import Decision, Negotiation
from .request import Request
from .settings import Settings
from .signature import Signature, called
from .timeline import timeline

Agreed = Tuple[Decision, Optional[Request]]  # no request: this rank has joined
Execute = Callable[["Controller", List[Agreed]], None]

HEARTBEAT_S = 1.0
_LONGEST_PAUSE_S = 0.032
_FREED_WITHIN_S = 5.0  # a communicator, once its rank leaves


class Controller:
    """Serves one process set. `ranks`: the numbers of its members in the job. `execute` runs agreed operations in order."""

    def __init__(self, comm: Communicator, ranks: List[int], settings: Settings, execute: Execute) -> None:
        self.comm = comm
        self.ranks = ranks
        self.settings = settings
        self._execute = execute
        self._table = Negotiation(comm.size)
        self._announcements = Announcements(comm, settings.cache_entries)
        self._condition = threading.Condition()
        self._new: List[Signature] = []
        self._requests: Dict[str, Request] = {}
        self._names: DefaultDict[str, Iterator[int]] = defaultdict(itertools.count)
        self._leaving = False
        self._over: Optional[str] = None
        self._missed: Optional[int] = None  # the place of the rank that has left, until that is reported
        limits = [HEARTBEAT_S] + [s / 2 for s in (settings.stall_warning_s, settings.stall_shutdown_s) if s]
        self._heartbeat_s = min(limits)
        self._pause_s = settings.cycle_s
        self._thread = threading.Thread(target=self._run, name=f"hvd {comm.name}", daemon=True)
        self._thread.start()

    def next_name(self, kind: str) -> str:
        """A name for an unnamed operation: the nth of its kind gets the same name on each rank."""
        with self._condition:
            return f"{kind}.noname.{next(self._names[kind])}"

    def submit(self, request: Request) -> Request:
        """Announces it in the next round. Raises ValueError for a mistake of this rank; then nothing has started."""
        signature = request.signature = checked(request.signature)
        with self._condition:
            over = self._over
            if over is None and signature.name in self._requests:
                raise ValueError(
                    f"{signature.called}: an operation of this name is under way on this rank; wait for "
                    "it with hvd.synchronize(), or use another name"
                )
            if over is None:
                self._requests[signature.name] = request
                self._new.append(signature)
                self._condition.notify()
        if over is not None:
            self._report()
            raise HorovodInternalError(f"{signature.called}: {over}")
        return request

    def stop(self) -> None:
        """Leaves, which ends the process set for every rank. Waits for that."""
        with self._condition:
            self._leaving = True
            self._condition.notify()
        if self._thread is not threading.current_thread():
            self._thread.join()

    # ---- the thread ----

    def _run(self) -> None:
        try:
            while self._round():
                pass
        except errors.Error as failure:
            self._end(f"the ranks lost each other: {failure}")
        except BaseException as failure:  # an error of this program: report it, and do not let the others wait
            self._end(f"the controller failed: {type(failure).__name__}: {failure}")
            self.comm.abort(f"hvd's controller of rank {self.comm.rank} failed: {failure}")
            raise

    def _round(self) -> bool:
        new = self._collect()
        timeline.cycle()
        announced = self._announcements.exchange(new)
        left = []
        for rank, signatures in enumerate(announced):
            if signatures and signatures[-1].kind == "leave":
                left.append(self.ranks[rank])
                signatures.pop()
            self._table.receive(rank, signatures)
        agreed = [(decision, self._take(decision)) for decision in self._table.decide()]
        news = any(announced)
        self._pause_s = self.settings.cycle_s if news else min(2 * self._pause_s, _LONGEST_PAUSE_S)
        if agreed:
            self._perform(agreed)
        if left:
            if self.comm.size == 1 or self._leaving:
                self._end("hvd.shutdown() was called")
            else:
                self._end(f"rank {self.ranks[left[0]]} has called hvd.shutdown() or ended", left[0])
            return False
        self._check_stalls()
        return True

    def _collect(self) -> List[Signature]:
        """Waits until the next round, and returns the new requests."""
        with self._condition:
            if not self._new and not self._leaving:
                if not self._requests:
                    self._condition.wait_for(lambda: self._new or self._leaving, self._heartbeat_s)
                elif self._table.everyone_waits():  # otherwise all ranks would join again and again
                    self._condition.wait_for(lambda: self._new or self._leaving, self._pause_s)
            new, self._new = self._new, []
            if self._leaving:
                new.append(Signature("leave", ""))
            return new

    def _take(self, decision: Decision) -> Optional[Request]:
        with self._condition:
            request = self._requests.pop(decision.name, None)
            if decision.last >= 0:  # ranks that joined early have counted fewer operations
                self._names.clear()
        if request is not None and decision.error is not None:
            request.fail(f"{request.signature.called}: {self._in_job(decision.error)}")
        return request

    def _in_job(self, text: str) -> str:
        return text if self.ranks == list(range(len(self.ranks))) else f"process set {self.ranks}, by place in it: {text}"

    def _perform(self, agreed: List[Agreed]) -> None:
        try:
            self._execute(self, [(decision, request) for decision, request in agreed if decision.error is None])
        except BaseException:
            with self._condition:  # those that have not ended end with the process set
                self._requests.update((d.name, request) for d, request in agreed if request is not None and not request.done())
            raise

    def _end(self, reason: str, missed: Optional[int] = None) -> None:
        """`missed`: the place of the rank that has left; ranks that still need it report it to dtrun."""
        with self._condition:
            self._over, self._missed = reason, missed
            pending, self._requests = list(self._requests.values()), {}
        if pending:
            self._report()
        for request in pending:
            request.fail(f"{request.signature.called}: {reason}")

    def _report(self) -> None:
        """Runs once. The transport reports operations that wait for a rank that has left."""
        with self._condition:
            missed, self._missed = self._missed, None
        if missed is None:
            return
        with contextlib.suppress(errors.Error):
            try:
                self.comm.recv(bytearray(1), missed, wait=False).wait(_FREED_WITHIN_S)
            except TimeoutError:
                self.comm.abort("hvd has ended")

    def _check_stalls(self) -> None:
        if self.comm.rank != 0:
            return
        if self.settings.stall_warning_s:
            for stall in self._table.stalls(self.settings.stall_warning_s):
                missing = ", ".join(str(self.ranks[rank]) for rank in stall.missing)
                print(
                    f"dtrun: hvd.{called(stall.kind, stall.name)}: submitted by {len(stall.submitted)} of {self.comm.size} ranks "
                    f"{stall.age:.0f} s ago, and not by rank {missing}; every rank must submit it",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
        if self.settings.stall_shutdown_s:
            stalls = self._table.stalls(self.settings.stall_shutdown_s, again=True)
            with self._condition:
                self._new.extend(Signature("abort", stall.name) for stall in stalls)
