"""torch.distributed's Work for a running operation: wait, future, and actions at its end."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from datetime import timedelta
from typing import Any, Callable, Iterable, List, Optional, Sequence, Type, TypeVar

import torch
import torch.distributed as dist

from .. import _library, errors, work
from ..communicator import Communicator
from ..operations import limit
from .following import Follower as Follower
from .tensors import Place, Tensors

Calls = Sequence[Callable[[], object]]
AWork = TypeVar("AWork", bound="Work")

# C++ of torch 1.13, 2.5 and 2.6 keeps the C++ part of a Work only, and waits for ever without the Python object. That of 2.13 keeps
# both; those between were not tried.
FORGETFUL = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 13)
_SET_BY = "set another timeout in init_process_group or new_group, or backend.timeout in the config"
_THREADS = (
    "of this rank call operations of one process group, so that their order may differ between ranks: make a group for one of them "
    "on all ranks first, as in group = torch.distributed.new_group(), then async_save(..., process_group=group)"
)


class Started(work.Work):
    """A dtrun.Work of tensors."""

    __slots__ = ()

    def _end(self, status: int) -> None:
        super()._end(status)
        if self._failure is not None:
            self._failure = explained(self._failure, self._comm)

    def orders_on_host(self, kind: int) -> bool:
        """Whether wait_on() blocks until the data has arrived; `kind` is that of its device."""
        if self._comm is None or self._handle is None:
            return False
        with self._comm._inside:
            return bool(_library.library().dtrun_comm_orders_on_host(self._comm._live(), kind))

    def tensors(self) -> List[torch.Tensor]:
        """Its tensors; none after its end was seen."""
        return [kept for kept in (self._kept or ())[:2] if kept is not None]


def note_caller(comm: Communicator) -> None:
    comm._callers[threading.get_ident()] = threading.current_thread().name


def explained(failure: errors.Error, comm: Optional[Communicator] = None) -> errors.Error:
    """Adds to a timeout what set it, and to calls that differ whether several threads of this rank made them."""
    if comm is not None:
        note_caller(comm)
    if isinstance(failure, errors.Timeout):
        more = _SET_BY
    elif isinstance(failure, errors.Mismatch) and comm is not None and len(_callers(comm)) > 1:
        more = f"the threads {' and '.join(_callers(comm))} {_THREADS}"
    else:
        return failure
    return failure if more in str(failure) else failure.reworded(f"{failure}; {more}")


def _callers(comm: Communicator) -> List[str]:
    """The program's threads that have called operations of `comm`, without those of dtrun and of torch's C++."""
    return sorted({name for name in comm._callers.values() if not name.startswith(("dtrun-", "Dummy-"))})[:4]


class Work(dist.Work):
    """Operations that were started together. The caller of wait() waits for them; a thread does if the program asks for a
    future."""

    def __init__(
        self, parts: Sequence[Started], result: Tensors, finish: Calls = (), follow: Optional[Follower] = None,
        ordered: bool = True, place: Optional[Place] = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._parts = parts
        self.tensors = result  # complete after wait()
        self._finish = finish  # functions to call when all parts have ended
        self._follow = follow or _nobody  # of the group
        self._ordered = ordered  # whether it ends after those started before it
        self._place = place  # the device, of DeviceWork
        self._failure: Optional[Exception] = None
        self._ended = not parts and not finish
        self._future: Any = None
        self._lock = threading.Lock()  # held while a thread waits
        self._asking = threading.Lock()  # held while a thread makes the future

    @classmethod
    def joined(cls: Type[AWork], works: Iterable[AWork], result: Tensors) -> AWork:
        """A Work that ends when all of `works` have ended; these stay usable."""
        works = list(works)
        parts, calls = [part for work in works for part in work._parts], [work.wait for work in works]
        return cls(parts, result, calls, works[0]._follow, all(work._ordered for work in works), works[0]._place)

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Blocks until the end, at most `timeout` (timedelta; zero and None: the operation's timeout). Raises the failure."""
        if FORGETFUL and len(self.tensors) < 2:  # functional collectives wait for the Work of several by each of its tensors
            self._follow.kept.pop(self, None)
        if not self._ended:
            seconds = timeout.total_seconds() if timeout else 0
            self._wait(limit("wait", seconds) if seconds > 0 else None)
        if self._failure is not None:
            raise self._failure
        return True

    def is_completed(self) -> bool:
        if self._ended or not self._lock.acquire(blocking=False):
            return self._ended
        try:
            if all(part.done() for part in self._parts):
                self._end(None)
        finally:
            self._lock.release()
        return self._ended

    def is_success(self) -> bool:
        return self.is_completed() and self._failure is None

    def exception(self) -> Optional[Exception]:
        """Its failure, once it has ended; or None."""
        return self._failure

    def get_future(self) -> Any:
        """Completed with the list of result tensors, or with the failure."""
        if FORGETFUL:
            self._follow.kept.pop(self, None)
        if self._future is None:
            with self._asking:  # two threads that ask get one future
                if self._future is None:
                    self._future = self._make_future()
        return self._future

    def result(self) -> Tensors:
        self.wait()
        return self.tensors

    def source_rank(self) -> int:
        """The sender's rank, of a receive from any source that has ended."""
        self.wait()
        return int(self._parts[0].wait())

    _source_rank = source_rank

    def synchronize(self) -> None:
        self.wait()

    def _make_future(self) -> Any:
        promise = self._promise()
        future = promise.then(_outcome)  # an exception of `then` is one for C++ too
        if self._ended:
            promise.set_result(self._failure or self.tensors)
        else:
            follow = self._follow.in_order if self._ordered else self._follow.on_a_thread
            follow(self._wait_on_thread, functools.partial(self._complete, promise))
        return future

    def _promise(self) -> Any:
        return torch.futures.Future()

    def _complete(self, promise: Any) -> None:
        """Completes the future, which runs its callbacks; on a thread."""
        if not self._ended:
            self._wait(None)
        promise.set_result(self._failure or self.tensors)

    def _wait_on_thread(self) -> None:
        """Waits for the operations alone: `finish` runs C++ of torch."""
        if not self._finish:
            self._wait(None)
            return
        for part in self._parts:
            try:
                part.wait()
            except errors.Error:  # _wait() sees it again
                pass

    def _wait(self, seconds: Optional[float]) -> None:
        if not self._lock.acquire(timeout=-1 if seconds is None else seconds):
            raise _still_runs(seconds)
        try:
            if not self._ended:
                self._end(seconds)
        except TimeoutError:
            raise _still_runs(seconds) from None
        finally:
            self._lock.release()

    def __del__(self) -> None:
        """A dropped Work, such as that of isend, continues: a thread waits for it."""
        if not self._ended and not sys.is_finalizing():
            heir = Work(self._parts, [], self._finish)  # its failure is every later call's too
            self._follow.on_a_thread(heir._wait_on_thread, functools.partial(heir._wait, None))

    def _end(self, seconds: Optional[float]) -> None:
        """Holds the lock. Waits and finishes; raises TimeoutError if it still runs after `seconds`."""
        self._attempt(functools.partial(self._wait_and_finish, seconds))
        self._ended = True

    def _attempt(self, call: Callable[[], object]) -> None:
        """Calls it, and keeps its failure."""
        try:
            call()
        except errors.Error as failure:
            self._failure = explained(failure)
        except TimeoutError:
            raise
        except Exception as failure:  # of `finish`
            self._failure = failure

    def _wait_and_finish(self, seconds: Optional[float]) -> None:
        self._wait_for_parts(seconds)
        for finish in self._finish:
            finish()

    def _wait_for_parts(self, seconds: Optional[float]) -> None:
        """At most `seconds` for all of them."""
        until = None if seconds is None else time.monotonic() + seconds
        for part in self._parts:
            part.wait(None if until is None else max(0.0, until - time.monotonic()))


class DeviceWork(Work):
    """Operations on a device. wait() makes torch's current stream wait, not the calling thread."""

    _place: Place
    _finished_on: Any = None  # the stream that the calls of `finish` are on

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Makes later work on torch's current stream start after the operation. With a `timeout` the caller waits too, at
        most that long."""
        if timeout and timeout.total_seconds() > 0:
            super().wait(timeout)
        if FORGETFUL:
            self._follow.kept.pop(self, None)
        with self._lock:
            self._queue_wait()
        if self._failure is not None:
            raise self._failure
        return True

    def _queue_wait(self) -> None:
        """Holds the lock."""
        current = self._place.current()
        native = self._place.native(current)
        for part in self._parts:
            part.wait_on(native)
        if self._finished_on is not None:
            current.wait_stream(self._finished_on)
        elif self._finish:
            self._call_finish(current, self._moved())
        self._ended = True

    def _moved(self) -> Tensors:
        """The tensors that the parts send and receive; parts forget them at their end."""
        return [tensor for part in self._parts for tensor in part.tensors()]

    def _call_finish(self, current: Any, moved: Tensors) -> None:
        for tensor in moved:  # they were made on the stream of the call
            self._place.use(tensor, current)
        for finish in self._finish:
            finish()
        self._finished_on = current

    def _wait_and_finish(self, seconds: Optional[float]) -> None:
        moved = self._moved()
        self._wait_for_parts(seconds)
        if self._finish and self._finished_on is None:
            self._call_finish(self._place.current(), moved)

    def is_completed(self) -> bool:
        """Whether the device has completed it; wait() does not wait for that."""
        return all(part.done() for part in self._parts)

    def _make_future(self) -> Any:
        """A future that orders streams. Complete at once, in the order of streams, as nccl's. If ordering a stream blocks, as
        with staging, a thread does it and completes the future once the data has arrived."""
        if not self._ended and any(part.orders_on_host(self._place.kind) for part in self._parts):
            return super()._make_future()
        future: Any = self._promise()
        with self._lock, self._place.on_side():
            self._queue_wait()
            future.set_result(self.tensors)
        return future

    def _promise(self) -> Any:
        return torch.futures.Future(devices=[self._place.device])

    def _complete(self, promise: Any) -> None:
        with self._place.on_side():
            with self._lock:
                self._attempt(self._queue_wait)
            promise.set_result(self._failure or self.tensors)

    def _wait_on_thread(self) -> None:
        native = self._place.native(self._place.side())
        for part in self._parts:
            with contextlib.suppress(errors.Error):  # which _complete() sees again
                part.wait_on(native)

    def __del__(self) -> None:
        """Running operations continue; libdtrun keeps their memory."""
        if not self._ended and self._finish and not sys.is_finalizing():
            self.wait()


def _still_runs(seconds: Optional[float]) -> errors.Error:
    return errors.Timeout(f"the operation still runs after {seconds or 0:g} s; wait again, or abort the process group")


def _outcome(promise: Any) -> Any:
    value = promise.value()
    if isinstance(value, BaseException):
        raise value
    return value


_nobody = Follower()

ENDED = Work((), [])
"""The result of a call that has blocked."""
