"""Jobs in a parallel environment of a real Grid Engine: a qmaster, and an execd on each of three hosts with a network of
their own. PE_HOSTFILE names the hosts, and qrsh -inherit starts dtrun on them."""

import json
import subprocess
import tempfile
import unittest

from support import gridengine, lab
from support.job import DTRUN, RANK, JobTest, main, skip
from support.lab import Lab, command_of

LAB = GRID = None


def setUpModule():
    global LAB, GRID
    reason = lab.why_not() or gridengine.why_not()
    if reason:
        skip(reason)
    folder = tempfile.TemporaryDirectory(prefix="dtrun-gridengine-")
    unittest.addModuleCleanup(folder.cleanup)
    LAB = Lab(folder.name)
    unittest.addModuleCleanup(LAB.close)
    GRID = gridengine.GridEngine(LAB)


class GridEngineTest(JobTest):
    def tearDown(self):
        GRID.delete_all()
        super().tearDown()

    def config(self, *command, source="gridengine", more=""):
        return self.write(f'[job]\ncommand = {json.dumps([str(word) for word in command])}\ngrace = "3s"\n'
                          f'[cluster]\nfrom = "{source}"\n{more}')

    def qsub(self, slots, *words):
        """What `words` wrote in a job with that many slots, and the exit code of the last of them."""
        script = self.write("#!/bin/sh\n" + " ".join(f"'{word}'" for word in words) + "\necho code $?\n", "script")
        done = subprocess.run([*LAB.enter(0, self.folder), "qsub", "-sync", "y", "-cwd", "-V", "-j", "y", "-o",
                               str(self.folder / "out"), "-pe", gridengine.ENVIRONMENT, str(slots), str(script)],
                              cwd=self.folder, env=GRID.environment(self.environment()), capture_output=True, text=True,
                              timeout=120)
        text = (self.folder / "out").read_text()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + text)
        return text

    def survivors(self, text):
        return [pid for i in range(3) for pid in LAB.processes_on(i) if text in command_of(pid)]

    def test_a_parallel_environment_is_the_cluster_and_its_slots_are_the_ranks(self):
        text = self.qsub(6, DTRUN, "--config", self.config(RANK, source="auto"))
        self.assertIn("6 ranks on 3 hosts", text)
        for host in LAB.names:
            self.assertIn(f"{host} 2", text)
        for rank in range(6):
            self.assertIn(f"rank {rank} of 6 over shm+gloo: sum 21\n", text)
        self.assertIn("code 0\n", text)

    def test_no_parallel_environment(self):
        file = self.config("true")
        done = subprocess.run([*LAB.enter(0), str(DTRUN), "--config", str(file)], env=self.environment(),
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.golden_lines(done.stderr, "PE_HOSTFILE")


if __name__ == "__main__":
    main()
