"""Runs commands with a time limit, and leaves no process behind.

All descendants of a command inherit a variable. Processes with this variable are killed when the command is over,
whatever their process group or session is."""

import contextlib
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path


FLAGS, ENV_END = 5, 47  # of the numbers in /proc/PID/stat that follow the state: proc(5)
PF_KTHREAD = 0x00200000  # a thread of the kernel: include/linux/sched.h


class Done:
    """A finished command: exit code (None: timed out), output, and duration in seconds."""

    def __init__(self, words, code, out, err, seconds):
        self.words, self.code, self.out, self.err, self.seconds = words, code, out, err, seconds

    @property
    def text(self):
        return self.out + self.err


class Background:
    """A command that runs in the background."""

    def __init__(self, runner, process, words, start, files, mark):
        self.runner, self.process, self.words, self.start, self.files, self.mark = runner, process, words, start, files, mark

    def finish(self, limit_s):
        try:
            code = self.process.wait(timeout=max(limit_s, 0.1))
        except subprocess.TimeoutExpired:
            code = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=3)
        self.runner.end(self.mark)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=3)
        out, err = (file.read_text(errors="replace") for file in self.files)
        return Done(self.words, code, out, err, time.monotonic() - self.start)


def end_of_environment(pid):
    """Address of the end of a process' environment, another one after each exec: 0 in the middle of exec, None without one."""
    state, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return None if state in "ZX" or int(numbers[FLAGS]) & PF_KTHREAD else int(numbers[ENV_END])


def environment_of(pid):
    """The environment of a process as the kernel has it: variables that end in NUL. Empty where it has ended or is another user's.

    During exec nothing can be read (environ_read in fs/proc/base.c): then this looks again, for at most a second."""
    deadline = time.monotonic() + 1
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline:
            end = end_of_environment(pid)
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            if environment or end is None or (end != 0 and end == end_of_environment(pid)):
                return environment
    return b""


class Runner:
    NAME = "GPU_CHECK_PROCESS"  # not a DTRUN_ variable, because dtrun would warn

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.count = len(list(folder.glob("*.out")))  # including an earlier run's
        self.all = uuid.uuid4().hex

    def start(self, name, words, env, cwd):
        self.count += 1
        mark = f"{self.all}-{self.count}-"
        files = [self.folder / f"{self.count:02}-{name}.{stream}" for stream in ("out", "err")]
        with open(files[0], "wb") as out, open(files[1], "wb") as err:
            process = subprocess.Popen([str(word) for word in words], env={**env, self.NAME: mark}, cwd=cwd, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True)
        return Background(self, process, [str(word) for word in words], time.monotonic(), files, mark)

    def run(self, name, words, limit_s, env, cwd):
        return self.start(name, words, env, cwd).finish(limit_s)

    def survivors(self, mark=None):
        wanted = f"{self.NAME}={mark or self.all}".encode()
        pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [pid for pid in pids if pid != os.getpid() and wanted in environment_of(pid)]

    def end_all_but(self, background):
        """Kills what a step has left; background commands continue."""
        spared = self.survivors(background.mark) if background is not None else []
        for pid in set(self.survivors()) - set(spared):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def end(self, mark=None):
        """Kills all remaining processes, and returns those that survive."""
        deadline = time.monotonic() + 5
        while (found := self.survivors(mark)) and time.monotonic() < deadline:
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        return found
