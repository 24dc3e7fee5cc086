"""What can go wrong: one class for each status of libdtrun, all of them `dtrun.Error`.

A message says what failed, with which value and where, and what to do next; `peer` is the rank that failed or went
away, where it is known. After a failure of an operation, other than InvalidArgument and Unsupported, its communicator
stays failed: later calls raise an error of the same class, which says that it has failed before, and why.
"""


from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


class Error(RuntimeError):
    """A call of libdtrun failed. `status`: its number in dtrun/abi/base.h; `peer`: the rank that failed, or None."""

    status = 13

    def __init__(self, message: str, peer: Optional[int] = None) -> None:
        super().__init__(message)
        self.peer = peer


class InvalidArgument(Error, ValueError):
    """The caller's mistake: nothing was started, and the communicator still works."""

    status = 2


class Unsupported(Error):
    """This backend, device or type cannot do that: nothing was started, and the communicator still works."""

    status = 3


class FailedPrecondition(Error):
    """Wrong state: not initialised, already over, or in a child that was forked after init."""

    status = 4


class Timeout(Error, TimeoutError):
    """The operation did not end in time (`backend.timeout` of the config), and has failed."""

    status = 7


class Aborted(Error):
    """Somebody aborted the communicator."""

    status = 8


class RemoteFailure(Error, ConnectionError):
    """Another rank failed; `peer` names it."""

    status = 9


class Mismatch(Error):
    """Ranks made different calls; the message names both."""

    status = 14


class LibraryError(Error, ImportError):
    """libdtrun was not found, cannot be loaded, or is of another version than this package."""

    status = 5


BY_STATUS = {kind.status: kind for kind in (InvalidArgument, Unsupported, FailedPrecondition, Timeout, Aborted, RemoteFailure, Mismatch)}


# They say nothing of the communicator.
REFUSALS = (InvalidArgument.status, Unsupported.status, FailedPrecondition.status)


def make(status: int, message: str, peer: Optional[int]) -> Error:
    """The exception for a status that libdtrun returned."""
    error = BY_STATUS.get(status, Error)(message, None if peer is None or peer < 0 else peer)
    error.status = status
    return error
