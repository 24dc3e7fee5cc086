#!/usr/bin/env python3
"""Kills a random process of a job, a thousand times, and looks for what survives.

Each round starts a job whose ranks each have a child in a session of its own, waits until all run, kills one of its
processes (dtrun's own two, a rank, a child) with SIGKILL, and waits for the others to go. A process that is still there
two seconds later, a segment in /dev/shm, or a socket folder that stays is a failure, and named.

  tools/bench/soak.py build/release/bin/dtrun [--kills 1000] [--ranks 2] [--seed 1]
"""

import argparse
import collections
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid

LIMIT_S = 2.0
RANK = "setsid sleep 1000 & echo ready; wait $!"  # fails when its child is killed


def processes(mark):
    """pid -> command of the live processes that carry the mark in their environment."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark.encode() not in file.read():
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                found[int(name)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def kind_of(command):
    return "dtrun" if "/dtrun " in command else "child" if command.startswith("sleep") else "rank"


def one_round(dtrun, ranks, choose, folder):
    """The kind of process that was killed, seconds until all were gone, and what survived."""
    mark = f"DTRUN_SOAK={uuid.uuid4().hex}"
    name, value = mark.split("=")
    job = subprocess.Popen(
        [dtrun, "--set", f"job.processes_per_host={ranks}", "--set", "backend.name=none", "--set", "job.grace=0s", "--",
         "sh", "-c", RANK], cwd=folder, env={**os.environ, name: value}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for _ in range(ranks):
        job.stdout.readline()
    while len(processes(mark)) < 2 + 2 * ranks:  # guard and agent, ranks and children
        time.sleep(0.001)
    pid, command = choose(sorted(processes(mark).items()))
    os.kill(pid, signal.SIGKILL)
    begin = time.monotonic()
    while (left := processes(mark)) and time.monotonic() - begin < LIMIT_S:
        job.poll()
        time.sleep(0.002)
    seconds = time.monotonic() - begin
    for survivor in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(survivor, signal.SIGKILL)
    job.stdout.close()
    job.wait()
    return kind_of(command), seconds, left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dtrun")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    dtrun = os.path.abspath(arguments.dtrun)
    segments = set(os.listdir("/dev/shm"))
    times = collections.defaultdict(list)
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder
        for number in range(arguments.kills):
            kind, seconds, left = one_round(dtrun, arguments.ranks, chance.choice, folder)
            times[kind].append(seconds)
            if left:
                failures.append(f"kill {number} of a {kind}: {list(left.values())} survived")
        sockets = [name for name in os.listdir(folder) if name.startswith("dtrun-")]
    if sockets:
        failures.append(f"{len(sockets)} socket folders stay")
    if grown := set(os.listdir("/dev/shm")) - segments:
        failures.append(f"/dev/shm: {sorted(grown)}")
    for kind, all_times in sorted(times.items()):
        print(f"{len(all_times):5} kills of a {kind:5}  all gone after {sorted(all_times)[len(all_times) // 2]:.3f} s"
              f" median, {max(all_times):.3f} s at most")
    print(f"{len(failures)} failures", *failures[:20], sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
