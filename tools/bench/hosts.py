#!/usr/bin/env python3
"""A job of many hosts, run as agents on this machine and started externally (cluster.connect = "manual").

  tools/bench/hosts.py [--hosts 64] [--ranks 16] [--rounds 3] [--dtrun build/release/bin/dtrun]

first    from the exec of the first agent to the first instruction of the first rank
all up   from the same start to the first instruction of the last rank
root     peak memory of the root's process, in MB
"""

import argparse
import os
import re
import secrets
import socket
import subprocess
import tempfile
import time

from measure import DTRUN, STAMP, environment


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def peak_mb(pid):
    """The peak memory of the largest process at or below `pid`."""
    largest = 0
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        try:
            with open(f"/proc/{process}/status") as status:
                found = re.search(r"VmHWM:\s+(\d+) kB", status.read())
            with open(f"/proc/{process}/task/{process}/children") as children:
                names = [name for name in children.read().split()]
        except OSError:
            continue
        largest = max(largest, int(found.group(1)) / 1000 if found else 0)
        waiting += [int(name) for name in names if is_dtrun(name)]
    return largest


def is_dtrun(pid):
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return comm.read().startswith("dtrun")
    except OSError:
        return False


def run(dtrun, hosts, ranks, folder):
    words = {"job.processes_per_host": ranks, "cluster.host_count": hosts, "cluster.connect": "manual",
             "cluster.root": f"127.0.0.1:{free_port()}", "cluster.oversubscribe": "true", "network.interface": "off",
             "backend.name": "none", "logs.dir": folder}
    argv = [dtrun]
    for name, value in words.items():
        argv += ["--set", f"{name}={value}"]
    env = environment() | {"DTRUN_CLUSTER_KEY": secrets.token_hex(32)}
    begin = time.monotonic_ns()
    jobs = [subprocess.Popen([*argv, "--host-index", str(i), "--", STAMP], stdin=subprocess.DEVNULL, env=env, text=True,
                             stdout=subprocess.PIPE if i == 0 else subprocess.DEVNULL,
                             stderr=subprocess.PIPE if i == 0 else subprocess.DEVNULL) for i in range(hosts)]
    root, stamps, peak = jobs[0], [], 0.0
    for line in root.stdout:
        if "stamp " in line:
            stamps.append(int(line.split()[-1]))
            peak = peak or peak_mb(root.pid)
    peak = max(peak, peak_mb(root.pid))
    said = root.stderr.read()
    codes = [job.wait() for job in jobs]
    if any(codes) or len(stamps) != hosts * ranks:
        raise SystemExit(f"{len(stamps)} of {hosts * ranks} ranks, exit codes {sorted(set(codes))}\n{said[-2000:]}")
    return (min(stamps) - begin) / 1e9, (max(stamps) - begin) / 1e9, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtrun", default=str(DTRUN))
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}")
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            first, last, peak = run(os.path.abspath(given.dtrun), given.hosts, given.ranks, folder)
        print(f"{given.hosts} hosts x {given.ranks} ranks: first rank {first:.2f} s, all up {last:.2f} s, root {peak:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
