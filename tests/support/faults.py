"""What the fault matrix does to a job: finds its processes, breaks one thing, and looks for what stays behind."""

import contextlib
import json
import os
import signal
from pathlib import Path

from support.cluster import ClusterTest
from support.job import DTRUN, until
from support.lab import command_of, environment_of, parent_of, run, state

LAST = {1: 1, 3: 2}  # the last rank, by the number of hosts
# A rank with a child in a session of its own, both of which exit with 7 on USR1; USR2 ends the job in peace.
PAIR = ("setsid sh -c 'trap \"exit 7\" USR1; echo the child; sleep 1000 & wait $!' & "
        "trap 'exit 7' USR1; trap 'exit 0' USR2; echo the rank; wait $!; exit $?")


def variable_of(pid, name):
    return next((entry.split("=", 1)[1] for entry in environment_of(pid) if entry.startswith(name + "=")), None)


def children_of(pid, among):
    return [other for other in among if parent_of(other) == pid]


class FaultTest(ClusterTest):
    """Jobs on one host of the laboratory, node0, or on all three; what is broken belongs to the last rank."""

    def tearDown(self):
        super().tearDown()
        left = [line for i in range(3) for line in self.sockets(i)]
        self.assertEqual(left, [], "sockets stayed open")

    def sockets(self, host):
        """Listening TCP sockets but for sshd's, and named Unix sockets but for systemd's and the like."""
        net = Path(f"/proc/{self.lab.holders[host]}/net")
        tcp = [line for name in ("tcp", "tcp6") for line in (net / name).read_text().splitlines()[1:]
               if line.split()[3] == "0A" and not line.split()[1].endswith(":0016")]
        unix = [line for line in (net / "unix").read_text().splitlines()[1:] if "dtrun" in line]
        return tcp + unix

    def start_job(self, hosts, *command, more="", shell=None):
        """Two ranks on one host; one on each of three."""
        file = self.config(command, ranks=2 if hosts == 1 else 1, hosts=self.hosts[:hosts], more=more)
        if shell:
            file.write_text(file.read_text().replace(json.dumps(self.lab.shell()), json.dumps(shell)))
        return self.start_on(0, "--config", file)

    def start_pair(self, hosts, **more):
        job = self.start_job(hosts, "sh", "-c", PAIR, **more)
        for rank in range(LAST[hosts] + 1):
            job.wait_for_line(rank, "the child")
            job.wait_for_line(rank, "the rank")
        return job

    def end_in_peace(self, job, hosts):
        for host in range(hosts):
            for pid in self.lab.processes_on(host):
                if "trap 'exit 0' USR2" in command_of(pid):
                    os.kill(pid, signal.SIGUSR2)

    def victim(self, job, target, hosts):
        """The pid of a process of the job."""
        victim = until(lambda: self.find(job, target, hosts), f"the {target}")
        self.assertEqual(len(victim), 1, f"{target}: {[command_of(pid) for pid in victim]}")
        return victim[0]

    def find(self, job, target, hosts):
        here, there = self.lab.processes_on(0), self.lab.processes_on(hosts - 1)
        root = children_of(job.pid, [pid for pid in here if command_of(pid).startswith(str(DTRUN))])
        agents = [pid for pid in there if command_of(pid) == f"{DTRUN} agent"]
        agent = [pid for pid in agents if parent_of(pid) in agents] if hosts > 1 else root
        rank = [pid for one in agent for pid in children_of(one, there) if variable_of(pid, "RANK") == str(LAST[hosts])]
        match target:
            case "rank":
                return rank
            case "child":
                return [pid for one in rank for pid in children_of(one, there)]
            case "agent":
                return agent
            case "agent's guard":
                return [parent_of(pid) for pid in agent]
            case "root":
                return root
            case "root's guard":
                return [job.pid]
            case "sshd":  # of the connection
                return [pid for pid in there if command_of(pid).startswith("sshd:")]
            case "ssh client":
                return [pid for one in root for pid in children_of(one, here)
                        if self.lab.names[hosts - 1] in command_of(pid).split()]

    def wait_for_state(self, pid, letters):
        until(lambda: state(pid) in letters, f"process {pid} to be in one of the states {letters}")

    @contextlib.contextmanager
    def link_down(self, host):
        run(*self.lab.enter(host), "ip", "link", "set", "eth0", "down")
        try:
            yield
            until(lambda: not any(self.of_the_job(i) for i in range(3)), "all hosts to end the job by themselves")
        finally:
            run(*self.lab.enter(host), "ip", "link", "set", "eth0", "up")
            self.end_sessions()

    def of_the_job(self, host):
        return [pid for pid in self.lab.processes_on(host) if not command_of(pid).startswith("sshd:")]

    def end_sessions(self):
        """Of sshd, which hears of the end of its client only when a keep-alive fails."""
        for host in range(3):
            for pid in self.lab.processes_on(host):
                if command_of(pid).startswith("sshd:"):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def name_lost(self, name):
        hosts = self.lab.folder / "hosts"
        whole = hosts.read_text()
        hosts.write_text("".join(line for line in whole.splitlines(True) if line.split()[1] != name))
        try:
            yield
        finally:
            hosts.write_text(whole)

    @contextlib.contextmanager
    def full(self, host, folder, size="64k", inodes=100):
        """A file system with little room in the place of `folder` of one host."""
        Path(folder).mkdir(exist_ok=True)
        run(*self.lab.enter(host), "mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes}", "none", str(folder))
        try:
            yield
        finally:
            run(*self.lab.enter(host), "umount", "-l", str(folder))
