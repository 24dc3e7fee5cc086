"""The places where a soak runs its jobs: this machine, or hosts that are network namespaces.

A place starts dtrun, finds the processes of its job, and reports what they leave behind. One job at a time.
"""

import contextlib
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

from . import count

RANK = "setsid sleep 1000 & echo ready; wait $!"  # fails if its child is killed


class ThisHost:
    """Jobs on this machine, with processes identified by a mark in the environment."""

    def __init__(self, dtrun, ranks, folder):
        self.dtrun, self.folder, self.ranks, self.hosts = dtrun, folder, ranks, 1
        self.mark = ""
        self.names = set()  # of the socket folders that its jobs had
        if os.geteuid() == 0:
            count.own_shared_memory()

    def start(self, command=("sh", "-c", RANK), sets=(), ranks=None, before=()):
        """Starts dtrun with `command` as its ranks; `before` precedes dtrun's own command line."""
        name, value = f"DTRUN_SOAK={uuid.uuid4().hex}".split("=")
        self.mark = f"{name}={value}"
        options = [f"job.processes_per_host={ranks or self.ranks}", "backend.name=none", "job.grace=0s", *sets]
        words = [word for option in options for word in ("--set", option)]
        return subprocess.Popen([*before, self.dtrun, *words, "--", *command], cwd=self.folder,
                                env={**os.environ, "XDG_RUNTIME_DIR": self.folder, name: value},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                errors="replace")

    def processes(self):
        """Live processes: pid -> description."""
        self.names.update(name for name in os.listdir(self.folder) if name.startswith("dtrun-"))
        return {pid: self.kind_of(count.command_of(pid)) for pid in count.processes_with(self.mark)}

    @staticmethod
    def kind_of(command):
        program = command.split(" ", 1)[0]
        if program.endswith("/dtrun"):
            return "one of dtrun's own two"
        return "child" if program == "sleep" else "rank"

    def expected(self):
        """The number of processes in a job of RANK: guard and agent, ranks and their children."""
        return 2 + 2 * self.ranks

    def left(self):
        """Leftovers without a process: socket folders, segments, control groups."""
        return [f"folder {name}" for name in os.listdir(self.folder) if name.startswith("dtrun-")] \
            + count.segments() + count.control_groups(self.names)

    def close(self):
        pass


class Hosts:
    """Jobs on the hosts of a laboratory (tests/support/lab.py); the root is on node0."""

    def __init__(self, dtrun, ranks, hosts, folder):
        tests = Path(__file__).resolve().parents[3] / "tests"
        sys.path.insert(0, str(tests))
        os.environ.update(DTRUN_BUILD=str(Path(dtrun).parents[1]), DTRUN_SOURCE=str(tests.parent))
        from support import lab
        if reason := lab.why_not():
            sys.exit(f"soak: no laboratory, because {reason}")
        self.dtrun, self.folder, self.ranks, self.hosts = dtrun, folder, ranks * hosts, hosts
        self.lab, self.run, self.command_of = lab.Lab(Path(folder), hosts), lab.run, lab.command_of
        self.names = set()  # of the socket folders that its jobs had

    def start(self, command=("sh", "-c", RANK), sets=(), ranks=None, before=()):
        per_host = (ranks or self.ranks) // self.hosts
        config = Path(self.folder) / "soak.toml"
        config.write_text(
            f'[job]\ncommand = {json.dumps(list(command))}\nprocesses_per_host = {per_host}\ngrace = "0s"\n'
            f'[cluster]\nhosts = {json.dumps(self.lab.names)}\nremote_shell = {json.dumps(self.lab.shell())}\n'
            '[backend]\nname = "none"\n')
        words = [word for option in sets for word in ("--set", option)]
        return subprocess.Popen(
            [*self.lab.enter(0, self.folder), *before, self.dtrun, "--config", str(config), *words], cwd=self.folder,
            env={**os.environ, "XDG_RUNTIME_DIR": str(self.lab.runtime_dir(0))},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")

    def processes(self):
        self.names.update(path.name for i in range(self.hosts) for path in self.lab.runtime_dir(i).iterdir())
        return {pid: self.kind_of(self.command_of(pid)) for i in range(self.hosts) for pid in self.lab.processes_on(i)}

    def kind_of(self, command):
        if command == f"{self.dtrun} agent":
            return "dtrun of another host"
        for start, kind in ((self.dtrun, "dtrun of the root's host"), ("ssh ", "ssh client"), ("sshd:", "sshd"),
                            ("sleep", "child")):
            if command.startswith(start):
                return kind
        return "rank"

    def expected(self):
        """Guards and agents, ranks and children, ssh clients and sshds."""
        return 2 * self.hosts + 2 * self.ranks + 2 * (self.hosts - 1)

    @contextlib.contextmanager
    def link_down(self, host):
        self.run(*self.lab.enter(host), "ip", "link", "set", "eth0", "down")
        try:
            yield
        finally:
            self.run(*self.lab.enter(host), "ip", "link", "set", "eth0", "up")

    def left(self):
        found = count.control_groups(self.names)
        for i, holder in enumerate(self.lab.holders):
            found += [f"{path} with {os.listdir(path)}" for path in self.lab.runtime_dir(i).iterdir()]
            found += map(str, Path("/proc", str(holder), "root", "dev", "shm").iterdir())
            tables = [(Path(f"/proc/{holder}/net") / name).read_text().splitlines() for name in ("tcp", "tcp6", "unix")]
            found += [line for table in tables[:2] for line in table[1:]  # listening sockets, except sshd's
                      if line.split()[3] == "0A" and not line.split()[1].endswith(":0016")]
            found += [line for line in tables[2] if "dtrun" in line]
        return found

    def close(self):
        self.lab.close()
