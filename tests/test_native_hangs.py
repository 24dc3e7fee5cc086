"""14 ways to hang of C++ programs, over dtrun's API and over MPI, on one host and on three: `dtrun explain` of the running job names the
rank and its line. tests/test_hangs.py has those of torch."""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support.cluster import ClusterTest, open_lab
from support.job import BUILD, SOURCE, main, skip, until

SOURCE_FILE = SOURCE / "tests/programs/ways_to_hang.cc"
STANDING = ("sleep", "loop", "stop", "lock", "condition", "thread", "fifo", "pipe", "socket", "child", "flock", "skip")
FOLDER = None


def setUpModule():
    global FOLDER
    if shutil.which("c++") is None or not (shutil.which("eu-stack") or shutil.which("gdb")):
        skip("there is no C++ compiler here, or neither eu-stack nor gdb")
    FOLDER = Path(tempfile.mkdtemp(prefix="dtrun-ways-"))
    unittest.addModuleCleanup(shutil.rmtree, FOLDER)
    open_lab()


def build(name, compiler, *flags):
    program = FOLDER / name
    if not program.exists():
        subprocess.run([compiler, "-g", "-O1", "-o", program, SOURCE_FILE, *flags, "-pthread"], check=True)
    return program


class Ways(ClusterTest):
    def program(self):
        return build("over_dtrun", "c++", f"-I{SOURCE}/sdk/include", f"-L{BUILD}/lib", "-ldtrun", f"-Wl,-rpath,{BUILD}/lib")

    def start(self, way, hosts):
        place = Path(tempfile.mkdtemp(prefix=f"{way}-", dir=self.folder))
        return self.start_cluster(self.program(), way, place, ranks=3 // hosts, hosts=self.hosts[:hosts])

    def watch(self, way, hosts, *texts):
        """Starts the job, and ends it once explain has said all of these of it."""
        before = set(self.folder.glob("runs/*/2*"))
        job = self.start(way, hosts)
        folder = until(lambda: next(iter(set(self.folder.glob("runs/*/2*")) - before), None), "a run folder")

        def told():
            said = self.start_on(0, "explain", folder).finish().out
            return all(re.search(text, said) for text in texts)

        until(told, f"{texts} of the running job")
        self.assert_ok(self.start_on(0, "stop", folder, "--grace", "0s").finish())
        job.finish()

    def check(self, hosts):
        for way in STANDING:
            with self.subTest(way=way):
                self.watch(way, hosts, "ranks 0, 2 in ", r"rank 1 .*ways_to_hang\.cc:\d+", "ranks 0, 2 wait for rank 1")

    def check_that_it_ends(self, hosts):
        """Where a rank leaves, or the ranks' calls differ, the job ends, and its verdict names the rank."""
        for way, text in (("left", "rank 1 exited with code 0"), ("order", "rank 1 calls barrier")):
            with self.subTest(way=way):
                result = self.start(way, hosts).finish()
                self.assertNotEqual(result.code, 0)
                self.assertIn(text, result.err, str(result))

    def test_on_one_host(self):
        self.check(1)

    def test_on_three_hosts(self):
        self.check(3)

    def test_those_that_end_the_job(self):
        for hosts in (1, 3):
            self.check_that_it_ends(hosts)


@unittest.skipUnless(shutil.which("mpicxx.openmpi"), "there is no Open MPI here")
class MpiWays(Ways):
    def program(self):
        return build("over_mpi", "mpicxx.openmpi", "-DWITH_MPI")

    def environment(self, **more):
        return super().environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)

    def check_that_it_ends(self, hosts):
        result = self.start("left", hosts).finish()
        self.assertNotEqual(result.code, 0)
        self.assertIn("rank 1 exited with code 0", result.err, str(result))
        self.watch("order", hosts, r"rank 1 in P?MPI_Barrier at ways_to_hang\.cc:\d+", "in different collectives")


if __name__ == "__main__":
    main()
