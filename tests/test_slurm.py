"""Jobs in allocations of a real Slurm: slurmctld, and a slurmd on each of three hosts with a network of their own."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

from support import lab, slurm
from support.job import DTRUN, RANK, Job, JobTest, end, main, skip, until
from support.lab import Lab, command_of, find

LAB = SLURM = None
WAIT = "echo ready; while :; do sleep 0.05; done"


def setUpModule():
    global LAB, SLURM
    reason = lab.why_not() or slurm.why_not()
    if reason:
        skip(reason)
    folder = tempfile.TemporaryDirectory(prefix="dtrun-slurm-")
    unittest.addModuleCleanup(folder.cleanup)
    LAB = Lab(folder.name)
    unittest.addModuleCleanup(LAB.close)
    SLURM = slurm.Slurm(LAB)


class SlurmTest(JobTest):
    def tearDown(self):
        SLURM.cancel_all()
        super().tearDown()

    def environment(self, **more):
        return SLURM.environment(super().environment(**more))

    def config(self, *command, cluster="", more=""):
        return self.write(f'[job]\ncommand = {json.dumps([str(word) for word in command])}\ngrace = "3s"\n'
                          f'[cluster]\nfrom = "slurm"\n{cluster}\n{more}')

    def salloc(self, *words, host=0):
        """`words` in an allocation, on a host that may be a node of it."""
        process = subprocess.Popen([*LAB.enter(host, self.folder), "salloc", "--quiet", *map(str, words)],
                                   cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        self.addCleanup(end, process)
        return Job(process, self.folder)

    def processes(self, text):
        found = []
        for i in range(3):
            found += [pid for pid in LAB.processes_on(i) if text in command_of(pid)]
        return found


class Runs(SlurmTest):
    def test_an_allocation_is_the_cluster_and_its_tasks_are_the_ranks(self):
        job = self.salloc("-N3", "--ntasks-per-node=2", DTRUN, "--config", self.config(RANK))
        result = job.finish()
        self.assert_ok(result)
        self.assertIn("6 ranks on 3 hosts (node0 2, node1 2, node2 2)", result.err)
        for rank in range(6):
            self.assertIn(f"rank {rank} of 6 over shm+gloo: sum 21\n", result.out)

    def test_ranks_run_in_the_order_of_the_users_hostfile(self):
        order = self.write("node2\nnode0\nnode1\n", "order")
        self.addCleanup(os.environ.pop, "SLURM_HOSTFILE", None)
        os.environ["SLURM_HOSTFILE"] = str(order)
        show = "echo rank $RANK on $(hostname) of $SLURMD_NODENAME"
        result = self.salloc("-N3", "-n3", "-m", "arbitrary", DTRUN, "--config",
                             self.config("sh", "-c", show)).finish()
        self.assert_ok(result)
        self.assertIn("3 ranks on 3 hosts (node2 1, node0 1, node1 1)", result.err)

    def test_control_goes_through_srun_where_packets_to_the_root_get_lost(self):
        nft = [*LAB.enter(0), find("nft")]
        rules = "table inet f {\n chain c {\n type filter hook input priority 0;\n tcp dport 29690 drop\n }\n}\n"
        subprocess.run([*nft, "-f", "-"], input=rules, text=True, check=True)
        self.addCleanup(subprocess.run, [*nft, "delete", "table", "inet", "f"], check=True)
        result = self.salloc("-N3", "--ntasks-per-node=1", DTRUN, "--config",
                             self.config(RANK, cluster="root_port = 29690")).finish()
        self.assert_ok(result)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3 over shm+gloo: sum 6\n", result.out)
        for host in ("node1", "node2"):
            self.golden_lines(result.err, f"dtrun: {host}: ", "srun")

    def test_a_batch_script_runs_on_its_first_node(self):
        file = self.config("sh", "-c", "echo $RANK on $(hostname)")
        script = self.write(f"#!/bin/sh\nexec {DTRUN} --config {file}\n", "script")
        done = subprocess.run([*LAB.enter(1, self.folder), "sbatch", "--wait", "--parsable", "-N2", "-w", "node[1-2]",
                               f"--output={self.folder}/out", str(script)], cwd=self.folder, env=self.environment(),
                              capture_output=True, text=True, timeout=120)
        text = (self.folder / "out").read_text()
        self.assertEqual(done.returncode, 0, done.stderr + text)
        self.assertIn("[0] 0 on node1\n", text)
        self.assertIn("[1] 1 on node2\n", text)

    def test_srun_may_start_dtrun_on_every_node_itself(self):
        file = self.config("sh", "-c", "echo $RANK on $(hostname)", cluster="connect = 'manual'")
        job = self.salloc("-N3", "sh", "-c",
                          f"DTRUN_CLUSTER_KEY=$(openssl rand -hex 32) exec srun --ntasks-per-node=1 {DTRUN} --config {file}")
        result = job.finish()
        self.assert_ok(result)
        for rank in range(3):
            self.assertIn(f"[{rank}] {rank} on node{rank}\n", result.out)

    def test_the_root_need_not_be_a_node(self):
        job = self.salloc("-N2", "-w", "node[1-2]", DTRUN, "--config", self.config("sh", "-c", "echo $RANK on $(hostname)"))
        result = job.finish()
        self.assert_ok(result)
        self.assertIn("[0] 0 on node1\n", result.out)
        self.assertIn("[1] 1 on node2\n", result.out)

    def test_ranks_take_themselves_for_none_of_slurms_tasks(self):
        job = self.salloc("-N2", DTRUN, "--config", self.config(
            "sh", "-c", "echo job $$SLURM_JOB_ID node $SLURMD_NODENAME; env | grep -E '^SLURM_(PROCID|NTASKS|STEP_)'; true"))
        result = job.finish()
        self.assert_ok(result)
        self.assertNotIn("SLURM_PROCID", result.out)
        self.assertNotIn("SLURM_STEP", result.out)
        self.assertIn("node node1\n", job.log(1))

    def test_the_slurm_launcher_makes_ranks_tasks(self):
        show = "echo $SLURM_PROCID of $SLURM_NTASKS, $SLURM_LOCALID on $SLURM_NODEID, $SLURM_TASKS_PER_NODE, $SLURM_GTIDS"
        result = self.salloc("-N3", "--ntasks-per-node=2", DTRUN, "--config", self.config(
            "sh", "-c", show, more='[launcher]\nname = "slurm"')).finish()
        self.assert_ok(result)
        for rank in range(6):
            node = rank // 2
            self.assertIn(f"[{rank}] {rank} of 6, {rank % 2} on {node}, 2(x3), {2 * node},{2 * node + 1}\n", result.out)

    def test_the_slurm_launcher_needs_an_allocation(self):
        self.assert_user_error(self.dtrun("--set", "launcher.name=slurm", "--", "true"), "SLURM_JOB_ID is unset")

    def test_the_key_is_in_no_command_line(self):
        job = self.salloc("-N2", DTRUN, "--config", self.config("sh", "-c", WAIT))
        for rank in range(2):
            job.wait_for_line(rank, "ready")
        steps = self.processes("srun")
        self.assertTrue(steps)
        for pid in steps:
            self.assertNotIn("key", command_of(pid))
        job.signal(signal.SIGKILL)


class Failures(SlurmTest):
    def test_an_allocation_smaller_than_the_config(self):
        result = self.salloc("-N2", DTRUN, "--config", self.config("true", cluster="host_count = 3")).finish()
        self.golden_error(result, "3 hosts", "node0:1, node1:1")

    def test_more_ranks_than_tasks(self):
        result = self.salloc("-N2", "--ntasks-per-node=1", DTRUN, "--config", self.config("true"), "--set",
                             "job.processes_per_host=2").finish()
        self.golden_error(result, "2 ranks", "node0", "slurm")

    def test_no_allocation(self):
        file = self.config("true")
        process = subprocess.run([*LAB.enter(0), str(DTRUN), "--config", str(file)], env=self.environment(),
                                 capture_output=True, text=True)
        self.assertEqual(process.returncode, 2)
        self.assertIn("SLURM_JOB_NODELIST is unset", process.stderr)

    def test_dtrun_that_is_not_there(self):
        result = self.salloc("-N2", DTRUN, "--config", self.config("true", cluster='dtrun = "/nowhere/dtrun"')).finish()
        self.assert_user_error(result, "node1", "/nowhere/dtrun")

    def test_a_rank_that_fails_ends_all_and_is_named(self):
        result = self.salloc("-N3", DTRUN, "--config", self.config(
            "sh", "-c", "[ $RANK = 2 ] && exit 7; exec sleep 1000")).finish()
        self.assertEqual(result.code, 7, str(result))
        self.assert_verdict(result, ending=(2, 7), first_failed_rank=2)
        self.assertNotIn("srun: error", result.err)

    def kill_one(self, find):
        job = self.salloc("-N3", DTRUN, "--config", self.config("sh", "-c", "setsid sleep 1000 & " + WAIT))
        for rank in range(3):
            job.wait_for_line(rank, "ready")
        victims = find()
        self.assertTrue(victims)
        begin = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(victims[0], signal.SIGKILL)
        until(lambda: not self.processes("sleep"), "all ranks to end")
        self.assertLess(time.monotonic() - begin, 30)
        return job.finish()

    def test_a_killed_agent_ends_all(self):
        result = self.kill_one(lambda: [p for p in LAB.processes_on(1) if command_of(p) == f"{DTRUN} agent"])
        self.assertEqual(result.code, 1, str(result))
        self.assert_verdict(result, lost_host="node1")

    def test_a_killed_srun_ends_all(self):
        result = self.kill_one(lambda: self.processes("srun --quiet"))
        self.assertEqual(result.code, 1, str(result))
        self.assertIsNotNone(self.last_verdict()["lost_host"], str(result))

    def test_a_killed_root_ends_all(self):
        self.kill_one(lambda: [p for p in LAB.processes_on(0) if command_of(p).startswith(f"{DTRUN} --config")][-1:])

    def test_scancel_ends_all(self):
        job = self.salloc("-N3", DTRUN, "--config", self.config("sh", "-c", WAIT))
        for rank in range(3):
            job.wait_for_line(rank, "ready")
        SLURM.cancel_all()
        until(lambda: not self.processes("sleep"), "all ranks to end")


if __name__ == "__main__":
    main()
