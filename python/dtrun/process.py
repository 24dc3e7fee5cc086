"""This process as a rank: joining and leaving the job. For one thread at a time.

init() is counted, as in libdtrun: each call needs one finalize(). A program that ends normally without the last one
leaves the job automatically. If it ends by an exception it does not leave, so that dtrun names it as failed.
"""

from __future__ import annotations

import atexit
import operator
import os
import sys
import time

from . import _library, buffers, errors
from .calls import living
from .communicator import Communicator
from .work import wait_for_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class World(Communicator):
    """The communicator of all ranks of the job. `with dtrun.init() as world:` leaves the job at the end of the block."""

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            finalize()


_world: Optional[World] = None
_inits = 0
_joined = False  # in libdtrun; after the last finalize() too, while a view of alloc() lives
_EXIT_S = 90.0  # more than the default of backend.timeout


def started_by_dtrun() -> bool:
    """Whether dtrun started this process as a rank of a job. If not, init() makes a world of one."""
    return "DTRUN_STORE" in os.environ


def init() -> World:
    """Joins the job, and returns its World; blocks until every rank has joined, at most `backend.timeout` of the config."""
    global _world, _inits, _joined
    library = _library.library()
    if _world is None:
        if _joined:
            sizes = ", ".join(map(str, buffers.in_use()))
            raise errors.FailedPrecondition(
                f"dtrun.init: this process has not left its job: arrays or views still use memory of alloc ({sizes} bytes); "
                "copy what is needed of them, and drop them (del), then call init again"
            )
        from . import interrupts

        interrupts.start()
    status = library.dtrun_init(_library.error())
    if status and _world is None:
        interrupts.stop()
    _library.check(status, "dtrun.init")
    _inits += 1
    _joined = True
    if _world is None:
        _world = World(library.dtrun_world(), library)
        if _world.size == 1:
            interrupts.stop()  # no call waits for another rank
        atexit.register(_leave)
    return _world


def finalize() -> None:
    """Leaves the job. The last call ends every communicator; without an init() it does nothing.

    Waits for running operations and the calls of other threads, at most `backend.timeout`. If a view of alloc() still exists,
    the process leaves with the last view, or when the program ends.
    """
    _finish(None)


def _finish(longest: Optional[float]) -> bool:
    """As finalize(). Returns False, and has freed nothing, if calls of other threads last longer than `longest` seconds."""
    global _world, _inits
    if _inits == 0:
        return True
    if _inits > 1:
        _inits -= 1
        _library.library().dtrun_finalize()
        return True
    until = None if longest is None else time.monotonic() + longest
    closed = False
    while not closed:
        comms = living()
        for comm in comms:
            comm._close()
        if not all(comm._inside.wait(until) for comm in comms):
            return False
        closed = all(comm._handle is None for comm in living())  # a split that was inside has made one
    failure = wait_for_all()
    for comm in comms:  # the library is about to free them
        comm._ending = None
    if not all(comm._inside.wait(until) for comm in comms):  # for abort() and free()
        return False
    _world, _inits = None, 0
    buffers.when_unused(None, _end)
    from . import interrupts

    interrupts.stop()
    if failure is not None:
        raise failure
    return True


def _end() -> None:
    global _joined
    buffers.forget()
    _joined = False
    atexit.unregister(_leave)
    _library.library().dtrun_finalize()


def _leave() -> None:
    """At the program's end. Waits for calls of daemon threads at most `_EXIT_S`, and then leaves without freeing what they use."""
    if getattr(sys, "last_value", None) is None:
        while _inits:
            if not _finish(_EXIT_S):
                return
        if _joined:
            _end()


def is_initialized() -> bool:
    """Whether init() has succeeded and finalize() has not ended it. False in a child that was forked after init()."""
    return _world is not None and bool(_library.library().dtrun_is_initialized())


def inits() -> int:
    """The number of init() calls without a finalize()."""
    return _inits


def world() -> World:
    """The World. Requires init()."""
    if _world is None:
        raise errors.FailedPrecondition("dtrun.init() has not been called, or finalize() has ended it")
    return _world


def metric(name: str, value: Any, step: Optional[int] = None) -> None:
    """Reports the newest value of `name`, such as "loss", for metrics.jsonl in the run folder and metrics.listen.

    Costs about a microsecond and needs no init(): a thread of libdtrun sends what is newest once a second. Does nothing in a
    program that dtrun did not start. `value` is a number, or has one, as a tensor of one element has. Names have the characters
    a-z A-Z 0-9 _ : and do not begin with a digit or "dtrun_". A negative step is none.
    """
    if not isinstance(name, str) or "\0" in name:
        raise errors.InvalidArgument(f"dtrun.metric: the name is {name!r}; give a text, such as 'loss'")
    try:
        number, at = float(value), -1 if step is None else max(operator.index(step), -1)
    except (TypeError, ValueError) as error:
        raise errors.InvalidArgument(f"dtrun.metric: {name!r} is {value!r} at step {step!r}; give numbers, the step a whole one") from error
    if at >= 2**63:
        raise errors.InvalidArgument(f"dtrun.metric: the step of {name!r} is {step}; give less than 2**63")
    status = _library.library().dtrun_metric(name.encode(), number, at, _library.error())
    if status:
        _library.check(status, "dtrun.metric")


def rank() -> int:
    """This rank's number in the job, from 0. Requires init()."""
    return world().rank


def size() -> int:
    """The number of ranks of the job. Requires init()."""
    return world().size


def local_rank() -> int:
    """This rank's number on its host, from 0. Requires init()."""
    world()
    return int(_library.library().dtrun_local_rank())


def local_size() -> int:
    """The number of ranks of the job on this host. Requires init()."""
    world()
    return int(_library.library().dtrun_local_world_size())
