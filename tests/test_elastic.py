"""Hosts that come and go: lost hosts that return, fewer than all, new hosts, spares, and hosts that leave."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess

from support.job import main, until
from support.cluster import ClusterTest, open_lab

LAB = None
# Says where each rank of each generation runs, and waits for the end of the test.
SHOW = "echo $DTRUN_GENERATION: $RANK of $WORLD_SIZE on $(hostname); until [ -e end ]; do sleep 0.05; done"


def setUpModule():
    global LAB
    LAB = open_lab()


class ElasticTest(ClusterTest):
    def ranks_of(self, job, generation):
        """"RANK of SIZE on HOST" of each rank, in order, once all have said so."""
        folder = job.run_dir()
        if folder and generation > 0:
            folder = folder / f"generation-{generation}"
        if not folder or not folder.exists():
            return []
        said = []
        for file in sorted(folder.glob("rank-*.out")):
            said += [line[len(f"{generation}: "):] for line in file.read_text().splitlines()
                     if line.startswith(f"{generation}: ")]
        return said

    def wait_for_world(self, job, generation, *hosts, later=False):
        """Waits until `generation`, or where later is true one after it, has a rank on each of hosts; gives its number."""
        def found():
            return next((one for one in range(generation, generation + (20 if later else 1))
                         if self.ranks_of(job, one) == expected), None)

        expected = [f"{rank} of {len(hosts)} on {host}" for rank, host in enumerate(hosts)]
        try:
            until(lambda: found() is not None or job.process.poll() is not None,
                  f"generation {generation}{' or a later one' if later else ''} on {hosts}")
        except AssertionError as error:
            self.fail(f"{error}; there is {[self.ranks_of(job, one) for one in range(generation + 5)]}")
        if job.process.poll() is not None:
            self.fail(str(job.finish()))
        return found()

    def end_of(self, job):
        (self.folder / "end").touch()
        result = job.finish()
        self.assert_ok(result)
        return result

    def kill_host(self, host):
        """SIGKILL of all that runs there, as when the power fails."""
        folders = list(LAB.runtime_dir(host).iterdir())
        killed = LAB.processes_on(host)
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not set(killed) & set(LAB.processes_on(host)), f"all of host {host} to end")
        for folder in folders:  # empty memory, as it is when the power comes back
            shutil.rmtree(folder, ignore_errors=True)


class ByShell(ElasticTest):
    def start(self, hosts=None, more=""):
        return self.start_cluster("sh", "-c", SHOW, ranks=1, hosts=hosts, more=more)

    def test_a_job_restarts_on_a_host_that_was_lost_and_came_back(self):
        job = self.start(more="[restart]\nmax = 1\n")
        self.wait_for_world(job, 0, "node0", "node1", "node2")
        self.kill_host(1)
        self.wait_for_world(job, 1, "node0", "node1", "node2")
        result = self.end_of(job)
        self.assertIn("host node1 was lost", result.err)
        self.assertIn("restart 1 of 1", result.err)

    def test_a_job_goes_on_without_a_host_that_does_not_come_back(self):
        # On a busy machine a host may join after last_call, or seem lost: the world is regrouped more often then.
        job = self.start(more='min_hosts = 2\nlast_call = "500ms"\nlost_after = "3s"\n[restart]\nmax = 10\n')
        whole = self.wait_for_world(job, 0, "node0", "node1", "node2", later=True)
        subprocess.run([*LAB.enter(1), "ip", "link", "set", "eth0", "down"], check=True)
        try:
            without = self.wait_for_world(job, whole + 1, "node0", "node2", later=True)
        finally:
            subprocess.run([*LAB.enter(1), "ip", "link", "set", "eth0", "up"], check=True)
            self.kill_host(1)
        # It is tried again and again, and as it can be reached now the world grows, at no cost of restarts.
        self.wait_for_world(job, without + 1, "node0", "node1", "node2", later=True)
        result = self.end_of(job)
        self.golden_lines(result.err, "dtrun: host node1 ", "joined")
        self.assertIn(f"generation {without}: 2 ranks on 2 hosts (node0 1, node2 1)", result.err)
        plan = json.loads((job.run_dir() / f"generation-{without}" / "plan.json").read_text())
        self.assertEqual([host["name"] for host in plan["hosts"]], ["node0", "node2"])
        generations = json.loads((job.run_dir() / "verdict.json").read_text())["generations"]
        self.assertEqual([generations[one]["result"] for one in (whole, without, -1)],
                         ["failed", "regrouped", "succeeded"])

    def test_a_job_starts_with_the_fewest_hosts_that_will_do(self):
        job = self.start(hosts=["node0", "nowhere", "node2"], more='min_hosts = 2\nlast_call = "300ms"\n')
        self.wait_for_world(job, 0, "node0", "node2")
        self.end_of(job)

    def test_too_few_hosts_are_an_error_that_names_the_missing(self):
        result = self.start(hosts=["node0", "nowhere"], more='min_hosts = 2\n').finish()
        self.assert_user_error(result, "host nowhere: ssh: ")

    def test_a_host_that_never_returns_leaves_the_first_verdict(self):
        job = self.start(more='join_timeout = "15s"\nlost_after = "3s"\n[restart]\nmax = 3\n')
        self.wait_for_world(job, 0, "node0", "node1", "node2")
        subprocess.run([*LAB.enter(1), "ip", "link", "set", "eth0", "down"], check=True)
        try:
            result = job.finish()
        finally:
            subprocess.run([*LAB.enter(1), "ip", "link", "set", "eth0", "up"], check=True)
            self.kill_host(1)
        self.assertEqual(result.code, 1, str(result))
        self.assertRegex(result.err, "not restarted: .*cluster.join_timeout: 2 of 3 ")
        self.assert_verdict(result, lost_host="node1")


    def test_an_interrupt_while_a_host_is_awaited(self):
        job = self.start(more='lost_after = "3s"\n[restart]\nmax = 3\n')
        self.wait_for_world(job, 0, "node0", "node1", "node2")
        subprocess.run([*LAB.enter(1), "ip", "link", "set", "eth0", "down"], check=True)
        try:
            lines = []
            until(lambda: lines.append(job.process.stderr.readline()) or "restart 1 of 3" in lines[-1], "the restart")
            job.signal(signal.SIGTERM)
            self.assertEqual(job.finish().code, 143)
        finally:
            subprocess.run([*LAB.enter(1), "ip", "link", "set", "eth0", "up"], check=True)
            self.kill_host(1)


class ByThemselves(ElasticTest):
    """Hosts without a list: the same command starts on each."""

    def start_hosts(self, *hosts, count=3, least=None, more=""):
        if not (self.folder / "key").exists():
            self.write(secrets.token_hex(32), "key").chmod(0o600)
        elastic = f"min_hosts = {least}\n" if least else ""
        file = self.write(f'[job]\ncommand = ["sh", "-c", "{SHOW}"]\ngrace = "3s"\n[cluster]\nconnect = "manual"\n'
                          f'root = "node0:29400"\nhost_count = {count}\n{elastic}last_call = "300ms"\n'
                          f'key_file = "key"\n{more}')
        return [self.start_on(host, "--config", file) for host in hosts]

    def test_hosts_get_numbers_by_their_names(self):
        jobs = self.start_hosts(2, 1, 0)
        self.wait_for_world(jobs[2], 0, "node0", "node1", "node2")
        self.end_of(jobs[2])
        for job in jobs[:2]:
            self.assert_ok(job.finish())

    def test_the_world_grows_and_shrinks_with_its_hosts(self):
        root, = self.start_hosts(0, least=1)
        self.wait_for_world(root, 0, "node0")
        two, = self.start_hosts(2, least=1)
        self.wait_for_world(root, 1, "node0", "node2")
        one, = self.start_hosts(1, least=1)
        self.wait_for_world(root, 2, "node0", "node2", "node1")  # who was there keeps its rank
        two.signal(signal.SIGTERM)  # the host leaves, the job goes on
        self.wait_for_world(root, 3, "node0", "node1")
        self.assertEqual(two.finish().code, 143)
        result = self.end_of(root)
        self.assert_ok(one.finish())
        self.golden_lines(result.err, "host node2 ", "SIGTERM")

    def test_a_spare_takes_the_place_of_a_lost_host(self):
        root, one = self.start_hosts(0, 1, count=2, more="[restart]\nmax = 1\n")
        self.wait_for_world(root, 0, "node0", "node1")
        spare, = self.start_hosts(2, count=2, more="[restart]\nmax = 1\n")
        lines = []
        until(lambda: lines.append(root.process.stderr.readline()) or "node2 has joined and waits as a spare" in lines[-1],
              "the spare to join")
        self.kill_host(1)
        self.wait_for_world(root, 1, "node0", "node2")
        self.end_of(root)
        self.assert_ok(spare.finish())
        one.finish()


if __name__ == "__main__":
    main()
