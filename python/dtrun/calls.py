"""A communicator's handle, and the calls that are inside libdtrun with it: free() and finalize() wait for those of other threads.

A call enters before it reads the handle. What ends the communicator closes it first, so that later calls find no handle.
Threads enter and leave without a lock: operations of lists are atomic.
"""

from __future__ import annotations

import os
import time
import weakref

from . import _library, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Set

    _Threads = List[Any]
else:
    _Threads = list


class Inside(_Threads):
    """The threads inside, each as its _library.error(), as often as it has entered. `with` enters and leaves."""

    __slots__ = ()

    def __enter__(self) -> None:
        self.append(_library.error())

    def __exit__(self, *_: Any) -> None:
        self.remove(_library.error())

    def wait(self, until: Optional[float] = None) -> bool:
        """Waits until no other thread is inside, and returns True; False if some are at the time `until`.

        This thread may be: a signal handler runs between two instructions of the main thread.
        """
        while self.others():
            if until is not None and time.monotonic() >= until:
                return False
            time.sleep(0.001)
        return True

    def others(self) -> List[Any]:
        me = _library.error()
        return [thread for thread in self.copy() if thread is not me]


class Calls:
    """Mixed into Communicator."""

    name: str

    def __init__(self, handle: Any) -> None:
        self._handle = handle  # None once closed to new calls
        self._ending: Any = None  # the handle from then until it is freed, for abort()
        self._inside = Inside()
        self._cause: Optional[str] = None  # of its failure, once it has been raised
        _made.add(weakref.ref(self, _made.discard))

    def _live(self) -> Any:
        if self._handle is None:
            raise errors.FailedPrecondition(f"communicator {self.name} has ended: finalize() or its free() was called")
        return self._handle

    def _close(self) -> None:
        if self._handle is not None:
            self._ending = self._handle
            self._handle = None

    def _failure(self, what: str, status: int, lasts: bool = True) -> errors.Error:
        """The exception for a failed call. If the failure was raised before, its text says so.

        `lasts`: the failure is the communicator's, unless the arguments were rejected.
        """
        failure = _library.failure(status)
        if str(failure) == self._cause:
            return failure.reworded(f"{what}: '{self.name}' has failed before: {failure}")
        if lasts:
            self._raises(failure)
        return _library.failure(status, what)

    def _raises(self, failure: errors.Error) -> None:
        if self._cause is None and failure.status not in errors.REFUSALS:
            self._cause = str(failure)


_made: Set[weakref.ref[Calls]] = set()
_nothing = Inside()


def inside(comm: Optional[Calls]) -> Inside:
    """The threads inside with `comm`."""
    return _nothing if comm is None else comm._inside


def living() -> List[Calls]:
    """The communicators that the program holds; finalize() ends them."""
    return [comm for comm in [made() for made in list(_made)] if comm is not None]  # other threads make some meanwhile


def _in_child() -> None:
    for comm in living():
        for thread in comm._inside.others():  # which a forked child lacks
            comm._inside.remove(thread)


os.register_at_fork(after_in_child=_in_child)
