"""Which processors ranks run on, and which GPUs they see."""

import json
import os
import sys
import unittest
from pathlib import Path

from support.job import JobTest, RANK, main

ALLOWED = sorted(os.sched_getaffinity(0))
SHOW = [sys.executable, "-c", "import json,os; print(json.dumps([sorted(os.sched_getaffinity(0)), dict(os.environ)]))"]


class Binding(JobTest):
    def setUp(self):
        super().setUp()
        refusal = self.dtrun("plan", "--set", "job.bind=compact", "--set", "backend.name=none", "--", "true").err
        if "built without" in refusal:
            self.skipTest(refusal)

    def shown(self, result, rank):
        prefix = f"[{rank}] "
        lines = [line for line in result.out.splitlines() if line.startswith(prefix)]
        return json.loads(lines[0][len(prefix):])

    def bound(self, count, policy, **more):
        """Processors of each rank, the header's line on binding, and an environment."""
        result = self.ranks(count, *SHOW, sets=[f"job.bind={policy}", "backend.name=none"], flags=["-v"], **more)
        self.assert_ok(result)
        line = next(line for line in result.err.splitlines() if line.split()[:1] == ["binding"])
        ranks = [self.shown(result, rank) for rank in range(count)]
        return [set(processors) for processors, _ in ranks], " ".join(line.split()[1:]), ranks[0][1]

    def test_none_leaves_ranks_with_what_dtrun_has(self):
        sets, line, env = self.bound(2, "none")
        self.assertEqual(sets, [set(ALLOWED)] * 2)
        self.assertEqual(line, "none")
        self.assertEqual(env["DTRUN_LOCAL_PROCESSORS"], "0")

    def test_compact_shares_out_every_processor_once(self):
        if len(ALLOWED) < 2:
            self.skipTest("one processor cannot be shared out")
        sets, line, env = self.bound(2, "compact")
        if "share" in line:
            self.skipTest("two hardware threads of one core cannot be shared out")
        self.assertEqual(sets[0] & sets[1], set())
        self.assertEqual(sets[0] | sets[1], set(ALLOWED))
        self.assertIn(", compact (", line)
        self.assertEqual(env["DTRUN_LOCAL_PROCESSORS"], str(len(ALLOWED)))

    def test_more_ranks_than_cores_are_not_bound_and_the_header_says_so(self):
        sets, line, _ = self.bound(len(ALLOWED) + 2, "compact")
        self.assertEqual(sets, [set(ALLOWED)] * (len(ALLOWED) + 2))
        self.assertRegex(line, r"^none: \d+ ranks share \d+ cores?$")

    def test_every_policy_stays_inside_the_mask_that_dtrun_was_given(self):
        one = {ALLOWED[-1]}
        for policy in ("auto", "compact", "spread", "per-numa", "per-socket"):
            with self.subTest(policy=policy):
                narrow = lambda: os.sched_setaffinity(0, one)
                result = self.start("--set", f"job.bind={policy}", "--set", "job.processes_per_host=2", "--set",
                                    "backend.name=none", "--", *SHOW, preexec_fn=narrow).finish()
                self.assert_ok(result)
                self.assertEqual(set(self.shown(result, 1)[0]), one)
                self.assertEqual(self.shown(result, 1)[1]["OMP_NUM_THREADS"], "1")

    def test_the_plan_tells_what_ranks_are_given(self):
        file = self.write(f'[job]\nbind = "compact"\nprocesses_per_host = 1\ncommand = {json.dumps(SHOW)}\n'
                          '[backend]\nname = "none"\n')
        plan = json.loads(self.dtrun("plan", "--json", "--config", file).out)
        self.assertIn("compact", plan["binding"])
        self.assertIn(f"  bind   {plan['processes'][0]['binding']}\n", self.dtrun("plan", "--config", file).out)
        processors = set()
        for part in plan["processes"][0]["binding"].split(","):
            first, _, last = part.partition("-")
            processors |= set(range(int(first), int(last or first) + 1))
        result = self.dtrun("--config", file)
        self.assertEqual(set(json.loads(result.out)[0]), processors)

    def test_an_unknown_policy_is_refused_with_those_there_are(self):
        self.assert_user_error(self.ranks(1, "true", sets=["job.bind=compct"]), 'found "compct"', "\"compact\"",
                               "\"per-socket\"")

    def test_bound_ranks_still_meet(self):
        result = self.ranks(2, RANK, sets=["job.bind=compact"])
        self.assert_ok(result)
        self.assertIn("sum 3", result.out)


class Gpus(JobTest):
    def test_a_list_that_selects_none_leaves_none_to_count(self):
        env = self.environment(CUDA_VISIBLE_DEVICES="-1", HIP_VISIBLE_DEVICES="")
        result = self.ranks("gpu", "true", env=env)
        self.assert_user_error(result, "job.processes_per_host", "no GPU ", "CUDA_VISIBLE_DEVICES is '-1'")

    @unittest.skipIf(list(Path("/dev").glob("nvidia[0-9]*")), "this machine has GPUs")
    def test_a_slice_that_is_none_is_no_gpu(self):
        env = self.environment(CUDA_VISIBLE_DEVICES="MIG-banana")
        for ranks, sets, texts in (("gpu", [], ["no GPU is visible", "CUDA_VISIBLE_DEVICES is 'MIG-banana'"]),
                                   (1, ["job.gpu_visibility=own"], ["1 rank wants", "0 are visible: CUDA_VISIBLE_DEVICES is 'MIG-banana'"])):
            self.assert_user_error(self.ranks(ranks, "true", sets=sets, env=env), *texts)

    @unittest.skipIf(list(Path("/dev").glob("nvidia[0-9]*")), "this machine has GPUs")
    def test_a_list_in_the_config_that_selects_nothing_is_told(self):
        result = self.ranks(1, "sh", "-c", "echo $CUDA_VISIBLE_DEVICES", sets=["job.env.CUDA_VISIBLE_DEVICES=banana"])
        self.assert_ok(result)
        self.assertIn("banana", result.out)
        self.assertIn("warning    CUDA_VISIBLE_DEVICES is 'banana', ", result.err)

    def test_own_gpus_that_are_not_there_are_refused(self):
        env = self.environment(CUDA_VISIBLE_DEVICES="-1", HIP_VISIBLE_DEVICES="")
        result = self.ranks(2, "true", sets=["job.gpu_visibility=own"], env=env)
        self.assert_user_error(result, "job.gpu_visibility", "2 ranks", "0 are visible")

    def test_a_list_is_handed_on_unchanged_unless_asked(self):
        result = self.ranks(1, "sh", "-c", "echo $CUDA_VISIBLE_DEVICES",
                            env=self.environment(CUDA_VISIBLE_DEVICES="5,GPU-abc"))
        self.assert_ok(result)
        self.assertEqual(result.out, "5,GPU-abc\n")

    def selected(self, *words, hosts="localhost slots=4\n127.0.0.1 slots=4\n", **variables):
        """Runs a job on a machine that is both hosts; ranks print where they run and what they see."""
        self.write(hosts, "hosts")
        return self.dtrun("-v", "--hostfile", "hosts", "--set", 'cluster.remote_shell=["sh", "-c", "exec \\"$@\\""]', "--set",
                          "cluster.oversubscribe=true", "--set", "network.interface=lo", *words, "sh", "-c",
                          "echo $RANK/$LOCAL_RANK of $LOCAL_WORLD_SIZE: $CUDA_VISIBLE_DEVICES",
                          env=self.environment(**variables))

    def test_deepspeeds_include_chooses_gpus_of_each_host(self):
        result = self.selected("--include", "127.0.0.1:0@localhost:2,3", CUDA_VISIBLE_DEVICES="7")
        self.assert_ok(result)
        self.assertEqual(sorted(line.partition("] ")[2] for line in result.out.splitlines()),
                         ["0/0 of 2: 2,3", "1/1 of 2: 2,3", "2/0 of 1: 0"])
        self.golden_lines(result.err, "CUDA_VISIBLE_DEVICES='7'", "cluster.gpus")
        self.golden_lines(result.err, "--include", "--set cluster.include=127.0.0.1:0@localhost:2,3")

    def test_deepspeeds_exclude_leaves_out_gpus_and_hosts(self):
        for spelling in ("--exclude", "-e"):
            result = self.selected(spelling, "localhost:0,2@127.0.0.1")
            self.assert_ok(result)
            self.assertEqual(sorted(line.partition("] ")[2] for line in result.out.splitlines()), ["0/0 of 2: 1,3", "1/1 of 2: 1,3"])

    def test_include_needs_no_hostfile_on_this_machine(self):
        result = self.dtrun("-i", "localhost:0,1", "sh", "-c", "echo $LOCAL_RANK: $CUDA_VISIBLE_DEVICES")
        self.assert_ok(result)
        self.assertEqual(sorted(line.partition("] ")[2] for line in result.out.splitlines()), ["0: 0,1", "1: 0,1"])

    def test_what_include_cannot_mean_is_refused_with_host_and_slot(self):
        for words, texts in ((["--include", "localhst:0"], ["--include", "'localhst'", "'localhost'"]),
                             (["--include", "localhost:4"], ["host 'localhost' has no slot 4: it has 4, 0 to 3"]),
                             (["--exclude", "localhost:x"], ["--exclude", "slot 'x' of host 'localhost' is not a number"]),
                             (["--include", "localhost", "--exclude", "127.0.0.1"], ["cluster.include (--include) chooses the hosts already"]),
                             (["--set", "cluster.gpus.localhost=0,a"], ["cluster.gpus.localhost", "'a' is no GPU"]),
                             (["--include", "localhost:1", "--set", "job.env.CUDA_VISIBLE_DEVICES=0"], ["CUDA_VISIBLE_DEVICES", "job.env sets it to '0'"])):
            self.assert_user_error(self.selected(*words), *texts)

    def test_a_launcher_that_has_a_list_for_each_rank_is_not_overruled(self):
        result = self.dtrun("--include", "localhost:0,1", "--set", "launcher.name=torchrun", "--set",
                            "launcher.options.virtual_local_rank=true", "true", env=self.environment(CUDA_VISIBLE_DEVICES="0,1"))
        self.assert_user_error(result, "--include", "cluster.gpus", "CUDA_VISIBLE_DEVICES", "launcher 'torchrun'")

    @unittest.skipIf(list(Path("/dev").glob("nvidia[0-9]*")), "this machine has GPUs")
    def test_gpus_given_to_a_host_that_has_none_are_told(self):
        result = self.dtrun("--set", "cluster.gpus.localhost=0,1", "-n", "1", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
        self.assert_ok(result)
        self.assertEqual(result.out, "0,1\n")
        self.assertRegex(result.err, r"warning    cluster.gpus gives '0,1', .*\(it has none\)")
        result = self.dtrun("--include", "localhost:0,1", "--set", "job.gpu_visibility=own", "true")
        self.assert_user_error(result, "job.gpu_visibility", "2 ranks", "cluster.gpus gives '0,1'")


if __name__ == "__main__":
    main()
