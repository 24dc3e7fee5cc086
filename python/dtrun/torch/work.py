"""Work as torch.distributed has it: an operation under way, with wait, a future, and what to do at its end."""

import queue
import sys
import threading
import weakref

import torch
import torch.distributed as dist

from .. import errors


class Work(dist.Work):
    """Operations that were started together. Who waits for it does the waiting; a thread does once a future is asked for."""

    def __init__(self, parts, result, finish=(), follow=None, ordered=True):
        super().__init__()
        self._parts = parts  # dtrun.Work
        self._result = result  # what wait() made complete: a list of tensors
        self._finish = finish  # what to call when all parts have ended
        self._follow = follow  # Follower of the group
        self._ordered = ordered  # whether it ends after those started before it
        self._failure = None
        self._ended = not parts and not finish
        self._future = None
        self._lock = threading.Lock()  # held while a thread waits

    def wait(self, timeout=None):
        """Blocks until the end, at most `timeout` (timedelta; zero and None: the operation's own). Raises its failure."""
        if not self._ended:
            seconds = timeout.total_seconds() if timeout else 0
            self._wait(seconds if seconds > 0 else None)
        if self._failure is not None:
            raise self._failure
        return True

    def is_completed(self):
        if self._ended or not self._lock.acquire(blocking=False):
            return self._ended
        try:
            if all(part.done() for part in self._parts):
                self._end(None)
        finally:
            self._lock.release()
        return self._ended

    def is_success(self):
        return self.is_completed() and self._failure is None

    def exception(self):
        """Its failure, once it has ended; or None."""
        return self._failure

    def get_future(self):
        """Completed with the list of result tensors, or with the failure."""
        if self._future is None:
            with self._lock:  # two threads that ask get one future
                if self._future is None:
                    self._future = self._make_future()
        return self._future

    def result(self):
        self.wait()
        return self._result

    def source_rank(self):
        """The sender's rank, of a receive from any source that has ended."""
        self.wait()
        return self._parts[0].wait()

    _source_rank = source_rank
    synchronize = wait

    def take(self):
        """(parts, finish), for another Work that goes on with them; this one is over."""
        taken, self._parts, self._finish, self._ended = (self._parts, self._finish), (), (), True
        return taken

    def _make_future(self):
        promise = torch.futures.Future()
        future = promise.then(_outcome)  # an exception of `then` is one for C++ too
        if self._ended:
            promise.set_result(self._failure or self._result)
        elif self._ordered:
            self._follow(self, promise)
        else:
            self._follow.on_a_thread(self._complete, promise)
        return future

    def _complete(self, promise):
        """On a thread: waits for the end and tells the future."""
        self._wait(None)
        promise.set_result(self._failure or self._result)

    def _wait(self, seconds):
        if not self._lock.acquire(timeout=-1 if seconds is None else seconds):
            raise _still_runs(seconds)
        try:
            if not self._ended:
                self._end(seconds)
        except TimeoutError:
            raise _still_runs(seconds) from None
        finally:
            self._lock.release()

    def __del__(self):
        """One that nobody keeps, such as of isend, goes on: a thread waits for it."""
        if not self._ended and not sys.is_finalizing():
            self._follow.on_a_thread(_drain, self._parts, self._finish)

    def _end(self, seconds):
        """With the lock: waits, and finishes; TimeoutError when it still runs after `seconds`."""
        try:
            for part in self._parts:
                part.wait(seconds)
            for finish in self._finish:
                finish()
        except RuntimeError as failure:  # every failure of an operation is a dtrun.Error
            self._failure = failure
        self._ended = True


def _still_runs(seconds):
    return errors.Timeout(f"the operation still runs after {seconds:g} s; wait again, or abort the process group")


def _drain(parts, finish):
    """The end of a work that nobody asks about; its failure is every later call's too."""
    Work(parts, [], finish)._wait(None)


_followers = weakref.WeakSet()


def finish_in_order():
    """At the end of a program, before dtrun is finalized: operations that threads wait for may end. A program that ends by
    an exception does not wait."""
    if getattr(sys, "last_value", None) is None:
        for follower in list(_followers):
            follower.stop()


def _outcome(promise):
    value = promise.value()
    if isinstance(value, BaseException):
        raise value
    return value


class Follower:
    """Threads of a group: one that completes futures of its collectives, in their order, and those for single works."""

    def __init__(self):
        self._queue = queue.SimpleQueue()
        self._thread = None
        self._single = set()
        self._lock = threading.Lock()
        _followers.add(self)

    def __call__(self, work, promise):
        self._queue.put((work, promise))
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, daemon=True, name="dtrun-futures")
                    self._thread.start()

    def on_a_thread(self, call, *arguments):
        def run():
            call(*arguments)
            self._single.discard(thread)

        thread = threading.Thread(target=run, daemon=True, name="dtrun-work")
        self._single.add(thread)
        thread.start()

    def stop(self):
        """After the works that it has."""
        for thread in list(self._single):
            thread.join()
        with self._lock:
            if self._thread is not None:
                self._queue.put(None)
                self._thread.join()
                self._thread = None

    def _run(self):
        while (item := self._queue.get()) is not None:
            work, promise = item
            work._complete(promise)
            del item, work, promise


ENDED = Work((), [])
"""What a call that has blocked returns."""
