"""Jobs in which nothing moves: what is said of them, which of them are ended, and what counts as progress."""

import shutil
import sys
import unittest

from support.job import BUILD, PACKAGE, READS_STACKS, JobTest, main, needs_stacks, needs_torch, nightly, until

OPEN_MPI = BUILD / "tests/open_mpi_program"
TORCH_HANG = """import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(4)
dist.all_reduce(t)
if dist.get_rank() == 1 and os.environ["DTRUN_GENERATION"] == "0":
    time.sleep(1000)
dist.all_reduce(t)
dist.destroy_process_group()
"""
DTRUN_HANG = """import array, os, time, dtrun
world = dtrun.init()
x = array.array("f", [1])
world.allreduce(x)
if world.rank == 1 and os.environ["DTRUN_GENERATION"] == "0":
    time.sleep(1000)
world.allreduce(x)
"""


class Stalls(JobTest):
    def setUp(self):
        super().setUp()
        self.wait = self.write("import time\nprint('ready', flush=True)\ntime.sleep(1000)\n", "wait.py")

    def test_a_job_without_progress_is_told_of_once(self):
        job = self.start_ranks(2, sys.executable, self.wait, sets=["watch.stall=1s"])
        stacks = until(lambda: job.run_dir() and (job.run_dir() / "stacks.txt"), "a run directory")
        until(lambda: stacks.exists() and "rank 1" in stacks.read_text(), "stacks of the ranks")
        job.signal(2)
        result = job.finish()
        self.assertEqual(result.err.count("dtrun: no progress for "), 1, str(result))
        if READS_STACKS:
            self.assertIn("ranks 0, 1 in time.sleep at wait.py:3", result.err)

    def test_it_fails_where_it_is_asked_to(self):
        result = self.ranks(2, sys.executable, self.wait, sets=["watch.stall=1s", "watch.on_stall=fail"])
        self.assertEqual(result.code, 1, str(result))
        self.assert_verdict(result, exit_class="hang")

    def hangs(self, text, *sets, ranks=3, **options):
        """Starts a job in which rank 1 never calls its second allreduce."""
        script = self.write(text, "hang.py")
        limit = "watch.stall=3s" if "torch" in text else "watch.stall=1s"  # on a busy machine torch may take a second to begin
        return self.start_ranks(ranks, sys.executable, script, sets=[limit, *sets], **options)

    def assert_explained(self, err, call, line, missing):
        """One line says where the ranks are, and which one never came."""
        lines = [one for one in err.splitlines() if "no progress" in one and "dtrun: job" not in one]
        self.assertEqual(len(lines), 1, err)
        for fact in (f"ranks 0, 2 in {call} at hang.py:{line}", f"rank 1 in time.sleep at hang.py:{missing}", "ranks 0, 2 wait for rank 1"):
            self.assertIn(fact, lines[0])

    @nightly
    @needs_torch
    @needs_stacks
    def test_explain_says_who_never_came_and_the_job_goes_on(self):
        job = self.hangs(TORCH_HANG, "backend.name=none")
        stacks = until(lambda: job.run_dir() and (job.run_dir() / "stacks.txt"), "a run directory")
        until(lambda: stacks.exists() and "no progress" in stacks.read_text(), "the line")
        self.assertIsNone(job.process.poll())
        job.signal(2)
        result = job.finish()
        self.assertEqual(result.code, 130, str(result))
        self.assert_explained(result.err, "all_reduce", 7, 6)

    @needs_stacks
    def test_explain_of_ranks_in_dtruns_own_calls(self):
        job = self.hangs(DTRUN_HANG, env=self.environment(**PACKAGE))
        stacks = until(lambda: job.run_dir() and (job.run_dir() / "stacks.txt"), "a run directory")
        until(lambda: stacks.exists() and "no progress" in stacks.read_text(), "the line")
        self.assertIsNone(job.process.poll())
        job.signal(2)
        self.assert_explained(job.finish().err, "allreduce", 7, 6)

    @needs_torch
    @needs_stacks
    def test_fail_ends_the_job_even_with_restarts(self):
        job = self.hangs(TORCH_HANG, "backend.name=none", "watch.on_stall=fail", "restart.max=2")
        result = job.finish()
        self.assertEqual(result.code, 1, str(result))
        self.assert_verdict(result, exit_class="hang", generation=0)
        self.assertEqual(self.last_verdict()["blamed"]["ranks"], [1])
        self.assert_explained(result.err, "all_reduce", 7, 6)
        self.golden(next(line for line in result.err.splitlines() if "not restarted" in line), "watch.on_stall")

    @needs_stacks
    def test_restart_starts_the_ranks_again(self):
        job = self.hangs(DTRUN_HANG, "watch.on_stall=restart", "restart.max=1", env=self.environment(**PACKAGE))
        result = job.finish()
        self.assert_ok(result)
        self.assert_explained(result.err, "allreduce", 7, 6)
        self.assert_verdict(result, exit_code=0, generation=1)

    @nightly
    @needs_torch
    def test_restart_fails_once_no_restart_is_left(self):
        always = TORCH_HANG.replace(' and os.environ["DTRUN_GENERATION"] == "0"', "")
        for most, told in (("1", "restart.max = 1 is used up"), ("0", "restart.max is 0")):
            job = self.hangs(always, "backend.name=none", "watch.on_stall=restart", "restart.max=" + most)
            result = job.finish()
            self.assertEqual(result.code, 1, str(result))
            self.assert_verdict(result, exit_class="hang", generation=int(most))
            self.assertIn(told, result.err)

    @needs_torch
    def test_silent_steps_are_progress(self):
        script = self.write(
            "import time, torch, torch.distributed as d\n"
            "d.init_process_group('gloo'); t = torch.ones(9)\n"
            "for i in range(9): time.sleep(0.5); d.all_reduce(t)\n"
            "d.destroy_process_group()\n",
            "steps.py",
        )
        sets = ["backend.name=none", "watch.stall=3s", "watch.on_stall=fail"]
        self.assert_ok(self.ranks(2, sys.executable, script, sets=sets))

    @needs_torch
    @needs_stacks
    def test_ranks_in_different_collectives_are_told_of_long_before_the_limit(self):
        script = self.write(
            "import torch, torch.distributed as d\n"
            "d.init_process_group('gloo'); t = torch.ones(9)\n"
            "d.all_reduce(t) if d.get_rank() == 0 else d.barrier()\n",
            "order.py",
        )
        job = self.start_ranks(2, sys.executable, script, sets=["backend.name=none"])  # watch.stall is 10 minutes
        line = until(lambda: next((line for line in job.process.stderr if "no progress" in line), None), "the line")
        self.golden(line, "rank 0 in all_reduce at order.py:3; rank 1 in barrier at order.py:3")
        job.signal(2)
        self.assertEqual(job.finish().code, 130)

    def test_a_stall_after_work_fails_too(self):
        script = self.write(
            "import os, time\n"
            "end = time.monotonic() + 3 * (os.environ['RANK'] == '0')\n"
            "while time.monotonic() < end: pass\n"
            "time.sleep(1000)\n",
            "works.py",
        )
        result = self.ranks(2, sys.executable, script, sets=["watch.stall=1s", "watch.on_stall=fail"])
        self.assertEqual(result.code, 1, str(result))
        self.assert_verdict(result, exit_class="hang")

    def test_a_rank_at_work_is_not_ended_but_named(self):
        script = (
            "import os, time\n"
            "if os.environ['RANK'] == '0': time.sleep(1000)\n"
            "end = time.monotonic() + 1000\n"
            "while time.monotonic() < end and not os.path.exists(os.environ['DIR'] + '/end'): pass\n"
            "os._exit(7)\n"
        )
        environment = self.environment(DIR=str(self.folder))
        job = self.start_ranks(2, sys.executable, "-c", script, sets=["watch.stall=2s", "watch.on_stall=fail"], env=environment)
        stacks = until(lambda: job.run_dir() and (job.run_dir() / "stacks.txt"), "a run directory")
        until(lambda: stacks.exists() and "rank 1" in stacks.read_text(), "stacks of the ranks")
        (self.folder / "end").touch()
        result = job.finish()
        self.assertEqual(result.code, 7, str(result))
        self.assertRegex(result.err, r"no progress .*rank 1 ")
        line = next(line for line in result.err.splitlines() if "no progress" in line)
        self.golden(line.rpartition("stacks.txt; ")[2], "rank 1", "--time-limit")  # the places before it differ from run to run

    @unittest.skipUnless(OPEN_MPI.exists(), "Open MPI was not found")
    def test_mpi_ranks_that_poll_while_others_work_are_not_ended(self):
        mpi = self.environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.assert_ok(self.ranks(3, OPEN_MPI, "turns", sets=["watch.stall=2s", "watch.on_stall=fail"], env=mpi))

    def test_off_is_off_and_nonsense_an_error(self):
        self.assert_ok(self.ranks(2, "sh", "-c", "sleep 1.2", sets=["watch.stall=off"]))
        self.assert_user_error(self.ranks(2, "true", sets=["watch.stall=often"]), "watch.stall: expected", "found 'often'")
        for wrong in ("panic", "report"):  # "report" was the name of "explain"
            self.assert_user_error(self.ranks(2, "true", sets=["watch.on_stall=" + wrong]), "watch.on_stall", '"explain", "fail", "restart"', wrong)

    def test_ranks_that_an_mpirun_has_started_have_their_places(self):
        if shutil.which("mpirun") is None:
            self.skipTest("there is no mpirun here")
        job = self.start_ranks(2, sys.executable, self.wait, sets=["launcher.name=mpirun", "watch.stall=1s"])
        stacks = until(lambda: job.run_dir() and (job.run_dir() / "stacks.txt"), "a run directory")
        until(lambda: stacks.exists() and "rank 1" in stacks.read_text(), "stacks of the ranks")
        job.signal(2)
        result = job.finish()
        if READS_STACKS:
            self.assertIn("ranks 0, 1 in time.sleep at wait.py:3", result.err)

    def test_a_rank_that_does_not_stop_is_looked_at_before_it_is_killed(self):
        script = self.write(
            "import os, signal, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "up = os.environ['DIR'] + '/up'\n"
            "if os.environ['RANK'] == '0':\n"
            "    open(up, 'w').close()\n"
            "    time.sleep(1000)\n"
            "while not os.path.exists(up): time.sleep(0.01)\n"
            "raise SystemExit(5)\n",
            "holds.py",
        )
        result = self.ranks(2, sys.executable, script, sets=["job.grace=300ms"], env=self.environment(DIR=str(self.folder)))
        self.assertEqual(result.code, 5, str(result))
        self.assertRegex(result.err, "dtrun: rank 0 .*300ms.*; rank 0 in ")
        if READS_STACKS:
            self.assertIn("rank 0 in time.sleep at holds.py:6", result.err)
        stacks = next(self.folder.glob("runs/*/2*/stacks.txt"))
        self.assertIn("killed", stacks.read_text())
        self.assertEqual(stacks.stat().st_mode & 0o777, 0o600)


if __name__ == "__main__":
    main()
