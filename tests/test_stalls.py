"""Jobs in which nothing moves: what is said of them, which of them are ended, and what counts as progress."""

import shutil
import sys

from support.job import READS_STACKS, JobTest, main, needs_stacks, needs_torch, until



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

    def test_off_is_off_and_nonsense_an_error(self):
        self.assert_ok(self.ranks(2, "sh", "-c", "sleep 1.2", sets=["watch.stall=off"]))
        self.assert_user_error(self.ranks(2, "true", sets=["watch.stall=often"]), "watch.stall: expected", "found 'often'")
        self.assert_user_error(self.ranks(2, "true", sets=["watch.on_stall=panic"]), "watch.on_stall")

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
