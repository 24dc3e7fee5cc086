"""Agents that are started by hand on each host (cluster.connect = "manual")."""

import os
import secrets
import signal
import subprocess
import sys

from support.cluster import ENOUGH_TO_JOIN, WAIT, ClusterTest, open_lab
from support.job import RANK, main, until

LAB = None


def setUpModule():
    global LAB
    LAB = open_lab()


class Manual(ClusterTest):
    def manual(self, *command, port=None, more=""):
        key = self.write(secrets.token_hex(32), "key")
        key.chmod(0o600)
        return self.config(command, more=f'connect = "manual"\nroot = "{LAB.address(0)}:{port or 29400}"\n'
                           f'key_file = "{key}"\n{more}')

    def test_hosts_that_are_started_by_hand(self):
        file = self.manual(RANK)
        jobs = [self.start_on(i, "--config", file, "--host-index", i, "--set", f"job.grace={9 + i}s") for i in (1, 2, 0)]
        results = [job.finish() for job in jobs]
        for result in results:
            self.assert_ok(result)
        for result in (results[0], results[2]):
            self.assertIn("root's options: job.grace is \"10s\" here, \"9s\" on the root", result.err)
        self.assertIn("rank 5 of 6 over shm+gloo: sum 21", results[2].out)

    def test_every_host_returns_the_code_of_the_job(self):
        file = self.manual("sh", "-c", "[ $RANK = 3 ] && exit 9; exec sleep 1000")
        jobs = [self.start_on(i, "--config", file, "--host-index", i) for i in range(3)]
        self.assertEqual([job.finish().code for job in jobs], [9, 9, 9])

    def test_an_interrupt_anywhere_ends_the_job_everywhere(self):
        file = self.manual("sh", "-c", WAIT)
        jobs = [self.start_on(i, "--config", file, "--host-index", i) for i in range(3)]
        for rank in range(6):
            until(lambda: "ready" in jobs[0].log(rank), f"rank {rank}")
        jobs[2].signal(signal.SIGTERM)
        self.assertEqual([job.finish().code for job in jobs], [143, 143, 143])

    def test_a_wrong_key_is_refused_and_disturbs_no_host(self):
        file = self.manual("true", more='join_timeout = "60s"\n')
        strange = self.write(secrets.token_hex(32), "strange-key")
        strange.chmod(0o600)
        root = self.start_on(0, "--config", file, "--host-index", 0)
        result = self.start_on(1, "--config", file, "--host-index", 1, "--set", f"cluster.key_file={strange}").finish()
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("key", result.err)
        others = [self.start_on(i, "--config", file, "--host-index", i) for i in (1, 2)]
        for job in [root, *others]:
            self.assert_ok(job.finish())

    def test_garbage_to_the_control_port_changes_nothing(self):
        file = self.manual("true")
        root = self.start_on(0, "--config", file, "--host-index", 0)
        script = ("import socket,sys,time\n"
                  "for i in range(600):\n"
                  "    try: s = socket.create_connection((sys.argv[1], 29400), 5); break\n"
                  "    except OSError: time.sleep(0.1)\n"
                  "s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n' + bytes(range(256)) * 100)\n"
                  "print(len(s.recv(100)) >= 0)\n")
        done = subprocess.run([*LAB.enter(1), "python3", "-c", script, LAB.address(0)], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)  # a reset is as good an answer
        others = [self.start_on(i, "--config", file, "--host-index", i) for i in (1, 2)]
        result = root.finish()
        self.assert_ok(result)
        self.assertIn("refused", result.err)
        for job in others:
            self.assert_ok(job.finish())

    def test_two_hosts_with_one_index(self):
        file = self.manual("true")
        root = self.start_on(0, "--config", file, "--host-index", 0)
        first = self.start_on(1, "--config", file, "--host-index", 1)
        second = self.start_on(2, "--config", file, "--host-index", 1)
        until(lambda: first.process.poll() is not None or second.process.poll() is not None, "one to be refused")
        twice, once = (first, second) if first.process.poll() is not None else (second, first)
        result = twice.finish()
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.err, "host 1 .*joined already")
        last = self.start_on(1 if twice is first else 2, "--config", file, "--host-index", 2)
        for job in (root, once, last):
            self.assert_ok(job.finish())

    def test_an_agent_of_another_job_is_refused(self):
        file = self.manual("true")
        root = self.start_on(0, "--config", file, "--host-index", 0)
        result = self.start_on(1, "--config", file, "--host-index", 1, "--set", "job.name=other").finish()
        self.assert_user_error(result, "other")
        others = [self.start_on(i, "--config", file, "--host-index", i) for i in (1, 2)]
        for job in [root, *others]:
            self.assert_ok(job.finish())

    def test_a_platform_says_who_is_who(self):
        key = self.write(secrets.token_hex(32), "key")
        key.chmod(0o600)
        file = self.write(f'[job]\ncommand = ["sh", "-c", "echo $RANK on $(hostname), $WORLD_SIZE of $MASTER_ADDR"]\n'
                          f'[cluster]\nfrom = "pai"\nkey_file = "{key}"\n')
        jobs = [self.start_on(i, "--config", file, env=self.environment(
            RANK=str(i), WORLD_SIZE="3", NPROC_PER_NODE="2", MASTER_ADDR="node0", MASTER_PORT="23456"))
            for i in (2, 0, 1)]
        results = [job.finish() for job in jobs]
        for result in results:
            self.assert_ok(result)
        self.assertIn("6 ranks on 3 hosts (node0 2, node1 2, node2 2)", results[1].err)
        for rank in range(6):
            self.assertIn(f"[{rank}] {rank} on node{rank // 2}, 6 of {LAB.address(0)}\n", results[1].out)

    def test_a_platform_that_says_nothing(self):
        file = self.write('[job]\ncommand = ["true"]\n[cluster]\nfrom = "kubeflow"\n')
        result = self.start_on(1, "--config", file).finish()
        self.assert_user_error(result, "PET_NNODES is unset", "PET_MASTER_ADDR is unset")

    def test_a_key_in_the_environment_reaches_no_rank(self):
        file = self.manual("sh", "-c", "echo key $${DTRUN_CLUSTER_KEY-unset}")
        file.write_text("".join(line for line in file.read_text().splitlines(True) if "key_file" not in line))
        env = self.environment(DTRUN_CLUSTER_KEY=secrets.token_hex(32))
        jobs = [self.start_on(i, "--config", file, "--host-index", i, env=env) for i in range(3)]
        for job in jobs:
            self.assert_ok(job.finish())
        for rank in range(6):
            self.assertEqual(jobs[0].log(rank), "key unset\n")

    def test_hosts_that_wait_in_vain_are_told_why(self):
        for limit in ENOUGH_TO_JOIN:
            file = self.manual("true", more=f'join_timeout = "{limit}"\n')
            jobs = [self.start_on(i, "--config", file, "--host-index", i) for i in (0, 1)]
            results = [job.finish() for job in jobs]
            if all("missing: node2" in result.err for result in results):
                break
        for result in results:
            self.assertEqual(result.code, 2, str(result))
            self.assertIn("missing: node2", result.err)

    def test_what_is_missing_is_asked_for(self):
        file = self.manual("true")
        result = self.start_on(1, "--config", file).finish()
        self.assert_user_error(result, "--host-index")
        result = self.start_on(1, "--config", file, "--host-index", 7).finish()
        self.golden_error(result, "7 ", "3 hosts")
        os.chmod(self.folder / "key", 0o644)
        result = self.start_on(1, "--config", file, "--host-index", 1).finish()
        self.assert_user_error(result, "chmod 600")


if __name__ == "__main__":
    main()
