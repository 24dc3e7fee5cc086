"""Ctrl-C while the main thread is in a call of libdtrun: ends the call and raises KeyboardInterrupt.

Python runs its SIGINT handler between two instructions, which a call that waits for other ranks never reaches. Here a
thread gets the signal (signal.set_wakeup_fd), checks that the main thread has not moved, and aborts the communicator of
its call. This costs operations nothing. It does nothing if the program has its own SIGINT handler.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import sys
import threading
import time

from . import errors
from .communicator import Communicator
from .work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Iterator, List, Optional

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_SAMPLE_S, _SAMPLES = 0.05, 10

_writer: Optional[int] = None  # the end of the pipe that signals are written to


def start() -> None:
    """Starts watching, unless another library has set a wakeup descriptor. Does nothing outside the main thread."""
    global _writer
    if _writer is not None or threading.current_thread() is not threading.main_thread():
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
        return
    _writer = writer
    threading.Thread(target=_watch, args=(reader,), name="dtrun-interrupts", daemon=True).start()


def stop() -> None:
    global _writer
    if _writer is None or threading.current_thread() is not threading.main_thread():
        return
    _leave_alone()
    with _closed_by_program():
        os.close(_writer)  # the thread ends
    _writer = None


@contextlib.contextmanager
def _closed_by_program() -> Iterator[None]:
    """Passes over descriptors that are gone: a program may close all it has, as daemons do."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EBADF:
            raise


def _leave_alone() -> None:
    before = signal.set_wakeup_fd(-1)
    if before not in (-1, _writer):
        signal.set_wakeup_fd(before)  # another library has set its own


def _in_child() -> None:
    """Stops watching in a forked child."""
    global _writer
    if _writer is not None:
        _leave_alone()
        _writer = None


os.register_at_fork(after_in_child=_in_child)


def _watch(reader: int) -> None:
    with _closed_by_program():
        while numbers := os.read(reader, 64):
            if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                frame = _where_it_stands()
                if frame is not None:
                    _cut_short(frame)
        os.close(reader)


def _main_frame() -> Optional[FrameType]:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _where_it_stands() -> Optional[FrameType]:
    """The frame of this package where the main thread waits, or None once it has seen the signal.

    It has seen the signal if it runs a frame that is not in the first sample, because each new frame checks for signals first.
    """
    frame = _main_frame()
    frames: List[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    if not any(map(_is_ours, frames)):
        return None
    before = (frames[0], frames[0].f_lasti)
    for _ in range(_SAMPLES):
        time.sleep(_SAMPLE_S)
        frame = _main_frame()
        if frame is None or frame not in frames:
            return None
        if _is_ours(frame) and (frame, frame.f_lasti) == before:
            return frame
        before = (frame, frame.f_lasti)
    return None


def _cut_short(frame: FrameType) -> None:
    frames = _ours_from(frame)
    call, comm = f"{_call_of(frames)}()", _communicator_of(frames)
    if comm is None:
        _end_process(f"{call} cannot be cut short")
        return
    try:
        comm.abort(f"rank {comm.rank} was interrupted (SIGINT) in {call}")
    except errors.Error as failure:
        _end_process(f"{call} on '{comm.name}' cannot be cut short: {failure}")


def _ours_from(frame: Optional[FrameType]) -> List[FrameType]:
    """The waiting frame and its callers in this package. The last is the call that the program made."""
    frames = []
    while frame is not None and _is_ours(frame):
        frames.append(frame)
        frame = frame.f_back
    return frames


def _communicator_of(frames: List[FrameType]) -> Optional[Communicator]:
    """The communicator of the innermost frame that has one, as its object, as a member of its object, or as an argument."""
    for frame in frames:
        owner = frame.f_locals.get("self")
        own = owner._comm if isinstance(owner, Work) else getattr(owner, "comm", None)  # of a group of torch
        for comm in (owner, own, frame.f_locals.get("comm")):
            if isinstance(comm, Communicator):
                return comm
    return None


def _call_of(frames: List[FrameType]) -> str:
    """The program's name of the operation: the one in a frame, or the function; for a wait, the operation that it waits for."""
    for frame in reversed(frames):
        what = frame.f_locals.get("what") or getattr(frame.f_locals.get("self"), "what", None)
        if isinstance(what, str):
            return what
        name = frame.f_code.co_name
        if name != "wait" and not name.startswith("_"):
            return name
    return frames[0].f_code.co_name


def _end_process(why: str) -> None:
    """Ends the process as SIGINT does without a handler."""
    print(f"dtrun: interrupted (SIGINT): {why}; the process ends", file=sys.stderr, flush=True)
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.signal(signal.SIGINT, None)
    os.kill(os.getpid(), signal.SIGINT)
