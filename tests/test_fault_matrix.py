"""The fault matrix: every fault, on every process of a job, on one host and on three.

A row of CELLS says what a user gets: exit code, exit class, and the words that name the root cause. After each of them
no process, socket, segment or runtime folder of the job is left on any host. A combination that makes no sense stands
in NO_CELL with its reason. Names of tests: test_<fault>_<target>_<hosts>.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import secrets
import signal
import time
import unittest

from support.cluster import open_lab
from support.faults import LAST, FaultTest, children_of, variable_of
from support.job import DTRUN, RANK, main, until
from support.lab import command_of

FAULTS = ["SIGKILL", "SIGSTOP", "SIGSEGV", "exit 7", "link down", "name lost", "disk full"]
TARGETS = ["rank", "child", "agent", "root", "ssh client"]
HOSTS = [1, 3]
BESIDE = ["agent's guard", "root's guard", "sshd"]  # not in every combination


@dataclasses.dataclass(frozen=True)
class Cell:
    fault: str
    target: str
    hosts: int
    code: int
    exit_class: str | None  # None: the job succeeds
    says: str  # a regular expression of what dtrun tells the user
    recorded: bool = True  # verdict.json says the same

    @property
    def key(self):
        return self.fault, self.target, self.hosts


# "rank", "child", "agent", ... of the last host, node2 on three; the ranks are 0 and 1 on one host, 0 to 2 on three.
CELLS = [
    Cell("SIGKILL", "rank", 1, 137, "signal", r"rank 1 was killed by signal 9 \(SIGKILL\)\n  host node0"),
    Cell("SIGKILL", "rank", 3, 137, "signal", r"rank 2 was killed by signal 9 \(SIGKILL\)\n  host node2"),
    # What becomes of a child is its rank's affair: this one hands its end on, as a shell does.
    Cell("SIGKILL", "child", 1, 137, "user-error", r"rank 1 exited with code 137"),
    Cell("SIGKILL", "child", 3, 137, "user-error", r"rank 2 exited with code 137"),
    Cell("SIGKILL", "root", 1, 137, "launcher", r"dtrun: the agent \(pid \d+\) was killed by signal 9 \(SIGKILL\)"),
    Cell("SIGKILL", "root", 3, 137, "launcher", r"dtrun: the agent \(pid \d+\) was killed by signal 9 \(SIGKILL\)"),
    Cell("SIGKILL", "root's guard", 1, -9, "launcher", r"dtrun's first process was killed"),
    Cell("SIGKILL", "root's guard", 3, -9, "launcher", r"dtrun's first process was killed"),
    Cell("SIGKILL", "agent", 3, 1, "launcher", r"failed after .*: host node2 was lost"),
    Cell("SIGKILL", "agent's guard", 3, 1, "launcher",
         r"failed after .*: host node2 was lost: the first process of its dtrun was killed"),
    Cell("SIGKILL", "ssh client", 3, 1, "launcher", r"failed after .*: host node2 was lost: its remote shell"),
    Cell("SIGKILL", "sshd", 3, 1, "launcher", r"failed after .*: host node2 was lost: its remote shell"),

    # A rank that stands still is named at once, and is the cause when the others' time is up.
    Cell("SIGSTOP", "rank", 1, 147, "signal", r"failed after .*: rank 1 was stopped by signal 19 \(SIGSTOP\)"),
    Cell("SIGSTOP", "rank", 3, 147, "signal", r"failed after .*: rank 2 was stopped by signal 19 \(SIGSTOP\)"),
    Cell("SIGSTOP", "child", 1, 143, "preemption", r"was interrupted by SIGTERM"),
    Cell("SIGSTOP", "child", 3, 143, "preemption", r"was interrupted by SIGTERM"),
    # A process of dtrun that is stopped alone is let go on, and the job with it.
    Cell("SIGSTOP", "root", 1, 0, None, r"the agent \(pid \d+\) was stopped by SIGSTOP, but not the rest of its job"),
    Cell("SIGSTOP", "root", 3, 0, None, r"the agent \(pid \d+\) was stopped by SIGSTOP, but not the rest of its job"),
    Cell("SIGSTOP", "agent", 3, 0, None, r"node2: dtrun: the agent \(pid \d+\) was stopped by SIGSTOP, but not the rest of its job"),
    Cell("SIGSTOP", "root's guard", 1, 0, None, r"succeeded"),
    Cell("SIGSTOP", "root's guard", 3, 0, None, r"succeeded"),
    Cell("SIGSTOP", "agent's guard", 3, 0, None, r"succeeded"),
    Cell("SIGSTOP", "ssh client", 3, 0, None, r"succeeded"),

    Cell("SIGSEGV", "rank", 1, 139, "signal", r"rank 1 was killed by signal 11 \(SIGSEGV"),
    Cell("SIGSEGV", "rank", 3, 139, "signal", r"rank 2 was killed by signal 11 \(SIGSEGV"),
    Cell("SIGSEGV", "child", 1, 139, "user-error", r"rank 1 exited with code 139"),
    Cell("SIGSEGV", "child", 3, 139, "user-error", r"rank 2 exited with code 139"),
    Cell("SIGSEGV", "root", 1, 139, "launcher", r"dtrun: the agent \(pid \d+\) was killed by signal 11 \(SIGSEGV\)"),
    Cell("SIGSEGV", "root", 3, 139, "launcher", r"dtrun: the agent \(pid \d+\) was killed by signal 11 \(SIGSEGV\)"),
    Cell("SIGSEGV", "root's guard", 1, -11, "launcher", r"dtrun's first process was killed"),
    Cell("SIGSEGV", "root's guard", 3, -11, "launcher", r"dtrun's first process was killed"),
    Cell("SIGSEGV", "agent", 3, 1, "launcher", r"failed after .*: host node2 was lost"),
    Cell("SIGSEGV", "agent's guard", 3, 1, "launcher",
         r"failed after .*: host node2 was lost: the first process of its dtrun was killed"),
    Cell("SIGSEGV", "ssh client", 3, 1, "launcher", r"failed after .*: host node2 was lost: its remote shell"),

    Cell("exit 7", "rank", 1, 7, "user-error", r"rank 1 exited with code 7\n  host node0"),
    Cell("exit 7", "rank", 3, 7, "user-error", r"rank 2 exited with code 7\n  host node2"),
    Cell("exit 7", "child", 1, 7, "user-error", r"rank 1 exited with code 7\n  host node0"),
    Cell("exit 7", "child", 3, 7, "user-error", r"rank 2 exited with code 7\n  host node2"),
    # What cluster.dtrun names, and what cluster.remote_shell names: scripts that give up and leave the real one behind.
    Cell("exit 7", "agent", 3, 1, "launcher", r"failed after .*: host node2 was lost: its remote shell"),
    Cell("exit 7", "ssh client", 3, 1, "launcher", r"failed after .*: host node2 was lost: its remote shell"),

    Cell("link down", "agent", 3, 1, "network", r"failed after .*: host node2 was lost: .*silent for 3s"),
    Cell("link down", "root", 3, 1, "network",
         r"failed after .*: host node[12] was lost: .*silent for 3s(.*\n)*  next: .* look at the network of the root's host"),

    # A world that starts again on the agents that are there asks for no name.
    Cell("name lost", "rank", 3, 0, None, r"succeeded: 3 ranks, .*after 1 restart"),
    Cell("name lost", "agent", 3, 1, "launcher",
         r"not restarted: not all hosts have joined .*: 2 of 3 hosts joined; missing: node2: .*resolve"),
    Cell("name lost", "ssh client", 3, 1, "launcher",
         r"not restarted: not all hosts have joined .*: 2 of 3 hosts joined; missing: node2: .*resolve"),
    # For a manually started host, which writes no verdict.
    Cell("name lost", "root", 3, 2, "user-error", r"could not join .* last error: 'node0' does not resolve",
         recorded=False),

    Cell("disk full", "rank", 1, 1, "user-error", r"rank 1 exited with code 1\b.*\n(.*\n)*.*a disk, or /dev/shm, is full"),
    Cell("disk full", "rank", 3, 1, "user-error", r"rank 2 exited with code 1\b.*\n(.*\n)*.*a disk, or /dev/shm, is full"),
    Cell("disk full", "child", 1, 1, "user-error", r"rank 1 exited with code 1\b.*\n(.*\n)*.*a disk, or /dev/shm, is full"),
    Cell("disk full", "child", 3, 1, "user-error", r"rank 2 exited with code 1\b.*\n(.*\n)*.*a disk, or /dev/shm, is full"),
    Cell("disk full", "root", 1, 0, None, r"cannot write .*rank-\d\.out.*no space left on device", recorded=False),
    Cell("disk full", "root", 3, 0, None, r"cannot write .*rank-\d\.out.*no space left on device", recorded=False),
    Cell("disk full", "agent", 3, 2, "user-error", r"host node2: dtrun: cannot create the folder .*no space left on device"),
]

ONE_PROCESS = "on one host the agent and the root are one process: see the root"
NO_SHELL = "a job on one host starts no remote shell"
NO_LINK = "a job on one host uses no link"
NO_NAME = "a job on one host resolves no name"
SAME_LINK = "a link belongs to a host, not to a process: see the agent of that host"
NO_CELL = {
    **{(fault, "agent", 1): ONE_PROCESS for fault in FAULTS},
    **{(fault, "ssh client", 1): NO_SHELL for fault in FAULTS},
    **{("link down", target, 1): NO_LINK for target in TARGETS},
    **{("name lost", target, 1): NO_NAME for target in TARGETS},
    ("exit 7", "root", 1): "the root exits with the code of its verdict, and nothing else ends it from inside",
    ("exit 7", "root", 3): "the root exits with the code of its verdict, and nothing else ends it from inside",
    ("link down", "rank", 3): SAME_LINK,
    ("link down", "child", 3): SAME_LINK,
    ("link down", "ssh client", 3): "it runs on the root's host: see the root",
    ("name lost", "child", 3): "dtrun starts no child of a rank, and tells ranks addresses instead of names",
    ("disk full", "ssh client", 3): "it writes to no disk",
}


def setUpModule():
    open_lab()


class Matrix(FaultTest):
    def break_one(self, cell):
        """The job of this cell, once its fault is there and it has to end."""
        match cell.fault:
            case "SIGKILL" | "SIGSEGV":
                job = self.start_pair(cell.hosts)
                os.kill(self.victim(job, cell.target, cell.hosts), getattr(signal, cell.fault))
                return job
            case "SIGSTOP":
                return self.stop(cell)
            case "exit 7":
                return self.give_up(cell)
            case "link down":
                job = self.start_pair(3, more='lost_after = "3s"\n')
                self.broken.enter_context(self.link_down(0 if cell.target == "root" else 2))
                return job
            case "name lost":
                return self.lose_name(cell)
            case "disk full":
                return self.fill_disk(cell)

    def stop(self, cell):
        if cell.target == "rank":
            job = self.start_job(cell.hosts, RANK, "loop", more='[backend]\nname = "gloo"\ntimeout = "2s"\n')
            for rank in range(2 if cell.hosts == 1 else 3):
                job.wait_for_line(rank, "looping")
            os.kill(self.victim(job, "rank", cell.hosts), signal.SIGSTOP)
            return job
        job = self.start_pair(cell.hosts)
        victim = self.victim(job, cell.target, cell.hosts)
        os.kill(victim, signal.SIGSTOP)
        self.wait_for_state(victim, "T")
        if cell.target == "child":
            job.signal(signal.SIGTERM)
            return job
        if cell.target in ("agent", "root"):
            self.wait_for_state(victim, "SR")
        self.end_in_peace(job, cell.hosts)
        return job

    def give_up(self, cell):
        if cell.target in ("rank", "child"):
            job = self.start_pair(cell.hosts)
            os.kill(self.victim(job, cell.target, cell.hosts), signal.SIGUSR1)
            return job
        script = 'trap "exit 7" USR1; exec 3<&0; "$@" <&3 & echo $$ > %s/wrapper-$(hostname)-$$; wait $!'
        real = [str(DTRUN)] if cell.target == "agent" else self.lab.shell()
        wrapper = self.folder / "wrapper"
        wrapper.write_text("#!/bin/sh\nset -- " + " ".join(real) + ' "$@"\n' + script % self.folder)
        wrapper.chmod(0o755)
        more = f'dtrun = "{wrapper}"\n' if cell.target == "agent" else ""
        job = self.start_pair(3, more=more, shell=None if cell.target == "agent" else [str(wrapper)])
        host = self.lab.names[2 if cell.target == "agent" else 0]
        for file in self.folder.glob(f"wrapper-{host}-*"):
            pid = int(file.read_text())
            if cell.target == "agent" or "node2" in command_of(pid).split():
                os.kill(pid, signal.SIGUSR1)
        return job

    def lose_name(self, cell):
        if cell.target == "root":
            key = self.write(secrets.token_hex(32), "key")
            key.chmod(0o600)
            file = self.config(["sleep", "1000"], ranks=1,
                               more=f'connect = "manual"\nroot = "node0:29400"\nkey_file = "{key}"\njoin_timeout = "2s"\n')
            root = self.start_on(0, "--config", file, "--host-index", 0)
            self.broken.enter_context(self.name_lost("node0"))
            other = self.start_on(2, "--config", file, "--host-index", 2)
            self.assertEqual(root.finish().code, 2)
            return other
        script = "echo up; [ $DTRUN_GENERATION = 1 ] || exec sleep 1000"
        join = "10s" if cell.target != "rank" else "10m"
        job = self.start_job(3, "sh", "-c", script, more=f'join_timeout = "{join}"\n[restart]\nmax = 1\n')
        for rank in range(3):
            job.wait_for_line(rank, "up")
        victim = self.victim(job, cell.target, 3)
        self.broken.enter_context(self.name_lost("node2"))
        os.kill(victim, signal.SIGKILL)
        return job

    def fill_disk(self, cell):
        host = cell.hosts - 1
        if cell.target == "agent":
            self.broken.enter_context(self.full(host, self.lab.runtime_dir(host), inodes=1))
            return self.start_job(3, "true")
        if cell.target == "root":
            runs = self.folder / "runs"
            self.broken.enter_context(self.full(0, runs, size="256k"))
            return self.start_job(cell.hosts, "sh", "-c", "seq 100000")
        place = self.folder / "disk"
        self.broken.enter_context(self.full(host, place))
        write = f"cat /dev/zero > {place}/data"
        write = f"exec {write}" if cell.target == "rank" else f"sh -c '{write}'; exit $?"
        return self.start_job(cell.hosts, "sh", "-c", f"[ $RANK = {LAST[cell.hosts]} ] || exec sleep 1000; {write}")

    def check(self, cell):
        with contextlib.ExitStack() as self.broken:
            job = self.break_one(cell)
            result = job.finish()
        self.assertEqual(result.code, cell.code, str(result))
        self.assertRegex(result.err, cell.says, str(result))
        if not cell.recorded:
            return
        until(lambda: job.run_dir() and (job.run_dir() / "verdict.json").exists(), "the verdict")  # the agent's, who may be last
        verdict = json.loads((job.run_dir() / "verdict.json").read_text())
        self.assertEqual(verdict["exit_class"], cell.exit_class, str(result))
        self.assertEqual(verdict["exit_code"], cell.code if cell.code >= 0 else 137, str(result))


class HeldUp(FaultTest):
    def test_a_root_that_stands_still_while_its_ranks_end(self):
        """When it goes on, a look at its ranks is due, none of which lives; its host ends before the answer."""
        job = self.start_cluster("sh", "-c", "trap 'exit 0' USR2; echo up; while :; do sleep 0.02; done", ranks=2)
        for rank in range(6):
            job.wait_for_line(rank, "up")
        root = self.victim(job, "root", 3)
        ranks = [pid for pid in children_of(root, self.lab.processes_on(0)) if variable_of(pid, "RANK") in ("0", "1")]
        self.assertEqual(len(ranks), 2)
        time.sleep(1)  # some looks
        os.kill(root, signal.SIGSTOP)
        self.wait_for_state(root, "T")
        self.end_in_peace(job, 3)
        for rank in ranks:
            self.wait_for_state(rank, "Z")
        time.sleep(0.3)  # longer than from one look to the next
        os.kill(root, signal.SIGCONT)
        self.assert_ok(job.finish())


class Complete(unittest.TestCase):
    def test_every_combination_is_a_cell_or_has_a_reason(self):
        cells = [cell.key for cell in CELLS]
        self.assertEqual(len(cells), len(set(cells)), "a cell stands twice")
        self.assertEqual(set(cells) & set(NO_CELL), set())
        wanted = set(itertools.product(FAULTS, TARGETS, HOSTS))
        self.assertEqual(wanted - set(cells) - set(NO_CELL), set(), "missing")
        self.assertEqual({key for key in {*cells, *NO_CELL} - wanted if key[1] not in BESIDE}, set(), "unknown")


for one in CELLS:
    name = f"test_{one.fault}_{one.target}_{one.hosts}".replace(" ", "_").replace("'", "")
    setattr(Matrix, name, lambda self, cell=one: self.check(cell))


if __name__ == "__main__":
    main()
