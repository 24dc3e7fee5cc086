"""Python programs that import dtrun from this tree."""

import subprocess
import sys

from support.job import BUILD, SOURCE, Job, JobTest, end


# A sitecustomize.py: rank 1 ends and rank 0 stays before what they run begins.
FAILS_EARLY = """
import os, time
if os.environ.get("RANK") == "1":
    os._exit(3)
if os.environ.get("RANK") == "0":
    time.sleep(1000)
"""


class PythonTest(JobTest):
    def environment(self, **more):
        here = {"PYTHONPATH": str(SOURCE / "python"), "DTRUN_LIBRARY": str(BUILD / "lib/libdtrun.so.1")}
        return super().environment(**{**here, **more})

    def start_python(self, text, *words, python=sys.executable, env=None):
        """A Python program under way, in the folder of this test."""
        script = self.write(text, "driver.py")
        process = subprocess.Popen([str(python), "-u", str(script), *map(str, words)], cwd=self.folder, env=env or self.environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(end, process)
        return Job(process, self.folder)

    def python(self, text, *words, **more):
        return self.start_python(text, *words, **more).finish()
