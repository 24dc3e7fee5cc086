"""The package of python/dtrun over libdtrun: each program of programs/python is a rank."""

import importlib.util
import os
import resource
import subprocess
import sys
import time
import unittest

from support.job import BUILD, PACKAGE, SOURCE, JobTest, main, skip
from support.pages import run_page

PROGRAMS = SOURCE / "tests" / "programs" / "python"


class PythonTest(JobTest):
    def package(self, **more):
        """The environment in which `import dtrun` finds the package and the library of this build."""
        return self.environment(**PACKAGE, **more)

    def assert_ranks_are_done(self, count, program, *arguments, sets=()):
        result = self.ranks(count, sys.executable, PROGRAMS / program, *arguments, sets=sets, env=self.package())
        self.assert_ok(result)
        for rank in range(count):
            self.assertIn(f"rank {rank} of {count} is done", result.out)


class OpenFiles(PythonTest):
    def program(self, ranks, text, soft, hard, *sets):
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return self.ranks(ranks, sys.executable, "-c", text, sets=sets, env=self.package(), preexec_fn=limit)

    def test_a_rank_that_joins_raises_its_soft_limit_and_no_other_program_does(self):
        count = "import resource; print('limit', *resource.getrlimit(resource.RLIMIT_NOFILE)); "
        self.assertIn("limit 100 300\n", self.program(1, count, 100, 300).out)
        self.assertIn("limit 300 300\n", self.program(1, "import dtrun; dtrun.init(); " + count, 100, 300).out)

    def test_communicators_share_what_they_watch_their_peers_by(self):
        text = ("import os, dtrun; world = dtrun.init(); files = lambda: len(os.listdir('/proc/self/fd')); before = files(); "
                "kept = [world.split(0, world.rank) for _ in range(20)]; print('more', files() - before)")
        result = self.program(4, text, 256, 256)
        self.assert_ok(result)
        self.assertEqual(result.out.count("more 0\n"), 4, str(result))

    def test_descriptors_that_run_out_are_no_rank_that_ended(self):
        text = ("import os, dtrun; world = dtrun.init()\ntry:\n    while world.rank == 1: os.dup(0)\nexcept OSError:\n    pass\n"
                "world.split(0, world.rank)")
        ways = [["comm.local=shm"], *(["comm.local=none", f"backend.name={name}"] for name in ("gloo", "ucx", "mpi")
                                      if (BUILD / "lib" / "dtrun" / "plugins" / f"libdtrun_backend_{name}.so").exists())]
        for sets in ways:
            with self.subTest(sets[-1]):
                result = self.program(3, text, 200, 200, "backend.timeout=20s", *sets)
                self.assertNotRegex(result.out + result.err, "(rank|process of rank) [012] (has )?(ended|is gone)")
                if "mpi" not in sets[-1]:  # it makes communicators without a descriptor
                    self.assertNotEqual(result.code, 0, str(result))
                    self.assertIn("open files", (result.out + result.err).lower(), str(result))


class Operations(PythonTest):
    def test_which_memory_operations_take(self):
        for count in (1, 3):
            self.assert_ranks_are_done(count, "buffers.py")

    def test_objects_that_export_dlpack(self):
        self.assert_ranks_are_done(2, "dlpack_objects.py")

    @unittest.skipUnless(importlib.util.find_spec("torch"), f"{sys.executable} has no torch")
    def test_tensors_of_torch(self):
        self.assert_ranks_are_done(2, "tensors.py")

    def test_objects_and_those_that_cannot_be_pickled(self):
        self.assert_ranks_are_done(3, "objects.py")

    def test_random_operations_give_what_numpy_gives(self):
        for count in (2, 3):
            self.assert_ranks_are_done(count, "random_operations.py", "1", "20")

    def test_work_and_its_memory(self):
        self.assert_ranks_are_done(2, "works.py")

    def test_communicators_that_threads_make(self):
        for count in (2, 3):
            self.assert_ranks_are_done(count, "threads.py")


class Leaving(PythonTest):
    def test_init_and_finalize_and_children(self):
        self.assert_ranks_are_done(2, "leaving.py")

    def test_a_job_may_be_joined_again(self):
        for sets in ([], ["comm.local=none"]):
            with self.subTest(sets):
                self.assert_ranks_are_done(2, "again.py", sets=sets)

    def test_a_program_that_returns_leaves_in_order(self):
        self.assert_ranks_are_done(2, "ending.py", "return")

    def test_a_program_may_return_with_a_group_open(self):
        self.assert_ranks_are_done(2, "ending.py", "open")

    def test_finalize_names_what_was_not_answered(self):
        self.assert_ranks_are_done(2, "ending.py", "finalize")

    def test_a_failed_communicator_says_that_it_failed_before(self):
        self.assert_ranks_are_done(2, "ending.py", "differ")

    def test_a_rank_that_aborts_is_named_and_not_those_whose_calls_fail_by_it(self):
        layers = {"shm": [], "gloo": ["comm.local=none"], "ucx": ["backend.name=ucx", "comm.local=none"]}
        for name, sets in layers.items():
            if not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{name}.so").exists() and name == "ucx":
                continue
            with self.subTest(name):
                result = self.ranks(3, sys.executable, PROGRAMS / "ending.py", "abort", sets=sets, env=self.package())
                headline = result.err[result.err.rindex("dtrun: job") :].splitlines()[0]
                self.assertIn("rank 1 aborted 'world': bad batch", headline)

    def test_a_rank_that_raises_is_named_at_once_whatever_still_runs(self):
        for way in ("raise", "group"):
            with self.subTest(way):
                begin = time.monotonic()
                result = self.ranks(2, sys.executable, PROGRAMS / "ending.py", way, env=self.package(), sets=["job.grace=1s"])
                self.assertLess(time.monotonic() - begin, 30, str(result))  # backend.timeout, which nothing waited for, is 60 s
                self.assertEqual(result.code, 1, str(result))
                self.assertIn("ValueError: bad batch", result.err)
                self.assertIn("rank 1", result.err[result.err.rindex("dtrun: job") :].splitlines()[0])


class CallsOfThreads(PythonTest):
    """Calls that are inside libdtrun where their communicator ends."""

    def assert_end_well(self, *ways):
        for way in ways:
            with self.subTest(way):
                self.assert_ranks_are_done(2, "inside.py", way, self.folder / way)

    def test_free_and_finalize_wait_for_them(self):
        calls = ("recv", "wait", "split", "group")
        self.assert_end_well(*(f"{end}-{call}" for end in ("free", "finalize") for call in calls))

    def test_abort_ends_them(self):
        self.assert_end_well("abort")

    def test_a_program_that_returns_waits_for_them_for_a_while(self):
        self.assert_end_well("return-recv", "return-wait", "stuck")

    def test_the_call_that_a_signal_handler_interrupts_is_not_waited_for(self):
        self.assert_end_well("handler-recv", "handler-wait")


class Alone(PythonTest):
    def say(self, **variables):
        """What a program that dtrun did not start says on stderr; it joins twice."""
        text = "import dtrun\nfor _ in 'ab':\n  with dtrun.init() as world: assert world.size == 1"
        names = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "SLURM_PROCID")
        env = {name: value for name, value in self.package().items() if name not in names}
        done = subprocess.run([sys.executable, "-c", text], env={**env, **variables}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_a_rank_of_another_launcher_is_told_once(self):
        for variables in ({"RANK": "0", "WORLD_SIZE": "2"}, {"OMPI_COMM_WORLD_SIZE": "2"}, {"PMI_SIZE": "2"},
                          {"SLURM_NTASKS": "2", "SLURM_PROCID": "0"}):  # fmt: skip
            with self.subTest(variables):
                said = self.say(**variables)
                self.assertEqual(said.count("dtrun: dtrun_init: warning: "), 1, said)
                self.golden_lines(said, "=2 ", "-n 2")

    def test_a_program_that_is_alone_is_told_nothing(self):
        for variables in ({}, {"WORLD_SIZE": "1"}, {"SLURM_NTASKS": "2"}, {"WORLD_SIZE": "many"}):
            self.assertEqual(self.say(**variables), "", variables)

    def test_a_rank_of_a_job_of_one_is_told_nothing(self):
        program = [sys.executable, "-c", "import dtrun; dtrun.init()"]
        result = self.ranks(1, *program, env=self.package(), sets=["job.env.OMPI_COMM_WORLD_SIZE=2"])
        self.assert_ok(result)
        self.assertNotIn("this process is alone", result.err)


class Page(PythonTest):
    def test_the_programs_of_the_page(self):
        interpreter = self.folder / "bin"  # its python3 is the one that has numpy
        interpreter.mkdir()
        (interpreter / "python3").symlink_to(sys.executable)
        run_page(self, "docs/python.md", **{**PACKAGE, "PATH": f"{interpreter}:{os.environ['PATH']}"})


def needs_numpy():
    probe = subprocess.run([sys.executable, "-c", "import numpy"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"{sys.executable} has no numpy: {probe.stderr.strip().splitlines()[-1:]}")


if __name__ == "__main__":
    needs_numpy()
    main()
