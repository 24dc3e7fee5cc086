"""Work: the handle of an operation that was started with wait=False."""

from __future__ import annotations

import ctypes
import weakref
from _thread import RLock
from collections import deque

from . import _library, errors
from .calls import inside
from .operations import limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Iterator, Optional, Set, Tuple

    from .communicator import Communicator

# Running operations without a Work: (handle, what they read and write, communicator). The list is never freed, not
# even when the interpreter ends: a process that ends by an exception does not free memory under an operation.
_dropped: Deque[Tuple[ctypes.c_void_p, Any, Any]] = deque()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_dropped))

_held: Set[weakref.ref[Work]] = set()  # to those that run and have a Work


class Work:
    """A running operation. Do not touch its buffers until wait() or done() report its end; they stay alive until then.

    Made by Communicator; any thread may use it. If you drop a Work, its operation continues, and the next call on the
    communicator raises its failure. free() and finalize() wait for all running operations.
    """

    __slots__ = ("_comm", "_failure", "_handle", "_kept", "_lock", "_result", "_source", "__weakref__", "what")

    def __init__(
        self, handle: ctypes.c_void_p, result: Any, kept: Any, what: str, source: Any = None,
        comm: Optional[Communicator] = None,
    ) -> None:  # fmt: skip
        self._handle: Optional[ctypes.c_void_p] = handle
        self._kept = kept  # buffers, and arrays that libdtrun writes to at the end
        self._result = result
        self._failure: Optional[errors.Error] = None
        self._source = source
        self._comm = comm
        self._lock = RLock()  # a signal handler may call finalize() where this thread holds it
        self.what = what
        _held.add(weakref.ref(self, _held.discard))
        if _dropped:
            release_ended()

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Blocks until the operation has ended, at most `timeout` seconds if given; infinity means no limit.

        Returns the result of the blocking call. Raises the operation's failure, at every call. Raises TimeoutError after
        `timeout` if the operation still runs; it continues, and you can wait again.
        """
        if timeout is not None:
            timeout = limit(f"wait of {self.what}", timeout)
        if self._handle is not None:
            if not self._lock.acquire(True, -1 if timeout is None else timeout):
                raise TimeoutError(f"{self.what} still runs after {timeout:g} s")
            try:
                self._wait(timeout)
            finally:
                self._lock.release()
        if self._failure is not None:
            if self._comm is not None:
                self._comm._raises(self._failure)
            raise self._failure
        return self._result if self._source is None else self._source.value

    def done(self) -> bool:
        """Whether the operation has ended, without blocking. True also for a failed operation; wait() raises the failure."""
        if self._handle is None:
            return True
        if not self._lock.acquire(False):
            return False  # another thread waits for it
        try:
            if self._handle is not None:
                status = _tested(self._handle)
                if status is None:
                    return False
                self._end(status)
            return True
        finally:
            self._lock.release()

    def end(self) -> None:
        """Blocks until the operation has ended, without raising its failure; wait() does."""
        with self._lock:
            self._wait(None)

    def wait_on(self, stream: _library.Stream) -> None:
        """Makes later work on `stream` (a _library.Stream) start after the operation. The calling thread does not wait, except
        on routes that order streams on the host, such as staging."""
        with self._lock, inside(self._comm):  # done() in another thread may let the handle go
            if self._handle is not None:
                _library.check(_library.library().dtrun_work_wait_on(self._handle, ctypes.byref(stream), _library.error()))

    def _wait(self, timeout: Optional[float]) -> None:
        library, error = _library.library(), _library.error()
        limit_ns = -1 if timeout is None else int(timeout * 1e9)
        with inside(self._comm):
            if self._handle is None:
                return  # another thread has seen its end
            status = library.dtrun_work_wait(self._handle, limit_ns, error)
        if status == _library.PENDING:
            raise TimeoutError(f"{self.what} still runs after {timeout:g} s")
        self._end(status)

    def _end(self, status: int) -> None:
        failure = None if status == _library.OK else _library.failure(status)
        if self._handle is None:
            return  # a signal handler's finalize() has seen its end
        self._failure = failure
        handle, self._handle = self._handle, None
        _library.library().dtrun_work_release(handle)
        self._kept = None
        _held.discard(weakref.ref(self))

    def __del__(self, dropped: Any = _dropped) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            dropped.append((handle, self._kept, self._comm))

    def __repr__(self) -> str:
        state = "failed" if self._failure else "running" if self._handle is not None else "done"
        return f"<dtrun.Work {self.what}: {state}>"


def _tested(handle: ctypes.c_void_p) -> Optional[int]:
    """The status of an operation; None while it runs."""
    done = ctypes.c_int32()
    status: int = _library.library().dtrun_work_test(handle, ctypes.byref(done), _library.error())
    return status if status != _library.OK or done.value else None


def _taken() -> Iterator[Tuple[ctypes.c_void_p, Any, Any]]:
    """Takes each of those that are in _dropped now; other threads may take some."""
    for _ in range(len(_dropped)):
        try:
            operation = _dropped.popleft()
        except IndexError:
            return
        yield operation


def release_ended() -> None:
    """Releases the operations without a Work that have ended."""
    for operation in _taken():
        with inside(operation[2]):
            if _tested(operation[0]) is None:
                _dropped.append(operation)
            else:  # a failure is the communicator's now: its next call raises it
                _library.library().dtrun_work_release(operation[0])


def wait_for_all(comm: Optional[Communicator] = None) -> Optional[errors.Error]:
    """Blocks until the operations of `comm`, or all, have ended. Returns a failure that no Work will raise and no call has raised."""
    for work in [held() for held in list(_held)]:  # other threads start operations meanwhile
        if work is not None and (comm is None or work._comm is comm):
            work.end()
    library = _library.library()
    failure: Optional[errors.Error] = None
    for operation in _taken():
        if comm is not None and operation[2] is not comm:
            _dropped.append(operation)
            continue
        try:
            status = library.dtrun_work_wait(operation[0], -1, _library.error())
        except BaseException:  # an interrupt: it still runs
            _dropped.append(operation)
            raise
        if status != _library.OK and failure is None:
            ended = _library.failure(status)
            failure = None if operation[2] is not None and str(ended) == operation[2]._cause else ended
        library.dtrun_work_release(operation[0])
    return failure
