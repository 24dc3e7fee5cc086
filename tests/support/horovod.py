"""Programs of programs/horovod as ranks of a job, by a Python that has what they import."""

import os
import subprocess
import sys
from pathlib import Path

from support.job import BUILD, SOURCE, JobTest

PROGRAMS = SOURCE / "tests/programs/horovod"
SHIM = SOURCE / "python/dtrun/horovod/shim"


def python_with(module: str, variable: str):
    """The one that the environment names, else that of `tools/setup frameworks`, else the one that runs this test."""
    places = [os.environ.get(variable), SOURCE / "build/frameworks/bin/python3", sys.executable]
    finds = f"import importlib.util as u, sys; sys.exit(not u.find_spec('{module}'))"
    for place in places:
        if place is not None and Path(place).exists() and subprocess.run([place, "-c", finds], check=False).returncode == 0:
            return place
    return None


class HorovodTest(JobTest):
    PYTHON = None

    def package(self, *paths, **more):
        """The environment in which `import dtrun.horovod.torch` finds the package and the library of this build."""
        path = ":".join(map(str, [SOURCE / "python", *paths]))
        return self.environment(
            PYTHONPATH=path, DTRUN_LIBRARY=str(BUILD / "lib/libdtrun.so.1"), PYTHONDONTWRITEBYTECODE="1", **more
        )

    def hold(self, count, program, *arguments, done="is done", absent=(), sets=(), env=None):
        result = self.ranks(count, self.PYTHON, PROGRAMS / program, *arguments, sets=sets, env=env or self.package())
        self.assert_ok(result)
        for rank in range(count):
            if rank not in absent:
                self.assertIn(f"rank {rank} of {count} {done}", result.out, str(result))
        return result

    def say(self, text, *paths):
        """What a script says on stderr as it ends with an error."""
        script = self.write(text, "script.py")
        done = subprocess.run([self.PYTHON, script], capture_output=True, text=True, env=self.package(SHIM, *paths))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr.splitlines()[-1]
