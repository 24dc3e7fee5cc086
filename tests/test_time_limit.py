"""job.time_limit: how long a job may take, with the time in which its hosts join and with its restarts."""

import sys

from support.job import RANK, JobTest, main

SAYS = "the job reached job.time_limit = {}"


class TimeLimit(JobTest):
    def assert_ended(self, result, limit):
        self.assertEqual(result.code, 124, str(result))
        self.assertIn(SAYS.format(limit) + "\n", result.err)
        self.assert_verdict(result, exit_class="time-limit", exit_code=124)

    def test_a_job_that_takes_too_long_is_ended_and_leaves_its_stacks(self):
        script = self.write("import time\nprint('ready', flush=True)\ntime.sleep(1000)\n", "wait.py")
        for flags, sets, program in (((), ["job.time_limit=6s"], (sys.executable, script)), (("--time-limit", "6s"), (), (RANK, "skip"))):
            with self.subTest(flags=flags):
                for _ in range(5):  # a look at the ranks has a time limit, which a busy machine may pass
                    result = self.ranks(2, *program, sets=["job.name=job", *sets], flags=flags)
                    self.assert_ended(result, "6s")
                    self.assertIn("dtrun: " + SAYS.format("6s") + ": ", result.err)
                    if "  stacks: " in result.err:
                        break
                stacks = max(self.folder.glob("runs/*/2*/stacks.txt")).read_text()
                for rank in range(2):
                    self.assertIn(f"rank {rank}", stacks)
                if program[0] == RANK:
                    self.assertRegex(result.err, r"at that moment: rank 0 in .*; rank 0 waits for rank 1\n")

    def test_restarts_do_not_extend_it(self):
        sets = ["job.name=job", "job.time_limit=3s", "restart.max=1000000", "restart.backoff=0s"]
        self.assert_ended(self.ranks(1, "false", sets=sets), "3s")

    def test_it_holds_while_hosts_join(self):
        shell = 'cluster.remote_shell=["sh", "-c", "exec sleep 1000"]'
        result = self.ranks(2, "true", sets=["job.name=job", "job.time_limit=1s", shell], flags=("--hosts", "localhost,elsewhere"))
        self.assertRegex(result.err, "[01] of 2 .*missing: elsewhere")
        self.assertEqual(result.code, 124, str(result))
        self.assertIn(SAYS.format("1s"), result.err)

    def test_a_job_that_ends_before_does_not_notice(self):
        result = self.ranks(2, "true", sets=["job.time_limit=1h"])
        self.assert_ok(result)
        self.assertNotIn("time_limit", result.err)


if __name__ == "__main__":
    main()
