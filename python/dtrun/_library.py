"""Finds and loads libdtrun through ctypes, checks its version and declares its functions. Loaded once, at the first use.

Every call releases Python's lock while it runs. The declarations follow sdk/include/dtrun/dtrun.h;
tests/test_python_package.py compares them with a compiler's.
"""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p

from . import errors
from ._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

SONAME = "libdtrun.so.1"
OK, PENDING = 0, 1


def fields(*types_and_names: Any) -> List[Tuple[str, Any]]:
    """The `_fields_` of a structure, from a type and the names of its members, another type and so on."""
    return [(name, kind) for kind, names in zip(types_and_names[::2], types_and_names[1::2]) for name in names.split()]


class CError(ctypes.Structure):
    """dtrun_error"""

    _fields_ = fields(
        c_uint32, "struct_size flags", c_int32, "code peer", c_int64, "vendor_code", c_char * 16, "vendor_domain",
        c_char * 512, "message",
    )  # fmt: skip


class Stream(ctypes.Structure):
    """dtrun_stream: the work queue of a device, such as a cudaStream_t."""

    _fields_ = fields(c_uint32, "struct_size flags", c_int32, "device_kind device_index", c_void_p, "native")


class Extension(ctypes.Structure):
    """dtrun_extension: `table` and `comm` are addresses."""

    _fields_ = fields(c_uint32, "struct_size flags", c_void_p, "table comm", c_char_p, "plugin")

    @property
    def backend(self) -> str:
        return str(self.plugin.decode())


class Op(ctypes.Structure):
    """dtrun_op: one operation, for dtrun_submit and dtrun_submit_on."""

    _fields_ = fields(
        c_uint32, "struct_size flags", c_int32, "kind dtype reduce root peer", c_uint32, "tag", c_uint64, "sequence count",
        c_void_p, "send recv", c_int64, "timeout_ns", c_void_p, "send_counts send_offsets recv_counts recv_offsets",
        c_double, "scale", POINTER(c_int32), "source",
    )  # fmt: skip


E_: Any = POINTER(CError)
WORK: Any = POINTER(c_void_p)
COMM: Any = c_void_p

# name: (result, arguments)
CALLS: Dict[str, Tuple[Any, List[Any]]] = {
    "dtrun_version": (c_char_p, []),
    "dtrun_status_text": (c_char_p, [c_int32]),
    "dtrun_error_id": (c_char_p, [E_]),
    "dtrun_error_ranks": (c_int32, [E_, POINTER(c_int32), c_int32]),
    "dtrun_init": (c_int32, [E_]),
    "dtrun_finalize": (None, []),
    "dtrun_is_initialized": (c_int32, []),
    "dtrun_metric": (c_int32, [c_char_p, c_double, c_int64, E_]),
    "dtrun_rank": (c_int32, []),
    "dtrun_world_size": (c_int32, []),
    "dtrun_local_rank": (c_int32, []),
    "dtrun_local_world_size": (c_int32, []),
    "dtrun_world": (COMM, []),
    "dtrun_comm_rank": (c_int32, [COMM]),
    "dtrun_comm_size": (c_int32, [COMM]),
    "dtrun_comm_name": (c_char_p, [COMM]),
    "dtrun_comm_backend": (c_char_p, [COMM]),
    "dtrun_comm_abort": (c_int32, [COMM, c_char_p, E_]),
    "dtrun_comm_split": (c_int32, [COMM, c_int32, c_int32, POINTER(COMM), E_]),
    "dtrun_comm_subset": (c_int32, [COMM, POINTER(c_int32), c_int32, POINTER(COMM), E_]),
    "dtrun_comm_free": (None, [COMM]),
    "dtrun_comm_extension": (c_int32, [COMM, c_char_p, POINTER(Extension), E_]),
    "dtrun_comm_connect": (c_int32, [COMM, c_int32, c_int32, E_]),
    "dtrun_comm_route": (c_char_p, [COMM, c_int32, E_]),
    "dtrun_comm_orders_on_host": (c_int32, [COMM, c_int32]),
    "dtrun_alloc": (c_int32, [COMM, c_uint64, POINTER(c_void_p), E_]),
    "dtrun_free": (None, [COMM, c_void_p]),
    "dtrun_allreduce": (c_int32, [COMM, c_void_p, c_void_p, c_uint64, c_int32, c_int32, WORK, E_]),
    "dtrun_barrier": (c_int32, [COMM, WORK, E_]),
    "dtrun_submit": (c_int32, [COMM, POINTER(Op), WORK, E_]),
    "dtrun_submit_on": (c_int32, [COMM, POINTER(Op), POINTER(Stream), WORK, E_]),
    "dtrun_group_begin": (c_int32, [COMM, E_]),
    "dtrun_group_end": (c_int32, [COMM, WORK, E_]),
    "dtrun_work_test": (c_int32, [c_void_p, POINTER(c_int32), E_]),
    "dtrun_work_wait": (c_int32, [c_void_p, c_int64, E_]),
    "dtrun_work_wait_on": (c_int32, [c_void_p, POINTER(Stream), E_]),
    "dtrun_work_release": (None, [c_void_p]),
}


def candidates() -> List[str]:
    """The places to look for libdtrun in, in order."""
    if chosen := os.environ.get("DTRUN_LIBRARY"):
        return [chosen]
    package = os.path.dirname(os.path.abspath(__file__))
    found = [os.path.join(package, "native", "lib", SONAME)]  # of the wheel
    found += [os.path.join(package, *[".."] * up, SONAME) for up in (3, 2)]  # PREFIX/lib/python3/dist-packages/dtrun
    return [path for path in found if os.path.exists(path)] + [SONAME]


def load() -> ctypes.CDLL:
    library, reason = None, OSError()
    for path in candidates():
        try:
            library = ctypes.CDLL(path)
            break
        except OSError as failure:
            reason = failure
    if library is None:
        raise errors.LibraryError(
            f"libdtrun cannot be loaded from '{path}': {reason}; install dtrun (pip install dtrun), or set DTRUN_LIBRARY "
            f"to the path of {SONAME}"
        )
    for name, (result, arguments) in CALLS.items():
        try:
            call = getattr(library, name)
        except AttributeError:
            raise errors.LibraryError(
                f"'{path}' has no {name}: it is not libdtrun of version {__version__}, which this Python package needs"
            ) from None
        call.restype, call.argtypes = result, arguments
    version = library.dtrun_version().decode()
    if version.split(".")[:2] != __version__.split(".")[:2]:
        raise errors.LibraryError(
            f"'{path}' is libdtrun {version}, and this Python package ({os.path.dirname(__file__)}) is {__version__}: "
            "install both from one release, or set DTRUN_LIBRARY to the library of this one"
        )
    return library


class _ErrorOfThread(threading.local):
    def __init__(self) -> None:
        self.value = CError(struct_size=ctypes.sizeof(CError), peer=-1)
        self.pointer = byref(self.value)


_of_thread = _ErrorOfThread()
_library: Optional[ctypes.CDLL] = None
_lock = threading.Lock()


def library() -> ctypes.CDLL:
    """libdtrun, loaded by the first call."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = load()
    return _library


def error() -> Any:
    """This thread's dtrun_error, to pass to a call."""
    return _of_thread.pointer


def failure(status: int, what: str = "") -> errors.Error:
    """The exception for a failed call of `what`, from this thread's error()."""
    call, value, pointer = library(), _of_thread.value, _of_thread.pointer
    text = value.message.decode(errors="replace") or call.dtrun_status_text(status).decode()
    if what and not text.startswith((f"{what}: ", f"{what} ")):
        text = f"{what}: {text}"
    ranks = (c_int32 * call.dtrun_error_ranks(pointer, None, 0))()
    call.dtrun_error_ranks(pointer, ranks, len(ranks))
    return errors.make(status, text, value.peer, call.dtrun_error_id(pointer).decode(), tuple(ranks))


def check(status: int, what: str = "") -> None:
    if status != OK:
        raise failure(status, what)
