#!/usr/bin/env python3
"""Kills a random process of a job, a thousand times, and looks for what survives.

Each round starts a job whose ranks each have a child in a session of its own, waits until all run, kills one of its
processes (one of dtrun's own, an ssh client, an sshd, a rank, a child) with SIGKILL, and waits for the others to go. A
process that is still there two seconds later, a segment in /dev/shm, a socket or a folder of sockets that stays is a
failure, and named. With --hosts the job runs on as many network namespaces with an sshd each (root only).

  tools/bench/soak.py build/release/bin/dtrun [--kills 1000] [--minutes 10] [--hosts 3] [--ranks 2] [--seed 1]
"""

import argparse
import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

LIMIT_S = 2.0
RANK = "setsid sleep 1000 & echo ready; wait $!"  # fails when its child is killed


class ThisHost:
    """A job on this machine, found by a mark in the environment of its processes."""

    def __init__(self, dtrun, ranks, folder):
        self.command = [dtrun, "--set", f"job.processes_per_host={ranks}", "--set", "backend.name=none", "--set",
                        "job.grace=0s", "--", "sh", "-c", RANK]
        self.folder, self.ranks = folder, ranks
        self.count = 2 + 2 * ranks  # guard and agent, ranks and children
        self.segments = set(os.listdir("/dev/shm"))

    def start(self):
        name, value = f"DTRUN_SOAK={uuid.uuid4().hex}".split("=")
        self.mark = f"{name}={value}"
        return subprocess.Popen(self.command, cwd=self.folder, env={**os.environ, "XDG_RUNTIME_DIR": self.folder, name: value},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def processes(self):
        """pid -> what it is, of those that live."""
        found = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if self.mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found[int(name)] = ("one of dtrun's own two" if "/dtrun " in command else
                                        "child" if command.startswith("sleep") else "rank")
        return found

    def left(self):
        """What stays without a process."""
        sockets = [name for name in os.listdir(self.folder) if name.startswith("dtrun-")]
        return sockets + sorted(set(os.listdir("/dev/shm")) - self.segments)


class Hosts:
    """A job on the hosts of a laboratory (tests/support/lab.py)."""

    def __init__(self, dtrun, ranks, hosts, folder):
        tests = Path(__file__).resolve().parents[2] / "tests"
        sys.path.insert(0, str(tests))
        os.environ.update(DTRUN_BUILD=str(Path(dtrun).parents[1]), DTRUN_SOURCE=str(tests.parent))
        from support import lab
        if reason := lab.why_not():
            sys.exit(f"soak: no laboratory, because {reason}")
        self.folder, self.ranks, self.dtrun = folder, ranks * hosts, dtrun
        self.lab = lab.Lab(Path(folder), hosts)
        for i in range(hosts):
            lab.run(*self.lab.enter(i), "mount", "-t", "tmpfs", "none", "/dev/shm")
        self.command_of = lab.command_of
        self.config = Path(folder) / "soak.toml"
        self.config.write_text(
            f'[job]\ncommand = {json.dumps(["sh", "-c", RANK])}\nprocesses_per_host = {ranks}\ngrace = "0s"\n'
            f'[cluster]\nhosts = {json.dumps(self.lab.names)}\nremote_shell = {json.dumps(self.lab.shell())}\n'
            '[backend]\nname = "none"\n')
        # Guards and agents, ranks and children, ssh clients and sshds.
        self.count = 2 * hosts + 2 * self.ranks + 2 * (hosts - 1)

    def start(self):
        return subprocess.Popen(
            [*self.lab.enter(0, self.folder), self.dtrun, "--config", str(self.config)], cwd=self.folder,
            env={**os.environ, "XDG_RUNTIME_DIR": str(self.lab.runtime_dir(0))},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def processes(self):
        return {pid: self.kind_of(self.command_of(pid)) for i in range(len(self.lab.names))
                for pid in self.lab.processes_on(i)}

    def kind_of(self, command):
        if command == f"{self.dtrun} agent":
            return "dtrun of another host"
        for start, kind in ((self.dtrun, "dtrun of the root's host"), ("ssh ", "ssh client"), ("sshd:", "sshd"),
                            ("sleep", "child")):
            if command.startswith(start):
                return kind
        return "rank"

    def left(self):
        found = []
        for i, holder in enumerate(self.lab.holders):
            found += map(str, self.lab.runtime_dir(i).iterdir())
            found += map(str, Path(f"/proc/{holder}/root/dev/shm").iterdir())
            tables = [(Path(f"/proc/{holder}/net") / name).read_text().splitlines() for name in ("tcp", "tcp6", "unix")]
            found += [line for table in tables[:2] for line in table[1:]  # that listen, but for sshd's
                      if line.split()[3] == "0A" and not line.split()[1].endswith(":0016")]
            found += [line for line in tables[2] if "dtrun" in line]
        return found


def one_round(jobs, choose):
    """The kind of process that was killed, seconds until all were gone, and what survived."""
    job = jobs.start()
    for _ in range(jobs.ranks):
        job.stdout.readline()
    while len(now := jobs.processes()) != jobs.count or list(now.values()).count("child") != jobs.ranks:
        if job.poll() is not None:
            raise SystemExit(f"soak: dtrun ended by itself with {job.returncode}")
        time.sleep(0.001)
    pid, kind = choose(sorted(now.items()))
    os.kill(pid, signal.SIGKILL)
    begin = time.monotonic()
    while (left := jobs.processes()) and time.monotonic() - begin < LIMIT_S:
        job.poll()
        time.sleep(0.002)
    seconds = time.monotonic() - begin
    for survivor in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(survivor, signal.SIGKILL)
    job.stdout.close()
    job.wait()
    return kind, seconds, [f"{kind} {survivor} survived" for survivor, kind in left.items()] + jobs.left()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dtrun")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--minutes", type=float, help="no more rounds after this time")
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=2, help="on each host")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    dtrun = os.path.abspath(arguments.dtrun)
    times = collections.defaultdict(list)
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        if arguments.hosts > 1:
            jobs = Hosts(dtrun, arguments.ranks, arguments.hosts, folder)
        else:
            jobs = ThisHost(dtrun, arguments.ranks, folder)
        end = time.monotonic() + 60 * (arguments.minutes or float("inf"))
        for number in range(arguments.kills):
            if time.monotonic() > end:
                break
            kind, seconds, left = one_round(jobs, chance.choice)
            times[kind].append(seconds)
            if left:
                failures.append(f"kill {number}, of {kind}: {left}")
        if arguments.hosts > 1:
            jobs.lab.close()
    load = os.getloadavg()[1]
    print(f"{sum(map(len, times.values()))} kills, load {load:.1f}")
    for kind, all_times in sorted(times.items()):
        print(f"{len(all_times):5} of {kind:24}  all gone after {sorted(all_times)[len(all_times) // 2]:.3f} s"
              f" median, {max(all_times):.3f} s at most")
    print(f"{len(failures)} failures", *failures[:20], sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
