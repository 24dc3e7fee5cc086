"""Memory of the transport, which ends with its last view."""

from __future__ import annotations

import ctypes
import weakref

from . import _library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .communicator import Communicator


def allocate(comm: Communicator, size: int) -> memoryview:
    out = ctypes.c_void_p()
    status = _library.library().dtrun_alloc(comm._live(), size, ctypes.byref(out), _library.error())
    _library.check(status, "alloc")
    address = out.value or 0
    memory = (ctypes.c_char * size).from_address(address)
    weakref.finalize(memory, _free, comm, address).atexit = False
    return memoryview(memory).cast("B")


def _free(comm: Communicator, address: int) -> None:
    if comm._handle is not None:  # else the memory has ended with it
        _library.library().dtrun_free(comm._handle, address)
