"""Jobs on the hosts of a laboratory (support/lab.py): run as a user would, and nothing may survive there."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from support.job import DTRUN, Job, JobTest, end, skip
from support.lab import Lab, command_of, why_not

# Values of cluster.join_timeout, one of which is enough for the hosts that are there, however busy this machine is.
ENOUGH_TO_JOIN = ("2s", "10s", "60s")
WAIT = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done"


def open_lab(kind=Lab):
    """For setUpModule: the laboratory of this module's tests; skips them where there can be none."""
    reason = why_not()
    if reason:
        skip(reason)
    folder = tempfile.TemporaryDirectory(prefix="dtrun-lab-")
    unittest.addModuleCleanup(folder.cleanup)
    ClusterTest.lab = kind(folder.name)
    unittest.addModuleCleanup(ClusterTest.lab.close)
    return ClusterTest.lab


class ClusterTest(JobTest):
    lab = None  # of open_lab
    hosts = ["node0", "node1", "node2"]

    def tearDown(self):
        deadline = time.monotonic() + 10
        while any(map(self.lab.processes_on, range(3))) and time.monotonic() < deadline:
            time.sleep(0.02)
        left = [command_of(pid) for i in range(3) for pid in self.lab.processes_on(i)]
        for i in range(3):
            for pid in self.lab.processes_on(i):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        super().tearDown()
        self.assertEqual(left, [], "processes survived on the hosts")
        segments = [f"{path} on {self.lab.names[i]}" for i in range(3) for path in self.lab.segments(i)]
        self.assertEqual(segments, [], "segments stayed in shared memory")
        folders = [str(path) for i in range(3) for path in self.lab.runtime_dir(i).iterdir()
                   if path.name != "dtrun-user"]  # which stays, as the user's secret
        for folder in folders:  # so that only this case fails for them
            shutil.rmtree(folder, ignore_errors=True)
        self.assertEqual(folders, [], "folders with sockets stayed on the hosts")

    def start_on(self, host, *arguments, env=None, stdin=subprocess.DEVNULL):
        process = subprocess.Popen(
            [*self.lab.enter(host, self.folder), str(DTRUN), *map(str, arguments)], cwd=self.folder,
            env={**(env or self.environment()), "XDG_RUNTIME_DIR": str(self.lab.runtime_dir(host))}, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace")
        self.addCleanup(end, process)
        return Job(process, self.folder)

    def config(self, command, ranks=2, hosts=None, more=""):
        listed = json.dumps(hosts or self.hosts)
        shell = json.dumps(self.lab.shell())
        return self.write(
            f"[job]\ncommand = {json.dumps(list(map(str, command)))}\nprocesses_per_host = {ranks}\ngrace = \"3s\"\n"
            f"[cluster]\nhosts = {listed}\nremote_shell = {shell}\n{more}")

    def start_cluster(self, *command, **more):
        return self.start_on(0, "--config", self.config(command, **more))

    def run_cluster(self, *command, **more):
        return self.start_cluster(*command, **more).finish()
