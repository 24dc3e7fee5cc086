"""Memory of the transport: it is freed with its last view; free() and finalize() wait for that."""

from __future__ import annotations

import ctypes
import weakref

from . import _library
from .arguments import integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

    from .communicator import Communicator

_living: Dict[int, Tuple[Communicator, Any, int]] = {}  # by address: (communicator, handle, bytes) of memory with views
_waiting: List[Tuple[Optional[Communicator], Callable[[], None]]] = []  # ends that wait for the last view


def allocate(comm: Communicator, size: int) -> memoryview:
    size = integer("alloc", "size", size, 0, 2**63 - 1)
    out = ctypes.c_void_p()
    handle = comm._live()
    status = _library.library().dtrun_alloc(handle, size, ctypes.byref(out), _library.error())
    if status:
        raise comm._failure("alloc", status, False)
    address = out.value or 0
    memory = (ctypes.c_char * size).from_address(address)
    _living[address] = (comm, handle, size)
    weakref.finalize(memory, _free, address).atexit = False
    return memoryview(memory).cast("B")


def in_use(comm: Optional[Communicator] = None) -> List[int]:
    """The bytes of each block with a view: of `comm`, or of all communicators."""
    return [size for owner, _, size in list(_living.values()) if comm is None or owner is comm]


def when_unused(comm: Optional[Communicator], end: Callable[[], None]) -> None:
    """Calls `end` when memory of `comm`, or of any communicator, has no view: now, or with the last view."""
    if in_use(comm):
        _waiting.append((comm, end))
    else:
        end()


def forget() -> None:
    """The library frees all blocks, whatever shows them: the program ends."""
    _living.clear()
    _waiting.clear()


def _free(address: int) -> None:
    _, handle, _ = _living.pop(address, (None, None, 0))
    if handle is None:
        return
    _library.library().dtrun_free(handle, address)
    for waits in list(_waiting):
        if not in_use(waits[0]):
            _waiting.remove(waits)
            waits[1]()
