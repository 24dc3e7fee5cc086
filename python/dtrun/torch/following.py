"""Threads of a process group that wait for operations with a future, or without a Work.

Callbacks of a future are code of the program: they may start operations, wait for other futures, end the group, or never
return. No other future waits for them forever.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import traceback
import weakref
from _thread import get_ident
from collections import OrderedDict
from queue import Empty, SimpleQueue

from .. import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Set, Tuple

    Call = Callable[[], object]
    Item = List[Any]  # `ended`, `tell`; its number in the line

_followers: weakref.WeakSet[Follower] = weakref.WeakSet()
_LEAVES_WITHIN_S = 2.0
_CALLBACKS_WITHIN_S = 10.0  # for callbacks that still run when a group ends
_PATIENCE_S = 5.0  # of a future with the callbacks of the one before
_SHORT_PATIENCE_S = 0.5  # the same while callbacks stand that were longer
_TURN_WITHIN_S = 60.0  # of an operation that a callback starts, in a group without a limit of its own
_IDLE_S = 10.0  # after this time an idle thread ends
_MOST_KEPT = 64  # torch's own C++ waits for a Work before it has started as many
_here = threading.local()  # .depth: the nesting of callbacks in this thread, with those that started it

overtakers: Dict[int, Tuple[_Line, int]] = {}
"""Threads with callbacks that run beside earlier ones: the line and the number of the item."""


def await_turn(what: str, seconds: Optional[float]) -> None:
    """Called before an operation starts. Orders operations of a callback after those of earlier callbacks, as on all ranks."""
    turn = overtakers.get(get_ident())
    if turn is None:
        return
    line, number = turn
    seconds = seconds or _TURN_WITHIN_S
    if not line.await_earlier(number, seconds):
        raise errors.Timeout(
            f"{what}: the callback of an earlier future still runs after {seconds:g} s. Operations of callbacks keep the order of the "
            "futures; let no callback wait for an operation of a later future's callback"
        )
    del overtakers[get_ident()]


def finish_in_order() -> None:
    """At the end of a program, before dtrun is finalized: waits for running operations. A program that ends by an exception
    does not wait."""
    if getattr(sys, "last_value", None) is None:
        for follower in list(_followers):
            follower.stop()
    else:
        in_torch.close()


@atexit.register  # here, since what is registered later is called earlier
def _end_early() -> None:
    """After an exception: a thread in torch's C++ would return into an ending interpreter. So the process exits first, with
    the exception's exit code."""
    failure = getattr(sys, "last_value", None)
    if failure is None or not in_torch.inside:
        return
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # it is None, broken or closed
            pass
    if isinstance(failure, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(1)


class _Gate:
    """A gate for threads that enter torch's C++. If a thread returns from there while the interpreter ends, Python ends the
    thread, and C++ then aborts the process (std::terminate). So no thread may be inside by then."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self.inside: Set[int] = set()  # threads

    def __enter__(self) -> None:
        self.inside.add(get_ident())
        if self._closed:
            self._leave()
            with self._changed:
                while True:
                    self._changed.wait()

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        self.inside.discard(get_ident())
        if self._closed:
            with self._changed:
                self._changed.notify_all()

    def close(self) -> None:
        """Waits for the threads inside, for a limited time, because they may be in callbacks of the program."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self.inside, _LEAVES_WITHIN_S)


in_torch = _Gate()


class Follower:
    """Threads of a group. An item has two calls: `ended` waits for an operation and runs no code of the program; `tell`
    completes the future, which runs its callbacks. Any thread may call the methods, callbacks too."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # of the lines too; a destructor may come while it is held
        self._changed = threading.Condition(self.lock)
        self._waiting = 0  # threads in wait_for()
        self._lines: Dict[int, _Line] = {}  # by the depth of who asked
        self._open = 0  # items that have not begun to tell
        self._telling: Set[int] = set()  # threads that do
        self._given: Set[int] = set()  # of those, the ones that stop() has given up
        self.kept: OrderedDict[object, None] = OrderedDict()  # works that torch 1.13's C++ may wait for, in their order
        _followers.add(self)

    def keep(self, work: object) -> None:
        """Keeps a Work for torch's C++, until it is waited for or many more have started."""
        self.kept[work] = None
        if len(self.kept) > _MOST_KEPT:
            self.kept.popitem(last=False)

    def in_order(self, ended: Call, tell: Call) -> None:
        """Queues it after earlier ones of the same depth; an operation of a callback does not wait for that callback."""
        depth = getattr(_here, "depth", 0)
        with self.lock:
            line = self._lines.get(depth)
            if line is None:
                line = self._lines[depth] = _Line(self, depth)
            self._open += 1
            line.put(ended, tell)

    def on_a_thread(self, ended: Call, tell: Call) -> None:
        """Runs it on a separate thread."""
        depth = getattr(_here, "depth", 0)

        def run(item: Item) -> None:
            _here.depth = depth + 1
            _guarded(item[0])
            with self.lock:
                self.begin()
            self.tell(item)
            with self.lock:
                self.end()

        with self.lock:
            self._open += 1
        threading.Thread(target=run, args=([ended, tell],), daemon=True, name="dtrun-work").start()

    def begin(self) -> None:
        """Holds the lock. The calling thread begins to tell."""
        self._open -= 1
        self._telling.add(get_ident())
        if self._waiting:
            self._changed.notify_all()

    def tell(self, item: Item) -> None:
        with in_torch:
            _guarded(item[1])
            item.clear()  # the end of a future is in C++ of torch, too

    def end(self) -> None:
        """Holds the lock. The calling thread has told."""
        self._telling.discard(get_ident())
        if self._given:
            self._given.discard(get_ident())
        if self._waiting:
            self._changed.notify_all()

    def wait_for(self, ready: Callable[[], object], seconds: Optional[float] = None) -> bool:
        """Holds the lock, but releases it while it waits. Returns whether it is ready."""
        self._waiting += 1
        try:
            return bool(self._changed.wait_for(ready, seconds))
        finally:
            self._waiting -= 1

    def stop(self) -> None:
        """Waits for its works and their callbacks; for callbacks only a limited time, and not for the calling one."""
        self.kept.clear()
        with self.lock:
            self._telling.discard(get_ident())
            self._changed.notify_all()  # another thread may be here, too
            while True:
                self.wait_for(lambda: not self._open)
                if not self.wait_for(lambda: self._open or not self._telling - self._given, _CALLBACKS_WITHIN_S):
                    self._given |= self._telling
                    print("dtrun: torch.distributed: a callback of a future still runs "
                          f"{_CALLBACKS_WITHIN_S:g} s after the group's last operation; the group ends without it", file=sys.stderr)  # fmt: skip
                if not self._open:
                    break
            for line in self._lines.values():
                line.stop()


class _Line:
    """Items that tell in their order, by as many threads as callbacks stand, and one. One thread at a time serves: it waits
    for an item, and for its operation. It gives that up before it meets the program's code, so that another may serve."""

    def __init__(self, follower: Follower, depth: int) -> None:
        self._follower, self._lock, self._depth = follower, follower.lock, depth
        self._items: SimpleQueue[Optional[Item]] = SimpleQueue()  # None: see whether to end
        self._newest = 0  # number of an item
        self._untold: Dict[int, None] = {}  # numbers, in their order
        self._served = False
        self._called = threading.Condition(self._lock)
        self._resting, self._calls = 0, 0  # threads that have nothing to serve, and how many of them have to
        self._stopped = False

    def put(self, ended: Call, tell: Call) -> None:
        """Holds the lock."""
        self._newest += 1
        self._untold[self._newest] = None
        self._items.put([ended, tell, self._newest])
        if not self._served:
            self._call()

    def stop(self) -> None:
        """Holds the lock. Idle threads end."""
        self._stopped = True
        self._called.notify_all()
        self._items.put(None)

    def await_earlier(self, number: int, seconds: float) -> bool:
        with self._lock:
            return self._follower.wait_for(lambda: self._oldest() == number, seconds)

    def _oldest(self) -> int:
        return next(iter(self._untold))

    def _call(self) -> None:
        """Holds the lock. Makes a thread serve."""
        if self._resting > self._calls:
            self._calls += 1
            self._called.notify()
        else:
            threading.Thread(target=self._run, daemon=True, name="dtrun-futures").start()
        self._served = True

    def _run(self) -> None:
        _here.depth = self._depth + 1
        follower = self._follower
        while (item := self._next()) is not None:
            number = item[2]
            _guarded(item[0])
            with self._lock:
                self._served = False
                if not self._items.empty():
                    self._call()
                if self._oldest() != number:
                    self._overtake(number)
                follower.begin()
            follower.tell(item)
            with self._lock:
                if overtakers:
                    overtakers.pop(get_ident(), None)
                del self._untold[number]
                follower.end()
                if not self._served:
                    self._served = True
                elif not self._rest():
                    return

    def _next(self) -> Optional[Item]:
        """The next item for the serving thread; None if the thread is not needed."""
        while True:
            try:
                item = self._items.get(timeout=_IDLE_S)
            except Empty:
                item = None
            if item is not None:
                return item
            with self._lock:
                if self._items.empty():
                    self._served = False
                    return None

    def _rest(self) -> bool:
        """Holds the lock. Waits until the thread has to serve; False if it is not needed."""
        self._resting += 1
        self._called.wait_for(lambda: self._calls or self._stopped, _IDLE_S)
        self._resting -= 1
        if not self._calls:
            return False
        self._calls -= 1
        return True

    def _overtake(self, number: int) -> None:
        """Holds the lock. Waits for earlier items, for a limited time."""
        patience = _PATIENCE_S if self._oldest() == number - 1 else _SHORT_PATIENCE_S
        self._follower.wait_for(lambda: number - 1 not in self._untold, patience)
        if self._oldest() != number:
            overtakers[get_ident()] = (self, number)


def _guarded(call: Call) -> None:
    """The thread continues with other items."""
    try:
        call()
    except Exception:
        traceback.print_exc()
