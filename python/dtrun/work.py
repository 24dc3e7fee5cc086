"""Work: an operation that was started with wait=False, and its end."""

import ctypes

from . import _library


class Work:
    """An operation under way. Its buffers belong to it until wait() or done() report its end.

    Made by Communicator; any thread may use it, one at a time. Dropping a Work that still runs waits for it.
    """

    __slots__ = ("_handle", "_kept", "_result", "_failure", "_source", "what")

    def __init__(self, handle, result, kept, what, source=None):
        self._handle = handle
        self._kept = kept  # buffers, and arrays that libdtrun writes to at the end
        self._result = result
        self._failure = None
        self._source = source
        self.what = what

    def wait(self, timeout=None):
        """Blocks until the operation has ended; at most `timeout` seconds where one is given.

        Returns what the blocking call would have. Raises its failure, again at every call. When `timeout` is over and
        the operation still runs, TimeoutError is raised and the operation goes on: wait again.
        """
        if self._handle is not None:
            limit_ns = -1 if timeout is None else max(0, int(timeout * 1e9))
            status = _library.library().dtrun_work_wait(self._handle, limit_ns, _library.error())
            if status == _library.PENDING:
                raise TimeoutError(f"{self.what} still runs after {timeout:g} s")
            self._end(status)
        return self._outcome()

    def done(self):
        """Whether it has ended, without blocking. A failed operation is done; wait() raises its failure."""
        if self._handle is not None:
            done = ctypes.c_int32()
            status = _library.library().dtrun_work_test(self._handle, ctypes.byref(done), _library.error())
            if status == _library.OK and not done.value:
                return False
            self._end(status)
        return True

    def wait_on(self, stream):
        """Later work on `stream` (a _library.Stream) starts after the operation; the calling thread does not wait."""
        _library.check(_library.library().dtrun_work_wait_on(self._handle, ctypes.byref(stream), _library.error()))

    def _end(self, status):
        self._failure = None if status == _library.OK else _library.failure(status)
        self._release()

    def _outcome(self):
        if self._failure is not None:
            raise self._failure
        return self._result if self._source is None else self._source.value

    def _release(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            _library.library().dtrun_work_release(handle)
        self._kept = None

    def __del__(self):
        self._release()

    def __repr__(self):
        state = "failed" if self._failure else "running" if self._handle is not None else "done"
        return f"<dtrun.Work {self.what}: {state}>"
