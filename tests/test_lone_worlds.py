"""Ranks whose MPI has made a world of its own are named: a program would train N times alone and not notice."""

import ctypes
import sys

from support.job import JobTest, main, skip

START = "import ctypes, time; ctypes.CDLL('libmpi.so.40', ctypes.RTLD_GLOBAL).MPI_Init(None, None); "
WARNING = "made a world of one"


class LoneWorlds(JobTest):
    def run_ranks(self, launcher, wait_s):
        return self.ranks(2, sys.executable, "-c", f"{START}time.sleep({wait_s})",
                          sets=["backend.name=none", f"launcher.name={launcher}"])

    def test_ranks_that_start_mpi_without_an_mpirun_are_named(self):
        result = self.run_ranks("per-process", 5)
        self.assertIn(WARNING, result.err)
        self.assertRegex(result.err, r"MPI of ranks? [01]")
        self.assertEqual(result.err.count(WARNING), 1, "said once")

    def test_ranks_of_an_mpirun_are_not(self):
        self.assertNotIn(WARNING, self.run_ranks("mpirun", 2).err)


if __name__ == "__main__":
    try:
        ctypes.CDLL("libmpi.so.40")
    except OSError:
        skip("Open MPI 4 is not installed (libopenmpi3)")
    main()
