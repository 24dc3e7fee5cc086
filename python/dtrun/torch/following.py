"""Threads of a process group that wait for its works, for those who asked for a future or keep no Work.

What torch calls at the end of a future is the program's own code: it may start operations, wait for other futures, end the
group, or never return. No other future waits for that.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
import weakref
from _thread import allocate_lock, get_ident
from collections import OrderedDict, deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, Optional, Set, Tuple

    Item = Tuple[Callable[[], object], Callable[[], object]]

_followers: weakref.WeakSet[Follower] = weakref.WeakSet()
_LEAVES_WITHIN_S = 2.0
_CALLBACKS_WITHIN_S = 10.0  # for callbacks that still run when a group ends
_PATIENCE_S = 5.0  # of a future with the callbacks of the one before: they may start operations, in one order on all ranks
_SHORT_PATIENCE_S = 0.5  # the same while callbacks stand that were longer
_IDLE_S = 10.0  # after which a thread without work ends
_MOST_KEPT = 64  # torch's own C++ waits for a Work before it has started as many
_here = threading.local()  # .depth: how many callbacks this thread is in, counting those that started it


def finish_in_order() -> None:
    """At the end of a program, before dtrun is finalized: operations that threads wait for may end. A program that ends by
    an exception does not wait for them."""
    if getattr(sys, "last_value", None) is None:
        for follower in list(_followers):
            follower.stop()
    else:
        in_torch.close()


class _Gate:
    """Threads pass it into C++ of torch. Python ends those that come back from there while the interpreter ends, and C++
    ends the process for that (std::terminate, SIGABRT): so none is inside by then."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside, self._closed = 0, False

    def __enter__(self) -> None:
        with self._condition:
            while self._closed:
                self._condition.wait()  # for ever
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._inside -= 1
            self._condition.notify_all()

    def close(self) -> None:
        """Waits for those that are inside; not for ever, since they may be in the program's own callbacks."""
        with self._condition:
            self._closed = True
            self._condition.wait_for(lambda: not self._inside, _LEAVES_WITHIN_S)


in_torch = _Gate()


class Follower:
    """Threads of a group. An item has two calls: `ended` waits for an operation and runs no code of the program; `tell`
    completes the future, which runs its callbacks. Any thread may call the methods, callbacks too."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # of the lines too; a destructor may come while it is held
        self._settled = threading.Condition(self._lock)
        self._lines: Dict[int, _Line] = {}  # by the depth of who asked
        self._open = 0  # items that have not begun to tell
        self._telling: Set[int] = set()  # threads that do
        self._given: Set[int] = set()  # of those, the ones that stop() has given up
        self.stopping = False
        self.kept: OrderedDict[object, None] = OrderedDict()  # works that torch 1.13's C++ may wait for, in their order
        _followers.add(self)

    def keep(self, work: object) -> None:
        """For C++, until somebody waits for it or many more have been started."""
        self.kept[work] = None
        if len(self.kept) > _MOST_KEPT:
            self.kept.popitem(last=False)

    def in_order(self, ended: Callable[[], object], tell: Callable[[], object]) -> None:
        """After earlier ones of the same depth: what a callback asks for is not behind that callback."""
        depth = _depth()
        with self._lock:
            line = self._lines.get(depth)
            if line is None:
                line = self._lines[depth] = _Line(self, self._lock, depth)
            self._open += 1
            line.put((ended, tell))

    def on_a_thread(self, ended: Callable[[], object], tell: Callable[[], object]) -> None:
        """On one of its own."""
        depth = _depth()

        def run() -> None:
            _here.depth = depth + 1
            _guarded(ended)
            self.tell(tell)

        with self._lock:
            self._open += 1
        threading.Thread(target=run, daemon=True, name="dtrun-work").start()

    def tell(self, call: Callable[[], object]) -> None:
        """On a thread of the group, for an item whose operation has ended."""
        with self._lock:
            self._open -= 1
            self._telling.add(get_ident())
            self._settled.notify_all()
        try:
            with in_torch:
                _guarded(call)
        finally:
            with self._lock:
                self._telling.discard(get_ident())
                self._given.discard(get_ident())
                self._settled.notify_all()

    def stop(self) -> None:
        """After the works that it has, and their callbacks; but not for ever after these, and not after the one that calls."""
        self.kept.clear()
        with self._lock:
            self._telling.discard(get_ident())
            self._settled.notify_all()  # another thread may be here, too
            while True:
                self._settled.wait_for(lambda: not self._open)
                if not self._settled.wait_for(lambda: self._open or not self._telling - self._given, _CALLBACKS_WITHIN_S):
                    self._given |= self._telling
                    print("dtrun: torch.distributed: a callback of a future still runs "
                          f"{_CALLBACKS_WITHIN_S:g} s after the group's last operation; the group ends without it", file=sys.stderr)  # fmt: skip
                if not self._open:
                    break
            self.stopping = True
            for line in self._lines.values():
                line.wake()


class _Line:
    """Items that tell in their order, by as many threads as callbacks stand, and one. One thread at a time leads: it waits
    for the next operation. It gives that up before it tells, so that another may lead meanwhile."""

    def __init__(self, follower: Follower, lock: Any, depth: int) -> None:
        self._follower, self._depth = follower, depth
        self._items: Deque[Item] = deque()
        self._condition = threading.Condition(lock)
        self._idle = 0  # threads that wait to lead, or are about to
        self._led = False
        self._last: Any = None  # locked until the newest one that tells has told
        self._standing: Set[Any] = set()  # of those that others did not wait for

    def put(self, item: Item) -> None:
        """With the lock."""
        self._items.append(item)
        if not self._led:
            self._find_leader()

    def wake(self) -> None:
        """With the lock."""
        self._condition.notify_all()

    def _find_leader(self) -> None:
        if self._idle:
            self._condition.notify()
            return
        self._idle += 1
        threading.Thread(target=self._run, daemon=True, name="dtrun-futures").start()

    def _run(self) -> None:
        _here.depth = self._depth + 1
        while (item := self._lead()) is not None:
            ended, tell = item
            _guarded(ended)
            told = allocate_lock()
            told.acquire()
            with self._condition:
                self._led = False
                before, self._last = self._last, told
                if self._items:
                    self._find_leader()
            self._wait_for(before)
            self._follower.tell(tell)
            del item, ended, tell, before
            told.release()
            with self._condition:
                self._standing.discard(told)
                if self._last is told:
                    self._last = None
                self._idle += 1

    def _lead(self) -> Optional[Item]:
        """The next item, for the thread that calls; None when it is not needed."""
        until = time.monotonic() + _IDLE_S
        with self._condition:
            while self._led or not self._items:
                left = until - time.monotonic()
                if left <= 0 or (self._follower.stopping and not self._items):
                    self._idle -= 1
                    return None
                self._condition.wait(left)
            self._idle -= 1
            self._led = True
            return self._items.popleft()

    def _wait_for(self, before: Any) -> None:
        if before is None:
            return
        if not before.acquire(timeout=_SHORT_PATIENCE_S if self._standing else _PATIENCE_S):
            with self._condition:
                if before.locked():
                    self._standing.add(before)


def _depth() -> int:
    return getattr(_here, "depth", 0)


def _guarded(call: Callable[[], object]) -> None:
    """The thread goes on for others."""
    try:
        call()
    except Exception:
        traceback.print_exc()
