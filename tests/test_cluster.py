"""Jobs on several hosts, which are network namespaces with a name and an sshd each."""

import json
import os
import shutil
import signal
import subprocess
import sys

from support.cluster import ENOUGH_TO_JOIN, WAIT, ClusterTest, open_lab
from support.job import BUILD, RANK, main
from support.lab import command_of, environment_of

LAB = None


def setUpModule():
    global LAB
    LAB = open_lab()


class Runs(ClusterTest):
    def test_ranks_of_three_hosts_see_their_places(self):
        show = "echo $RANK $LOCAL_RANK $NODE_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $DTRUN_HOST_COUNT $(hostname) $MASTER_ADDR"
        job = self.start_cluster("sh", "-c", show)
        result = job.finish()
        self.assert_ok(result)
        for rank in range(6):
            host = rank // 2
            self.assertEqual(job.log(rank), f"{rank} {rank % 2} {host} 6 2 3 node{host} {LAB.address(0)}\n")
        self.assertIn("6 ranks on 3 hosts (node0 2, node1 2, node2 2)", result.err)

    def test_an_allreduce_runs_in_shared_memory_inside_and_over_the_backend_between(self):
        result = self.run_cluster(RANK)
        self.assert_ok(result)
        for rank in range(6):
            self.assertIn(f"rank {rank} of 6 over shm+gloo: sum 21\n", result.out)

    def test_the_log_has_lines_of_all_hosts(self):
        job = self.start_on(0, "--config", self.config(["true"]), env=self.environment(DTRUN_LOG="info"))
        self.assert_ok(job.finish())
        log = (job.run_dir() / "dtrun.log").read_text()
        for host in range(3):
            self.assertRegex(log, rf" node{host} info node: rank {2 * host} .*\d+: ")
        self.assertRegex(log, r"info membership: .*node1: .*ssh")

    def test_slots_count_where_the_number_of_ranks_is_not_set(self):
        file = self.config(["sh", "-c", "echo $RANK on $(hostname)"], hosts=["node0", "node1:3"])
        file.write_text(file.read_text().replace("processes_per_host = 2\n", ""))
        result = self.start_on(0, "--config", file).finish()
        self.assert_ok(result)
        for rank, host in enumerate(["node0", "node1", "node1", "node1"]):
            self.assertIn(f"[{rank}] {rank} on {host}\n", result.out)

    def test_a_hostfile_names_the_hosts(self):
        hostfile = self.write("node0 slots=1\nnode1 slots=2  # the fast one\n", "hosts")
        file = self.config(["sh", "-c", "echo $RANK on $(hostname)"])
        file.write_text("".join(line for line in file.read_text().splitlines(True)
                                if not line.startswith(("processes_per_host", "hosts"))))
        result = self.start_on(0, "--config", file, "--set", f"cluster.hostfile={hostfile}").finish()
        self.assert_ok(result)
        for rank, host in enumerate(["node0", "node1", "node1"]):
            self.assertIn(f"[{rank}] {rank} on {host}\n", result.out)

    def test_more_ranks_than_slots_need_to_be_asked_for(self):
        result = self.run_cluster("true", hosts=["node0", "node1:1"])
        self.golden_error(result, "node1", "cluster.oversubscribe")
        self.assert_ok(self.run_cluster("true", hosts=["node0", "node1:1"], more="oversubscribe = true\n"))

    def test_the_root_need_not_be_a_host(self):
        result = self.run_cluster("sh", "-c", "echo $RANK on $(hostname), $MASTER_ADDR", hosts=["node1", "node2"])
        self.assert_ok(result)
        self.assertIn(f"[0] 0 on node1, {LAB.address(1)}\n", result.out)
        self.assertIn(f"[3] 3 on node2, {LAB.address(1)}\n", result.out)

    def test_the_job_restarts_on_all_hosts(self):
        script = "echo generation $DTRUN_GENERATION; if [ $DTRUN_GENERATION = 0 ]; then [ $RANK = 5 ] && kill -9 $$; exec sleep 1000; fi"
        job = self.start_cluster("sh", "-c", script, more="[restart]\nmax = 1\n")
        result = job.finish()
        self.assert_ok(result)
        self.assertIn("after 1 restart", result.err)
        for rank in range(6):
            self.assertEqual((job.run_dir() / f"generation-1/rank-{rank}.out").read_text(), "generation 1\n")

    def test_a_lot_of_output_of_other_hosts_is_complete(self):
        job = self.start_cluster("seq", "1", "100000", ranks=1)
        self.assert_ok(job.finish())
        expected = "".join(f"{i}\n" for i in range(1, 100001))
        for rank in range(3):
            self.assertEqual(job.log(rank), expected)

    def test_no_secret_is_in_a_command_line_or_an_environment_there(self):
        job = self.start_cluster("sh", "-c", WAIT, ranks=1)
        for rank in range(3):
            job.wait_for_line(rank, "ready")
        agents, keys = [], []
        for pid in LAB.processes_on(1):  # those of the rank's own child are gone a moment later
            command = command_of(pid)
            environment = environment_of(pid)
            self.assertNotIn('"key"', command)
            if command.endswith("agent"):
                agents.append(pid)
                self.assertNotIn("DTRUN_", "\0".join(environment))
            keys += [part for part in environment if part.startswith("DTRUN_JOB_KEY")]
        self.assertTrue(agents)
        self.assertGreaterEqual(len(keys), 1)  # the rank's, for the store
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().code, 143)

    def test_ranks_of_every_host_are_bound_there(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("one processor cannot be shared out")
        show = [sys.executable, "-c", "import os; print('on', sorted(os.sched_getaffinity(0)))"]
        file = self.config(show)
        file.write_text(file.read_text().replace("[cluster]", 'bind = "compact"\n[cluster]'))
        job = self.start_on(0, "-v", "--config", file)
        result = job.finish()
        self.assert_ok(result)
        binding = next(line for line in result.err.splitlines() if line.split()[:1] == ["binding"])
        if "share" in binding:
            self.skipTest("two hardware threads of one core cannot be shared out")
        shown = [json.loads(job.log(rank).removeprefix("on ")) for rank in range(6)]
        for host in range(3):
            self.assertEqual(sorted(shown[2 * host] + shown[2 * host + 1]), cores)
        self.assertIn(", compact (", binding)

    def test_a_backend_on_another_one_is_the_same_on_every_host(self):
        plugins = self.folder / "plugins"
        plugins.mkdir(mode=0o755)
        shutil.copy(BUILD / "tests/plugins/libdtrun_backend_over.so", plugins)
        stack = f'[plugins]\npath = ["{plugins}"]\n[backend]\nname = "over"\n[backend.over]\non = "gloo"\n'
        result = self.run_cluster(RANK, ranks=1, more=f'{stack}[comm]\nlocal = "none"\n')
        self.assert_ok(result)
        self.assertEqual(result.out.count("over over > gloo: sum 6"), 3, str(result))
        result = self.run_cluster(RANK, ranks=1, more=f'{stack}[backend.gloo]\ninterface = "nosuch0"\n')
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.err, "on node1: .*backend 'gloo': interface 'nosuch0'")

    def test_plan_shows_all_hosts_and_connects_to_none(self):
        result = self.start_on(0, "plan", "--config", self.config(["true"], hosts=["node0", "no-such-host:3"])).finish()
        self.assert_ok(result)
        self.assertIn("rank 2 on no-such-host (local rank 0)", result.out)
        self.assertIn("⟦master_addr⟧", result.out)


class Failures(ClusterTest):
    def test_hosts_that_cannot_reach_each_other_are_named(self):
        job = self.start_cluster(RANK, "loop", ranks=1, more='[backend]\nname = "gloo"\ntimeout = "5s"\n')
        for rank in range(3):
            job.wait_for_line(rank, "looping")
        for here, there in (1, 2), (2, 1):
            self.lab.ip(self.lab.holders[here], "route", "add", "blackhole", f"{self.lab.address(there)}/32")
            self.addCleanup(self.lab.ip, self.lab.holders[here], "route", "del", "blackhole", f"{self.lab.address(there)}/32")
        result = job.finish()
        self.golden_lines(result.err, "hosts node1 and node2")
        self.assertEqual(self.last_verdict()["exit_class"], "network", str(result))

    def test_a_rank_that_fails_ends_all_hosts_and_is_named(self):
        for rank in (0, 5):
            with self.subTest(rank=rank):
                result = self.run_cluster(
                    "sh", "-c", f"echo ready; [ $RANK = {rank} ] && exit 7; exec sleep 1000")
                self.assertEqual(result.code, 7, str(result))
                self.assert_verdict(result, ending=(rank, 7), exit_code=7, exit_class="user-error", first_failed_rank=rank)

    def test_the_first_cause_is_named_though_a_victim_was_heard_of_first(self):
        result = self.run_cluster(RANK, "die", "in-allreduce", "5", str(int(signal.SIGKILL)))
        self.assertEqual(result.code, 137, str(result))
        self.assert_verdict(result, ending=(5, "SIGKILL"), exit_class="signal", first_failed_rank=5)

    def test_ctrl_c_and_usr1_reach_every_host(self):
        script = "trap 'echo usr1' USR1; trap 'echo int; exit 0' INT; echo ready; while :; do sleep 0.05; done"
        job = self.start_cluster("sh", "-c", script)
        for rank in range(6):
            job.wait_for_line(rank, "ready")
        job.signal(signal.SIGUSR1)
        for rank in range(6):
            job.wait_for_line(rank, "usr1")
        job.signal(signal.SIGINT)
        result = job.finish()
        self.assertEqual(result.code, 130, str(result))
        for rank in range(6):
            self.assertIn("int", job.log(rank))

    def test_one_grace_period_for_all_hosts(self):
        script = "trap '' TERM; echo ready; if [ $RANK = 5 ]; then read x < $GO; exit 7; fi; while :; do sleep 1000; done"
        os.mkfifo(self.folder / "go")
        file = self.config(["sh", "-c", script], more="")
        file.write_text(file.read_text().replace('grace = "3s"', f'grace = "300ms"\nenv = {{ GO = "{self.folder}/go" }}'))
        job = self.start_on(0, "--config", file)
        for rank in range(6):
            job.wait_for_line(rank, "ready")
        (self.folder / "go").write_text("x\n")
        result = job.finish()
        self.assertEqual(result.code, 7, str(result))
        self.assertEqual(result.err.count("within 300ms"), 1, result.err)
        self.assertRegex(result.err, "dtrun: ranks 0-4 .*300ms")


class Joining(ClusterTest):
    def refused(self, *texts, **more):
        result = self.run_cluster("true", **more)
        self.assertEqual(result.code, 2, str(result))
        for text in texts:
            self.assertIn(text, result.err)
        return result

    def test_a_host_that_cannot_be_resolved(self):
        self.refused("dtrun: host nowhere: ssh: ", "--hosts or cluster.hosts",
                     hosts=["node0", "node1", "nowhere"])

    def test_hosts_that_cannot_be_resolved_are_told_together(self):
        result = self.refused("dtrun: host nowhere", "; the same for ", hosts=["node0", "nowhere0", "nowhere1", "nowhere2"])
        line = next(line for line in result.err.splitlines() if "Could not resolve" in line)
        for name in ("nowhere0", "nowhere1", "nowhere2"):
            self.assertIn(name, line, result.err)
        self.assertEqual(result.err.count("Could not resolve"), 1, result.err)

    def test_a_host_name_that_resolves_late(self):
        for limit in ENOUGH_TO_JOIN:
            file = self.config(["true"], hosts=["node0", "node1", "nowhere"], more=f'join_timeout = "{limit}"\n')
            result = self.start_on(0, "--config", file, env=self.environment(KUBERNETES_SERVICE_HOST="10.0.0.1")).finish()
            self.assertEqual(result.code, 2, str(result))
            if "missing: node1" not in result.err:
                break
        self.golden_lines(result.err, "2 of 3", "nowhere")
        self.assertEqual(self.last_verdict()["exit_class"], "rendezvous")

    def test_a_wrong_ssh_key(self):
        shell = LAB.shell()
        wrong = [*shell[:1], "-o", f"IdentityFile={LAB.folder}/stranger", "-F", shell[2].replace("ssh_config", "strange_config"), *shell[3:]]
        (LAB.folder / "strange_config").write_text(
            (LAB.folder / "ssh_config").read_text().replace(f"IdentityFile {LAB.folder}/id", "AddressFamily any"))
        file = self.config(["true"])
        file.write_text(file.read_text().replace(json.dumps(shell), json.dumps(wrong)))
        result = self.start_on(0, "--config", file).finish()
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("Permission denied", result.err)
        self.assertRegex(result.err, "host node[12]: ")

    def test_a_host_without_dtrun(self):
        result = self.refused("No such file", "cluster.dtrun",
                              more='dtrun = "/nowhere/dtrun"\n')
        self.assertRegex(result.err, "host node[12]: ")

    def test_hosts_that_are_one_machine(self):
        self.refused("are one machine (node1)", "cluster.oversubscribe", hosts=["node0", "node1", LAB.address(1)])

    def test_a_folder_that_is_missing_there(self):
        # Present on node0 only: a mount that the others do not see.
        place = self.folder / "only-here"
        place.mkdir()
        subprocess.run([*LAB.enter(0), "mount", "-t", "tmpfs", "none", place], check=True)
        self.addCleanup(subprocess.run, [*LAB.enter(0), "umount", place])
        subprocess.run([*LAB.enter(0), "mkdir", f"{place}/work"], check=True)
        file = self.config(["/bin/true"])
        file.write_text(file.read_text().replace("[cluster]", f'cwd = "{place}/work"\n[cluster]'))
        result = self.start_on(0, "--config", file).finish()
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.err, f"host node[12]: .*{place}/work")

    def test_one_machine_can_be_several_hosts_when_asked(self):
        result = self.run_cluster("sh", "-c", "echo $NODE_RANK", ranks=1, hosts=["node1", LAB.address(1)],
                                  more="oversubscribe = true\n")
        self.assert_ok(result)
        self.assertIn("[1] 1\n", result.out)


if __name__ == "__main__":
    main()
