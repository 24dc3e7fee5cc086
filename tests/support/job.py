"""Runs dtrun as a user would, and checks that nothing of a job survives.

Every process of a job inherits a marker variable from the test, so survivors can be
found by reading /proc/*/environ, whatever they did to their process group or session.
"""

import contextlib
import faulthandler
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid
from pathlib import Path

from support.golden import GoldenTest

BUILD = Path(os.environ["DTRUN_BUILD"])  # build folder, set by ctest
SOURCE = Path(os.environ["DTRUN_SOURCE"])
DTRUN = BUILD / "bin" / "dtrun"
RANK = BUILD / "tests" / "rank"  # tests/programs/rank.cc
# Variables with which a script imports dtrun from the source tree.
PACKAGE = {"PYTHONPATH": str(SOURCE / "python"), "DTRUN_LIBRARY": str(BUILD / "lib" / "libdtrun.so.1"), "PYTHONDONTWRITEBYTECODE": "1"}
PATIENCE_S = int(os.environ.get("DTRUN_TEST_PATIENCE", "120"))  # for conditions that hold in milliseconds on an idle machine


def until(condition, what, patience_s=PATIENCE_S):
    """Waits until condition() is true; fails with `what` when it never is. Asks less and less often: many conditions run programs."""
    begun = time.monotonic()
    while True:
        asked = time.monotonic()
        result = condition()
        if result:
            return result
        now = time.monotonic()
        if now - begun > patience_s:
            raise AssertionError(f"waited {patience_s} s in vain for {what}")
        time.sleep(min(0.5, max(0.01, now - asked, (now - begun) / 20)))


def processes_with(text):
    """Pids of live processes with `text` in their environment, except this one."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            if text.encode() in Path(f"/proc/{entry}/environ").read_bytes():
                found.append(int(entry))
        except OSError:
            continue  # gone, or another user's
    return found


def free_port():
    """A TCP port of 127.0.0.1 that was free at this moment."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


READS_STACKS = (3, 11) <= sys.version_info[:2] <= (3, 13)  # dtrun reads the stacks of these interpreters
needs_stacks = unittest.skipUnless(READS_STACKS, "dtrun does not read the stacks of this Python")
needs_torch = unittest.skipUnless(importlib.util.find_spec("torch"), "there is no torch here (python3-torch)")


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Job:
    """A dtrun process under way."""

    def __init__(self, process, folder):
        self.process, self.folder = process, folder

    @property
    def pid(self):
        return self.process.pid

    def run_dir(self):
        """The newest run directory, once there is one with a plan, or with the verdict of a job that could not start."""
        records = [file for name in ("plan", "verdict") for file in self.folder.glob(f"runs/*/2*/{name}.json")]
        found = sorted({file.parent for file in records}, key=os.path.getmtime)
        return found[-1] if found else None

    def log(self, rank, stream="out"):
        run_dir = self.run_dir()
        file = run_dir / f"rank-{rank}.{stream}" if run_dir else None
        return file.read_text(errors="replace") if file and file.exists() else ""

    def wait_for_line(self, rank, text):
        until(lambda: text in self.log(rank), f"'{text}' in the output of rank {rank}")

    def signal(self, number):
        os.kill(self.pid, number)

    def finish(self):
        try:
            out, err = self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"dtrun did not end\n--- stdout\n{out}\n--- stderr\n{err}")
        return Result(self.process.returncode, out, err)


class JobTest(GoldenTest):
    maxDiff = None

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="dtrun-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.mark = f"TEST_MARK_OF_DTRUN={uuid.uuid4().hex}"

    def tearDown(self):
        survivors = until_gone(self.mark)
        for pid in survivors:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.assertEqual(survivors, [], "processes survived the job")

    def environment(self, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("DTRUN_", "OMP_", "COLUMNS"))}
        name, value = self.mark.split("=")
        environment.update({name: value, "TMPDIR": str(self.folder), "XDG_STATE_HOME": str(self.folder / ".state")})
        environment.update(more)
        return environment

    def write(self, text, name="job.toml"):
        file = self.folder / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def last_verdict(self):
        """verdict.json of the newest run."""
        return json.loads((max(self.folder.glob("runs/*/2*"), key=os.path.getmtime) / "verdict.json").read_text())

    def assert_verdict(self, result, ending=None, **facts):
        """verdict.json of the newest run has these facts; `ending` is (rank, exit code or name of a signal) of a rank."""
        verdict = self.last_verdict()
        self.assertEqual({name: verdict[name] for name in facts}, facts, str(result))
        if ending:
            rank, how = ending
            found = next(one["ending"] for one in verdict["ranks"] if one["rank"] == rank)
            self.assertEqual(found["signal"] or found["code"], how, str(result))

    def start(self, *arguments, stdin=subprocess.DEVNULL, env=None, **more):
        process = subprocess.Popen(
            [str(DTRUN), *map(str, arguments)],
            cwd=self.folder,
            env=env or self.environment(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            **more,
        )
        self.addCleanup(end, process)
        return Job(process, self.folder)

    def dtrun(self, *arguments, **more):
        """Runs dtrun to its end."""
        return self.start(*arguments, **more).finish()

    def ranks(self, count, *command, sets=(), flags=(), **more):
        """Runs `command` on `count` ranks without a config file."""
        overrides = [f"job.processes_per_host={count}", *sets]
        arguments = [*flags, *(word for item in overrides for word in ("--set", item))]
        return self.dtrun(*arguments, "--", *command, **more)

    def start_ranks(self, count, *command, sets=(), **more):
        overrides = [f"job.processes_per_host={count}", *sets]
        arguments = [word for item in overrides for word in ("--set", item)]
        return self.start(*arguments, "--", *command, **more)

    def assert_ok(self, result):
        self.assertEqual(result.code, 0, str(result))

    def assert_user_error(self, result, *texts):
        """Exit code 2, every text on stderr, and no traceback or crash."""
        self.assertEqual(result.code, 2, str(result))
        for text in texts:
            self.assertIn(text, result.err, str(result))

    def golden_error(self, result, *facts):
        """assert_user_error, and the text on stderr is the golden one."""
        self.assert_user_error(result, *facts)
        self.golden(result.err)


def until_gone(mark, patience_s=10):
    """Processes with the mark that are still there after the patience."""
    deadline = time.monotonic() + patience_s
    while True:
        found = processes_with(mark)
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def end(process):
    """Kills what a failed test left running, and closes its pipes."""
    if process.poll() is None:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()


def nightly(case):
    """Marks a case that `tools/test` leaves to `tools/test --all`: another one shows the same at less cost."""
    case.nightly = True
    return case


class Loader(unittest.TestLoader):
    """The cases that ctest asks for: one shard (DTRUN_SHARD=2/4), the usual or the nightly ones (DTRUN_CASES). By hand: all."""

    def loadTestsFromModule(self, *arguments, **named):
        number, count = map(int, os.environ.get("DTRUN_SHARD", "0/1").split("/"))
        classes = super().loadTestsFromModule(*arguments, **named)
        flat = sorted((test for suite in classes for test in suite), key=lambda test: test.id())
        if (wanted := os.environ.get("DTRUN_CASES")) is not None:
            flat = [test for test in flat if is_nightly(test) == (wanted == "nightly")]
        return self.suiteClass(flat[number::count])


def is_nightly(test):
    return any(getattr(one, "nightly", False) for one in (type(test), getattr(test, test._testMethodName)))


def main():
    """Tells where each thread is, shortly before ctest ends a test that hangs."""
    if limit_s := int(os.environ.get("DTRUN_TEST_LIMIT", "0")):
        faulthandler.dump_traceback_later(limit_s - 10)
    unittest.main(verbosity=2, testLoader=Loader())


def skip(reason):
    """Ends this test file as skipped: ctest shows the reason."""
    print(f"skipped, because {reason}")
    sys.exit(77)
