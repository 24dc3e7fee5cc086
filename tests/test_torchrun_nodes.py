"""torchrun's command lines on several nodes: the same command on each, as its users have it."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from support.job import DTRUN, Job, end, main, until
from support.cluster import ClusterTest, open_lab
from support.lab import listens

LAB = None
SHOW = ("import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], 'local', os.environ['LOCAL_RANK'],"
        " 'node', os.environ['GROUP_RANK'], 'of', os.environ['GROUP_WORLD_SIZE'], 'at', os.environ['MASTER_ADDR'],"
        " os.uname().nodename)\n")


def setUpModule():
    global LAB
    LAB = open_lab()


class NodesTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.id = f"--rdzv-id={uuid.uuid4()}"
        self.give_home(self.folder)

    def give_home(self, folder, key=None):
        """A home folder for environment(), with the user's key unless it is empty."""
        self.home = folder
        (folder / ".dtrun").mkdir(mode=0o700, exist_ok=True)
        file = folder / ".dtrun" / "key"
        file.touch(0o600)
        file.write_text(secrets.token_hex(32) if key is None else key)
        if key == "":
            file.unlink()

    def environment(self, **more):
        environment = super().environment(**{"PYTHON_EXEC": "/usr/bin/python3", "HOME": str(self.home), **more})
        return {k: v for k, v in environment.items() if not k.startswith(("PET_", "TORCHELASTIC_"))} | more

    def torchrun(self, host, *arguments, env=None):
        return self.start_on(host, "torchrun", *arguments, env=env)

    def script(self, text=SHOW):
        return self.write(text, "train.py")

    def assert_table(self, result, nodes=3, ranks=2):
        for rank in range(nodes * ranks):
            node = rank // ranks
            self.assertIn(f"rank {rank} of {nodes * ranks} local {rank % ranks} node {node} of {nodes} "
                          f"at {LAB.address(0)} node{node}\n", result.out)


class Rendezvous(NodesTest):
    def test_static_nodes_have_the_number_that_they_are_given(self):
        script = self.script()
        jobs = [self.torchrun(i, "--nnodes=3", "--nproc-per-node=2", f"--node-rank={i}", "--master-addr=node0",
                              "--master-port=29501", script) for i in (2, 0, 1)]
        results = [job.finish() for job in jobs]
        for result in results:
            self.assert_ok(result)
        self.assert_table(results[1])
        self.assertEqual(results[0].out + results[2].out, "")

    def test_the_master_may_be_an_ipv6_address(self):
        script = self.script("import os\nprint('master', os.environ['MASTER_ADDR'])\n")
        for address in ("::1", "[::1]"):  # where both nodes are
            with self.subTest(address=address):
                jobs = []
                for node in range(2):
                    jobs.append(self.torchrun(0, "--nnodes=2", f"--node-rank={node}", f"--master-addr={address}",
                                              "--master-port=29400", script))
                for job in jobs:
                    self.assert_ok(job.finish())

    def test_c10d_makes_the_node_of_the_endpoint_the_root(self):
        script = self.script()
        self.give_home(self.folder, key="")  # the run id is their secret
        jobs = [self.torchrun(i, "--nnodes=3", "--nproc-per-node=2", "--rdzv-backend=c10d", self.id,
                              "--rdzv-endpoint=node0:29400", script) for i in (1, 2, 0)]
        results = [job.finish() for job in jobs]
        for result in results:
            self.assert_ok(result)
            self.golden_lines(result.err, "--rdzv-id")
        self.assert_table(results[2])

    def test_two_nodes_may_be_one_machine(self):
        script = self.script()
        rendezvous = {"c10d": ["--rdzv-backend=c10d", self.id, "--rdzv-endpoint=node0:29400"],
                      "static": ["--master-addr=node0", "--master-port=29400"]}
        for backend, words in rendezvous.items():
            with self.subTest(backend=backend):
                jobs = []
                for node in range(2):
                    number = [f"--node-rank={node}"] if backend == "static" else []
                    jobs.append(self.torchrun(0, "--nnodes=2", "--nproc-per-node=2", *words, *number, script))
                    if node == 0:
                        until(lambda: listens(jobs[0].pid, 29400), "the root")
                results = [job.finish() for job in jobs]
                for result in results:
                    self.assert_ok(result)
                for rank in range(4):
                    self.assertIn(f"rank {rank} of 4 local {rank % 2} node {rank // 2} of 2 ", results[0].out)

    def test_a_node_tells_its_user_what_happens_there_and_what_differs_from_the_root(self):
        script = self.script("import os, sys\nos.environ['RANK'] == '1' and sys.exit(3)\nimport time; time.sleep(1000)\n")
        words = ["--nnodes=2", "--master-addr=node0", "--master-port=29400"]
        root = self.torchrun(0, "--node-rank=0", *words, script, "--lr=1")
        other = self.torchrun(1, "--node-rank=1", *words, "--nproc-per-node=2", script, "--lr=2",
                              env=self.environment(NCCL_DEBUG="INFO"))
        there, here = other.finish(), root.finish()
        self.assertEqual((there.code, here.code), (1, 1), str(there) + str(here))
        self.golden_lines(there.err, "node0 port 29400")
        self.golden_lines(there.err, "node0 (")
        self.golden_lines(there.err, "rank 1 of 2", "node0")
        self.golden_lines(there.err, "verdict.json", "code 3", "node0")
        for err in (there.err, here.err):
            self.golden_lines(err, f"`{script} --lr=2`")
            self.golden_lines(err, "note", "2 ranks")
            self.golden_lines(err, "NCCL_DEBUG=INFO")

    def test_an_address_that_leads_nowhere_is_told_of_on_both_sides(self):
        words = ["--nnodes=2", "--master-port=29400", self.script()]
        for address, root_says, node_says in (
                ("nosuch.invalid", "'nosuch.invalid' does not resolve", "'nosuch.invalid' does not resolve"),
                ("10.255.255.1", "the address 10.255.255.1", "cannot reach 10.255.255.1")):
            with self.subTest(address=address):
                jobs = [self.torchrun(i, f"--node-rank={i}", f"--master-addr={address}", *words) for i in range(2)]
                for job, says in zip(jobs, (root_says, node_says)):
                    line = self.first_line_with(job, says)
                    self.assertIn("--master-addr", line)
                for job in jobs:
                    job.signal(signal.SIGTERM)
                    job.finish()

    def first_line_with(self, job, text):
        for line in job.process.stderr:
            if text in line:
                return line
        self.fail(f"it never said: {text}")

    def test_two_nodes_of_one_number_are_told_apart(self):
        words = ["--nnodes=2", "--node-rank=0", "--master-addr=node0", "--master-port=29400", self.script()]
        root = self.torchrun(0, *words)
        until(lambda: listens(root.pid, 29400), "the root")
        second = self.torchrun(0, *words).finish()
        self.assertEqual(second.code, 2, str(second))
        self.golden_lines(second.err, "(--node-rank, --host-index)")
        root.signal(signal.SIGTERM)
        root.finish()

    def test_two_nodes_of_one_machine_may_start_in_the_same_instant(self):
        words = ["--nnodes=2", "--rdzv-backend=c10d", self.id, "--rdzv-endpoint=node0:29400", "--no-python",
                 "sh", "-c", "echo node $GROUP_RANK of $GROUP_WORLD_SIZE"]
        for _ in range(5):
            results = [job.finish() for job in [self.torchrun(0, *words) for _ in range(2)]]
            for result in results:
                self.assert_ok(result)
            for node in range(2):
                self.assertIn(f"node {node} of 2\n", results[0].out + results[1].out)

    def test_the_variables_of_a_kubeflow_pod_will_do(self):
        script = self.script()
        jobs = [self.torchrun(i, script, env=self.environment(
            PET_NNODES="3", PET_NPROC_PER_NODE="2", PET_NODE_RANK=str(i), PET_MASTER_ADDR="node0", PET_MASTER_PORT="23456"))
            for i in range(3)]
        results = [job.finish() for job in jobs]
        for result in results:
            self.assert_ok(result)
        self.assert_table(results[0])

    def test_a_node_of_another_job_is_turned_away(self):
        script = self.script()
        words = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0:29400"]
        root = self.torchrun(0, *words, "--rdzv-id=a", script)
        stranger = self.torchrun(1, *words, "--rdzv-id=b", script).finish()
        self.assertEqual(stranger.code, 2, str(stranger))
        self.golden_lines(stranger.err, "with --rdzv-id=b")
        friend = self.torchrun(2, *words, "--rdzv-id=a", script)
        self.assert_ok(root.finish())
        self.assert_ok(friend.finish())

    def test_plan_shows_nodes_that_have_not_come(self):
        result = self.torchrun(0, script := self.script(), env=self.environment(PET_NNODES="1")).finish()
        self.assert_ok(result)
        result = self.start_on(0, "plan", "torchrun", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0",
                               script).finish()
        self.assert_ok(result)
        self.assertIn("rank 1 on host1", result.out)


STRANGER = 4242


class Strangers(NodesTest):
    """Another user of a host, and another host, know everything but the secret."""

    STATIC = ["--nnodes=2", "--master-port=29400"]

    def setUp(self):
        super().setUp()
        self.give_home(self.folder, key="")
        self.theirs = Path(tempfile.mkdtemp(prefix="dtrun-stranger-"))
        self.addCleanup(shutil.rmtree, self.theirs)
        os.chown(self.theirs, STRANGER, STRANGER)
        self.evil = self.theirs / "train.py"  # a job of the same name
        self.evil.write_text("import os\nprint('evil runs as', os.getuid(), flush=True)\n")
        self.evil.chmod(0o644)

    def as_stranger(self, host, *command):
        """Starts a command as a user of their own on a host; they know the way to build what they like."""
        environment = self.environment(HOME=str(self.theirs), XDG_RUNTIME_DIR=str(self.theirs), TMPDIR=str(self.theirs))
        process = subprocess.Popen(
            [*LAB.enter(host, self.theirs), "setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups",
             *map(str, command)], env=environment, cwd=self.theirs, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(end, process)
        return Job(process, self.theirs)

    def leave(self, job):
        job.signal(signal.SIGTERM)
        return job.finish()

    def test_without_a_secret_every_node_is_refused_with_what_to_do(self):
        script = self.script()
        c10d = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0:29400"]
        for words in (["--node-rank=0", *self.STATIC, "--master-addr=node0"],
                      ["--node-rank=1", *self.STATIC, "--master-addr=node0"], c10d, [*c10d, "--rdzv-id=none"],
                      [*c10d, "--rdzv-id=job17"]):
            for host in range(2):
                with self.subTest(words=words, host=host):
                    result = self.torchrun(host, *words, script).finish()
                    self.assertEqual(result.code, 2, str(result))
                    self.assertEqual(result.out, "")
                    for way in ("~/.dtrun/key", "DTRUN_CLUSTER_KEY", "uuidgen", "insecure=true"):
                        self.assertIn(way, result.err)

    def test_a_key_that_others_may_read_is_refused(self):
        self.give_home(self.folder)
        key = self.folder / ".dtrun" / "key"
        words = ["--node-rank=0", *self.STATIC, "--master-addr=node0", self.script()]
        key.chmod(0o644)
        result = self.torchrun(0, *words).finish()
        self.assertEqual(result.code, 2, str(result))
        self.assertIn(f"chmod 600 '{key}'", result.err)
        key.chmod(0o600)
        os.chown(key, STRANGER, STRANGER)
        result = self.torchrun(0, *words).finish()
        self.assertEqual(result.code, 2, str(result))
        self.golden_lines(result.err, f"user {STRANGER}")

    def test_doing_without_is_said_on_every_node(self):
        words = [*self.STATIC, "--master-addr=node0", "--rdzv-conf=insecure=true", self.script()]
        jobs = [self.torchrun(i, f"--node-rank={i}", *words) for i in range(2)]
        for job in jobs:
            result = job.finish()
            self.assert_ok(result)
            self.golden_lines(result.err, "insecure=true")

    def test_another_user_cannot_be_the_root_of_nodes_on_one_host(self):
        words = [*self.STATIC, "--master-addr=127.0.0.1"]
        thief = self.as_stranger(0, DTRUN, "torchrun", "--node-rank=0", *words, self.evil)
        until(lambda: listens(LAB.holders[0], 29400), "the thief to listen")
        victim = self.torchrun(0, "--node-rank=1", *words, self.script()).finish()
        self.assertEqual(victim.code, 2, str(victim))
        self.assertIn("key", victim.err)
        self.assertNotIn("evil", self.leave(thief).out + victim.out)

    def test_nor_join_them(self):
        words = [*self.STATIC, "--master-addr=127.0.0.1"]
        root = self.torchrun(0, "--node-rank=0", *words, self.script())
        until(lambda: listens(root.pid, 29400), "the root")
        thief = self.as_stranger(0, DTRUN, "torchrun", "--node-rank=1", *words, self.evil).finish()
        self.assertEqual(thief.code, 2, str(thief))
        self.assert_ok(self.torchrun(0, "--node-rank=1", *words, self.script()).finish())
        result = root.finish()
        self.assert_ok(result)
        self.assertIn("rank 1 of 2", result.out)

    def test_a_stranger_elsewhere_neither_leads_nor_joins(self):
        self.give_home(self.folder)
        words = [*self.STATIC, "--master-addr=node0"]
        insecure = ["--rdzv-conf=insecure=true"]
        thief = self.as_stranger(0, DTRUN, "torchrun", "--node-rank=0", *words, *insecure, self.evil)
        until(lambda: listens(LAB.holders[0], 29400), "the thief to listen")
        victim = self.torchrun(1, "--node-rank=1", *words, self.script()).finish()
        self.assertEqual(victim.code, 2, str(victim))
        self.golden_lines(victim.err, f"{self.folder}/.dtrun/key")
        self.assertNotIn("evil", self.leave(thief).out + victim.out)

        root = self.torchrun(0, "--node-rank=0", *words, self.script())
        until(lambda: listens(root.pid, 29400), "the root")
        thief = self.as_stranger(2, DTRUN, "torchrun", "--node-rank=1", *words, *insecure, self.evil).finish()
        self.assertEqual(thief.code, 2, str(thief))
        self.assert_ok(self.torchrun(1, "--node-rank=1", *words, self.script()).finish())
        result = root.finish()
        self.assert_ok(result)
        self.golden_lines(result.err, " key ")

    def test_a_stranger_cannot_keep_a_root_from_being_elected(self):
        self.give_home(self.folder)
        squatter = self.as_stranger(0, sys.executable, "-c", (
            "import socket, time\ns = []\n"
            "for name in ('dtrun-root-0-29400', 'dtrun-root-4242-29400'):\n"
            "    s.append(socket.socket(socket.AF_UNIX)); s[-1].bind('\\0' + name)\n"
            "print('bound', flush=True); time.sleep(1000)"))
        self.assertEqual(squatter.process.stdout.readline(), "bound\n")
        words = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-id=none", "--rdzv-endpoint=node0:29400",
                 "--rdzv-conf=join_timeout=30", "--no-python", "echo", "ran"]
        results = [job.finish() for job in [self.torchrun(0, *words) for _ in range(2)]]
        for result in results:
            self.assert_ok(result)
        self.assertEqual((results[0].out + results[1].out).count("ran"), 2)
        squatter.signal(signal.SIGKILL)
        squatter.process.communicate()


class Running(NodesTest):
    def start(self, script, *options, nodes=3, hosts=range(3)):
        return [self.torchrun(i, f"--nnodes={nodes}", "--rdzv-backend=c10d", "--rdzv-endpoint=node0:29400", "--rdzv-id=j",
                              "--rdzv-conf=last_call_timeout=1", *options, script) for i in hosts]

    def test_a_failure_ends_every_node_at_once_with_code_1(self):
        script = self.script("import os, time\nif os.environ['RANK'] == '2': raise SystemExit(9)\ntime.sleep(1000)\n")
        results = [job.finish() for job in self.start(script)]
        self.assertEqual([result.code for result in results], [1, 1, 1])
        self.assertRegex(results[0].err, r"(?s)Root Cause.*host      : node2.*rank      : 2 \(local_rank: 0\).*exitcode  : 9")

    def test_logs_of_nodes_stand_beside_each_other(self):
        results = [job.finish() for job in self.start(self.script(), "--nproc-per-node=2", "-r", "3", "--log-dir",
                                                      self.folder / "logs")]
        for result in results:
            self.assert_ok(result)
        run, = (self.folder / "logs").glob("j_*")
        found = {str(file.relative_to(run)): file.read_text() for file in run.glob("attempt_0/**/stdout.log")}
        self.assertEqual(sorted(found), sorted(
            [f"attempt_0/{local}/stdout.log" for local in (0, 1)] +
            [f"attempt_0/node_{node}/{local}/stdout.log" for node in (1, 2) for local in (0, 1)]))
        self.assertIn("rank 5 of 6 local 1", found["attempt_0/node_2/1/stdout.log"])

    def test_max_restarts_starts_all_nodes_again(self):
        script = self.script("import os\n"
                             "print('attempt', os.environ['TORCHELASTIC_RESTART_COUNT'])\n"
                             "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and os.environ['RANK'] == '1':\n"
                             "    raise SystemExit(3)\n")
        results = [job.finish() for job in self.start(script, "--max-restarts=1", "-r", "1", "--log-dir",
                                                      self.folder / "logs")]
        for result in results:
            self.assert_ok(result)
        run, = (self.folder / "logs").glob("j_*")
        for folder in ("0", "node_1/0", "node_2/0"):
            self.assertEqual((run / "attempt_1" / folder / "stdout.log").read_text(), "attempt 1\n")

    def test_two_nodes_of_one_machine_keep_the_names_by_which_they_joined(self):
        script = self.script("import os, time\nwhile not os.path.exists('end'): time.sleep(0.05)\n")
        root, = self.start(script, "--log-dir", self.folder / "logs", nodes="1:2", hosts=[0])
        plans = lambda: [json.loads(plan.read_text()) for plan in (self.folder / "logs").glob("**/plan.json")]
        until(plans, "the first node alone")
        other, = self.start(script, nodes="1:2", hosts=[0])
        until(lambda: any(plan["world_size"] == 2 for plan in plans()), "the second node")
        (self.folder / "end").touch()
        result = root.finish()
        self.assert_ok(result)
        self.assert_ok(other.finish())
        [both] = [plan for plan in plans() if plan["world_size"] == 2]
        names = [host["name"] for host in both["hosts"]]
        self.assertEqual(names, [names[0], names[0] + "#1"])
        self.assertIn(f"host {names[1]} has joined", result.err)

    def test_nodes_join_and_leave_an_elastic_job(self):
        script = self.script("import os, time\nprint(os.environ['WORLD_SIZE'], 'ranks', flush=True)\n"
                             "while not os.path.exists('end'): time.sleep(0.05)\n")
        root, = self.start(script, "-r", "1", "--log-dir", self.folder / "logs", nodes="1:3", hosts=[0])
        def said(attempt):
            files = list((self.folder / "logs").glob(f"j_*/attempt_{attempt}/**/stdout.log"))
            return [file.read_text() for file in files]
        until(lambda: said(0) == ["1 ranks\n"], "the first node alone")
        other, = self.start(script, nodes="1:3", hosts=[1])
        until(lambda: said(1) == ["2 ranks\n"] * 2, "the second node")
        other.signal(signal.SIGTERM)
        until(lambda: said(2) == ["1 ranks\n"], "the second node to leave")
        self.assertEqual(other.finish().code, 1)
        (self.folder / "end").touch()
        self.assert_ok(root.finish())


if __name__ == "__main__":
    main()
