"""The exceptions: one class for each status of libdtrun, all derived from `dtrun.Error`.

A message has the failed call, the value, the place and the next step. For programs, `id` names what happened
("comm.timeout", "invalid_argument", ...; ids stay, messages may change), `ranks` are the ranks that it concerns, and
`peer` is the rank that failed or left, if known. After a failed operation, except with InvalidArgument and Unsupported,
the communicator stays failed: later calls raise an error of the same class with the first cause.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple


class Error(RuntimeError):
    """A call of libdtrun failed. `status`: its number in dtrun/abi/base.h; `peer`: the rank that failed, or None."""

    status = 13
    id = "internal"
    ranks: Tuple[int, ...] = ()

    def __init_subclass__(cls, status: Optional[int] = None, id: Optional[str] = None) -> None:
        cls.status, cls.id = status or cls.status, id or cls.id

    def __init__(self, message: str, peer: Optional[int] = None) -> None:
        super().__init__(message)
        self.peer = peer
        if peer is not None:
            self.ranks = (peer,)

    def reworded(self, message: str) -> Error:
        """The same failure with another message."""
        return make(self.status, message, self.peer, self.id, self.ranks)


class InvalidArgument(Error, ValueError, status=2, id="invalid_argument"):
    """An invalid argument. Nothing was started, and the communicator still works."""


class Unsupported(Error, status=3, id="unsupported"):
    """Not supported by the backend, device or type. Nothing was started, and the communicator still works."""


class NotFound(Error, LookupError, status=5, id="not_found"):
    """No backend of the communicator has that extension."""


class FailedPrecondition(Error, status=4, id="failed_precondition"):
    """Wrong state: before init, after the end, or in a child that was forked after init."""


class Timeout(Error, TimeoutError, status=7, id="timeout"):
    """The operation did not complete within its time limit (`backend.timeout` of the config) and has failed."""


class Aborted(Error, status=8, id="aborted"):
    """The communicator was aborted."""


class RemoteFailure(Error, ConnectionError, status=9, id="remote_failure"):
    """Another rank failed; `peer` names it."""


class Mismatch(Error, status=14, id="mismatch"):
    """Ranks made different calls; the message names both."""


class LibraryError(Error, ImportError, status=5, id="not_found"):
    """libdtrun was not found, cannot be loaded, or is of another version than this package."""


BY_STATUS = {kind.status: kind for kind in (InvalidArgument, Unsupported, NotFound, FailedPrecondition, Timeout, Aborted, RemoteFailure, Mismatch)}


# These do not make the communicator fail.
REFUSALS = (InvalidArgument.status, Unsupported.status, FailedPrecondition.status, NotFound.status)


def make(status: int, message: str, peer: Optional[int], id: str, ranks: Tuple[int, ...]) -> Error:
    """The exception for a status that libdtrun returned."""
    error = BY_STATUS.get(status, Error)(message, None if peer is None or peer < 0 else peer)
    error.status, error.id, error.ranks = status, id, ranks
    return error
