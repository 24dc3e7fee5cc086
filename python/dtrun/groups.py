"""Operations of a communicator that start and end as one: `with comm.group():`.

The functions are methods of Communicator, and as its calls are: one thread at a time for one communicator.
"""

from __future__ import annotations

import contextlib
from ctypes import byref, c_int32, c_void_p

from . import _library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from .communicator import Communicator


@contextlib.contextmanager
def group(comm: Communicator) -> Iterator[None]:
    """Operations inside `with comm.group():` complete together, at the end of the block, and may start together.

    A send and a receive of one group never wait for each other. Calls inside the block return None at once. An
    exception that leaves the block is not kept waiting: what has not completed then is aborted, with the communicator.
    """
    with comm._inside:
        if status := comm._library.dtrun_group_begin(comm._live(), _library.error()):
            raise comm._failure("group", status)
    comm._in_group = []  # what its operations need until they have ended
    try:
        yield
    except BaseException as error:
        with comm._inside:
            if comm._handle is not None:
                leave(comm, error)
        raise
    else:
        with comm._inside:
            handle = comm._handle
            status = 0 if handle is None else comm._library.dtrun_group_end(handle, None, _library.error())
    finally:
        comm._in_group = None
    if handle is None:
        comm._live()  # the program ends inside the block
    if status:
        raise comm._failure("group", status)


def leave(comm: Communicator, error: BaseException) -> None:
    """Ends the group of a block that an exception left: its peers may never match what was started."""
    library, handle = comm._library, comm._handle
    group, done = c_void_p(), c_int32()
    if library.dtrun_group_end(handle, byref(group), _library.error()):
        return
    if not library.dtrun_work_test(group, byref(done), _library.error()) and not done.value:
        reason = f"an exception left a group: {type(error).__name__}: {error}"
        library.dtrun_comm_abort(handle, reason.encode(errors="replace"), _library.error())
    library.dtrun_work_release(group)
