"""The processes of dtrun.run: finds the program `dtrun`, and runs it as a child of this Python, which shows its output and ends it
with itself; temporary folders that end with this Python."""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
from typing import Any, Iterator, Mapping, Sequence

from .. import errors

FOLDER = os.path.dirname(os.path.abspath(__file__))
END_WITH_PARENT, REMOVE_FOLDER = os.path.join(FOLDER, "end_with_parent.py"), os.path.join(FOLDER, "remove_folder.py")
# A signal that comes between Python's last look for one and the system call does not end the call.
LOOKS_FOR_SIGNALS_S = 0.5
KEPT = 16384  # characters of stderr, for the error of a job that never started


def candidates() -> list[str]:
    """The places to look in, first beside the libdtrun that this package uses."""
    package = os.path.dirname(FOLDER)
    places = []
    if library := os.environ.get("DTRUN_LIBRARY"):
        places.append(os.path.join(os.path.dirname(os.path.abspath(library)), "..", "bin"))
    places.append(os.path.join(package, "native", "bin"))  # of the wheel
    places += [os.path.join(package, *[".."] * up, "bin") for up in (4, 3)]  # PREFIX/lib/python3/dist-packages/dtrun
    return [os.path.normpath(os.path.join(place, "dtrun")) for place in places]


def said(path: str, printed: str) -> str:
    """The output of dtrun; without output it may not be dtrun."""
    return printed.strip() or f"it printed nothing: `{path} --version` tells whether that is dtrun; if not, set DTRUN_BIN to dtrun's path"


def find_dtrun() -> str:
    """The path of `dtrun`: from DTRUN_BIN, this installation, or PATH."""
    if chosen := os.environ.get("DTRUN_BIN"):
        if not os.access(chosen, os.X_OK) or os.path.isdir(chosen):
            raise errors.LibraryError(f"dtrun: DTRUN_BIN: '{chosen}' is not a program; set it to the path of dtrun, or unset it")
        return chosen
    for path in candidates():
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    if path := shutil.which("dtrun", path=os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))):  # not of the current folder
        return path
    raise errors.LibraryError(
        f"dtrun: the program 'dtrun' is neither at {', '.join(candidates())} nor in PATH; install it (pip install dtrun), or set "
        "DTRUN_BIN to its path"
    )


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
            for key, _ in self.selector.select(LOOKS_FOR_SIGNALS_S):
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


@contextlib.contextmanager
def going_with_us(folder: str) -> Iterator[str]:
    """Removes the existing `folder` at the end."""
    # A separate session survives signals to the whole process group.
    with subprocess.Popen([sys.executable, "-I", "-S", REMOVE_FOLDER, folder], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          start_new_session=True):  # fmt: skip
        yield folder
