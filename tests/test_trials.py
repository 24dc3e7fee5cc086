"""The reproductions of the trials from outside, as they were written (programs/trials), and how each ends now.

Each broke an early dtrun. Those that need packages beyond Debian's are in test_frameworks.py; an agent that lies to
its root is fuzzed (fuzz/).
"""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from support.job import BUILD, DTRUN, SOURCE, JobTest, main, needs_torch, nightly, processes_with, until

TRIALS = SOURCE / "tests/programs/trials"
MPI = BUILD / "tests" / "open_mpi_program"
STRANGER = 4242
PYTHON = sys.executable


class Trials(JobTest):
    def named_ranks(self):
        """Those that the newest verdict names."""
        verdict = self.last_verdict()
        return [verdict["first_failed_rank"]] if verdict["blamed"] is None else verdict["blamed"]["ranks"]

    def program(self, name):
        """A copy that every user may read."""
        return shutil.copy(TRIALS / name, self.folder)

    def in_shared_memory(self, *patterns):
        return {path for pattern in patterns for path in glob.glob(f"/dev/shm/{pattern}")}


class Security(Trials):
    def test_orphans_are_reaped_as_they_end(self):
        self.folder.chmod(0o777)
        limits = ["prlimit", "--nproc=400", "setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
        if os.getuid() != 0:
            self.skipTest("only root can become another user")
        if subprocess.run([*limits, str(DTRUN), "--version"], capture_output=True).returncode != 0:
            self.skipTest("another user may not run this build")
        result = subprocess.run([*limits, str(DTRUN), "-n", "1", PYTHON, self.program("orph.py")], cwd=self.folder,
                                env=self.environment(), capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("pairs 1500 failed inner forks 0", result.stdout)

    def test_a_rank_that_writes_garbage_over_its_recorder_falsifies_nothing(self):
        self.assert_ok(self.ranks(2, PYTHON, TRIALS / "garb.py", "garbage", "1"))
        result = self.ranks(2, PYTHON, TRIALS / "garb.py", "trunc", "0")
        self.assertIn("PermissionError: [Errno 1] Operation not permitted", result.err, "its size is sealed")
        self.assertEqual(self.last_verdict()["exit_class"], "user-error")
        result = self.ranks(2, PYTHON, TRIALS / "garb.py", "fail", "1")
        self.assertEqual(result.code, 3, str(result))
        self.assert_verdict(result, ending=(self.last_verdict()["first_failed_rank"], 3), exit_class="user-error")
        self.assertNotIn("allreduce", result.err, "no call was made")

    def test_a_remote_shell_that_prints_without_newlines(self):
        config = self.write(f"""
            [job]
            command = ["true"]
            [backend]
            name = "none"
            [cluster]
            hosts = ["ha", "hb"]
            oversubscribe = true
            remote_shell = ["sh", "{TRIALS / 'noisy.sh'}"]
            join_timeout = "1h"
        """)
        result = self.dtrun("--config", config)
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.err, "host h[ab]: .*64 MiB")
        some = 'cluster.remote_shell=["sh", "-c", "head -c 30000000 /dev/zero | tr 0 x; sleep 1000"]'
        job = self.start("--config", config, "--set", some)
        until(lambda: "sleep" in self.programs(), "the remote shell to print")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().code, 143)

    def programs(self):
        """Names of this test's processes."""
        names = []
        for pid in processes_with(self.mark):
            with contextlib.suppress(OSError):  # it has ended
                names.append(Path(f"/proc/{pid}/comm").read_text().strip())
        return names

    @unittest.skipUnless(os.getuid() == 0, "only root can become another user")
    @unittest.skipUnless(MPI.exists(), "Open MPI is not installed")
    def test_no_other_user_gets_the_segments_of_mpi(self):
        watcher = subprocess.Popen([PYTHON, "-u", self.program("watcher.py")], cwd="/", text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        before = self.in_shared_memory("dtrun-*")
        for _ in range(5):
            self.assert_ok(self.ranks(2, MPI, env=self.environment(TMPDIR="/tmp")))
        out, _ = watcher.communicate(timeout=60)
        for folder in self.in_shared_memory("dtrun-*") - before:
            shutil.rmtree(folder)
        self.assertNotIn("victim file", out)


class Frameworks(Trials):
    @needs_torch
    def test_the_culprit_is_named_among_those_that_miss_it(self):
        result = self.ranks(3, PYTHON, TRIALS / "casc2.py", "segv")  # other ends: the fault matrix and test_hangs.py
        self.assertNotEqual(result.code, 0)
        self.assertEqual(self.named_ranks(), [2], result.err)

    def test_segments_of_python_go_with_the_job(self):
        before = self.in_shared_memory("h4leak_*")
        for how in ("exit", "fail", "kill", "one"):
            self.ranks(2, PYTHON, TRIALS / "shm.py", "x", how)
            self.assertEqual(self.in_shared_memory("h4leak_*") - before, set(), how)

    @nightly
    @needs_torch
    def test_segments_of_torch_go_with_the_job(self):
        before = self.in_shared_memory("torch_*")
        for how in ("ok", "fail"):
            result = self.ranks(2, PYTHON, TRIALS / "shmt.py", how)
            self.assertEqual(result.code, {"ok": 0, "fail": 5}[how], str(result))
            self.assertEqual(self.in_shared_memory("torch_*") - before, set(), how)


if __name__ == "__main__":
    main()
