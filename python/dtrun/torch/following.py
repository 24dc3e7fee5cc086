"""Threads of a process group that wait for its works, for those who asked for a future or keep no Work."""

from __future__ import annotations

import queue
import sys
import threading
import weakref
from collections import OrderedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, Set, Tuple

_followers: weakref.WeakSet[Follower] = weakref.WeakSet()
_LEAVES_WITHIN_S = 2.0
_MOST_KEPT = 64  # torch's own C++ waits for a Work before it has started as many


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
    """Threads of a group: one that completes futures of its collectives, in their order, and those for single works."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Optional[Tuple[Callable[..., object], Any]]] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None
        self._single: Set[threading.Thread] = set()
        self._lock = threading.Lock()
        self.kept: OrderedDict[object, None] = OrderedDict()  # works that torch 1.13's C++ may wait for, in their order
        _followers.add(self)

    def keep(self, work: object) -> None:
        """For C++, until somebody waits for it or many more have been started."""
        self.kept[work] = None
        if len(self.kept) > _MOST_KEPT:
            self.kept.popitem(last=False)

    def in_order(self, call: Callable[..., object], argument: Any) -> None:
        """call(argument), on the one thread, after earlier ones."""
        self._queue.put((call, argument))
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, daemon=True, name="dtrun-futures")
                    self._thread.start()

    def on_a_thread(self, call: Callable[..., object], *arguments: Any) -> None:
        def run() -> None:
            call(*arguments)
            self._single.discard(thread)

        thread = threading.Thread(target=run, daemon=True, name="dtrun-work")
        self._single.add(thread)
        thread.start()

    def stop(self) -> None:
        """After the works that it has."""
        self.kept.clear()
        for thread in list(self._single):
            thread.join()
        with self._lock:
            if self._thread is not None:
                self._queue.put(None)
                self._thread.join()
                self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            call, argument = item
            call(argument)
            del item, call, argument
