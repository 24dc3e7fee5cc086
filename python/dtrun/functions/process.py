"""Runs dtrun as a child of this Python: shows its output while it runs, and ends it with this Python."""

from __future__ import annotations

import codecs
import os
import selectors
import signal
import subprocess
import sys
from typing import Any, Mapping, Sequence

END_WITH_PARENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "end_with_parent.py")
KEPT = 16384  # characters of stderr, for the error of a job that never started


def execute(words: Sequence[str], environment: Mapping[str, str], streams: Mapping[str, Any] | None = None) -> tuple[int, str]:
    """Runs a command to its end: (exit code, the last of its stderr). KeyboardInterrupt ends it, a second one at once.

    streams: where its stdout and stderr go, by name; by default to those of sys
    """
    interrupt = None
    # A separate session: Ctrl-C reaches it only once, through this process.
    with subprocess.Popen([sys.executable, "-I", "-S", END_WITH_PARENT, str(os.getpid()), *words], env=dict(environment),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True) as process, _Output(process, streams) as output:  # fmt: skip
        while True:
            try:
                output.show()
                code = process.wait()
                break
            except KeyboardInterrupt as cause:
                interrupt = cause
                process.send_signal(signal.SIGINT)
            except BaseException:  # the job's output cannot be shown
                process.terminate()
                process.communicate()
                raise
    if interrupt:
        raise interrupt
    return (128 - code if code < 0 else code), output.tail


class _Output:
    """The two pipes of a process, shown as sys.stdout and sys.stderr: notebooks replace those."""

    def __init__(self, process: subprocess.Popen, streams: Mapping[str, Any] | None) -> None:
        self.tail, self.streams = "", streams
        self.selector = selectors.DefaultSelector()
        for pipe, name in ((process.stdout, "stdout"), (process.stderr, "stderr")):
            self.selector.register(pipe, selectors.EVENT_READ, (name, codecs.getincrementaldecoder("utf-8")("replace")))

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *_: object) -> None:
        self.selector.close()

    def show(self) -> None:
        """Blocks until both have ended. Can be called again after an exception."""
        while self.selector.get_map():
            for key, _ in self.selector.select():
                data = os.read(key.fd, 65536)
                if not data:
                    self.selector.unregister(key.fileobj)
                name, decoder = key.data
                text = decoder.decode(data, final=not data)
                if name == "stderr":
                    self.tail = (self.tail + text)[-KEPT:]
                stream = self.streams[name] if self.streams else getattr(sys, name)
                stream.write(text)
                stream.flush()
