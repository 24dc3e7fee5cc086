"""Intel MPI: its launchers, its programs. A set of its own, because Intel MPI is in no distribution:

    python3 -m venv /tmp/impi && /tmp/impi/bin/pip install impi-rt
    DTRUN_INTEL_MPI=/tmp/impi ctest -R '^intel_mpi$'
"""

import os
import re
from pathlib import Path

from support.job import JobTest, main, skip

INTEL = Path(os.environ.get("DTRUN_INTEL_MPI", "/nowhere"))
PROGRAM = INTEL / "bin" / "IMB-MPI1"


class IntelMpi(JobTest):
    def environment(self, **more):
        more.setdefault("PATH", f"{INTEL / 'bin'}:{os.environ['PATH']}")
        more.setdefault("LD_LIBRARY_PATH", str(INTEL / "lib"))
        return super().environment(I_MPI_ROOT=str(INTEL), I_MPI_FABRICS="shm", **more)

    def benchmark(self, *sets):
        result = self.ranks(2, PROGRAM, "-npmin", "2", "-iter", "10", "barrier", sets=sets)
        self.assert_ok(result)
        self.assertIn("#processes = 2", result.out)

    def test_a_program_starts_without_its_launcher(self):
        self.benchmark()

    def test_its_launchers_are_recognised_and_start_ranks(self):
        for program in ("mpirun", "mpiexec.hydra"):
            with self.subTest(program=program):
                self.benchmark("launcher.name=mpirun", f"launcher.options.program={INTEL / 'bin' / program}")

    def test_the_plan_speaks_its_language(self):
        sets = ["launcher.name=mpirun", "launcher.options.program=mpiexec.hydra", "job.processes_per_host=2"]
        result = self.dtrun("plan", *[word for item in sets for word in ("--set", item)], "--", "true")
        self.assert_ok(result)
        line = next(line for line in result.out.splitlines() if line.startswith("  argv"))
        self.assertRegex(line, r"mpiexec\.hydra -host localhost -n 2 \S+ mpi-rank true$")
        self.assertNotRegex(result.out, re.compile(r"allow-run-as-root|-hosts|-bind-to"))

    def test_its_program_under_open_mpis_mpirun_is_refused(self):
        others = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if not p.startswith(str(INTEL)))
        result = self.ranks(2, PROGRAM, sets=["launcher.name=mpirun", "launcher.options.program=/usr/bin/mpirun"],
                            env=self.environment(PATH=others))
        self.assertEqual(result.code, 127, str(result))
        self.assertRegex(result.err, r"MPICH .*\(libmpi\.so\.12\)")


if __name__ == "__main__":
    if not PROGRAM.exists():
        skip("there is no Intel MPI here: DTRUN_INTEL_MPI names no folder with bin/IMB-MPI1 (pip install impi-rt)")
    main()
