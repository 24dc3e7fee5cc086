"""Shared by the benchmarks: launchers as command lines, interleaving, and the table of results.

All candidates are compared within one run: round by round, A then B then C. The header
contains the facts that decide whether two runs are comparable.
"""

import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DTRUN_BUILD", SOURCE / "build/release"))
DTRUN = BUILD / "bin/dtrun"
STAMP = BUILD / "bench/stamp"

# For the hosts that the tests create.
sys.path.insert(0, str(SOURCE / "tests"))
os.environ.setdefault("DTRUN_BUILD", str(BUILD))
os.environ.setdefault("DTRUN_SOURCE", str(SOURCE))


def urgent(folder):
    """A program to prefix to a rank's command. It raises the priority of its session, and so of the whole job, if
    Linux groups processes by session and the caller is root. (A nice value only counts inside such a group. With a
    real-time priority a rank's computation would keep its communication threads off the core.)"""
    program = Path(folder) / "urgent"
    if not program.exists():
        program.write_text('#!/bin/sh\necho -20 2>/dev/null >/proc/self/autogroup\nexec "$@"\n')
        program.chmod(0o755)
    return str(program)


def launchers(torchrun, restarts=0):
    """Name -> function from (ranks, command) to argv, for every installed launcher. mpirun does not restart jobs."""
    found = {
        "dtrun": lambda n, command: [
            DTRUN, "--set", f"job.processes_per_host={n}", "--set", f"restart.max={restarts}", "--set", "logs.dir=/tmp/dtrun-bench/{time}", "--", *command]
    }
    if shutil.which("mpirun"):
        found["mpirun"] = lambda n, command: ["mpirun", "--oversubscribe", "-np", str(n), *command]
    if torchrun:
        found["torchrun"] = lambda n, command: [
            torchrun, "--standalone", f"--nproc-per-node={n}", f"--max-restarts={restarts}", "--no-python", *command]
    return found


def environment():
    out = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    out.setdefault("OMP_NUM_THREADS", "1")
    return out


def versions(torchrun):
    out = {"dtrun": subprocess.run([DTRUN, "--version"], capture_output=True, text=True).stdout.strip()}
    if shutil.which("mpirun"):
        out["mpirun"] = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    if torchrun:
        python = Path(torchrun).parent / "python3"
        probe = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
        out["torchrun"] = f"torch {probe.stdout.strip()}"
    return out


def blas():
    path = os.path.realpath("/usr/lib/x86_64-linux-gnu/libblas.so.3")
    return re.sub(r".*/x86_64-linux-gnu/", "", path)


def print_header(torchrun):
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} cores, kernel {platform.release()}, load {load}, BLAS {blas()}")
    for name, version in versions(torchrun).items():
        print(f"{name}: {version}")
    print()


def interleave(candidates, rounds, measure):
    """candidates: name -> thing; returns name -> list of `rounds` results of measure(thing)."""
    results = {name: [] for name in candidates}
    for name in candidates:
        measure(candidates[name])  # warm-up, not counted
    for _ in range(rounds):
        for name in candidates:
            results[name].append(measure(candidates[name]))
    return results


def table(title, rows, unit):
    """rows: (what, name, values). Prints a Markdown table of minimum, median and maximum."""
    print(f"### {title}\n\n| case | candidate | min {unit} | median {unit} | max {unit} | runs |")
    print("| --- | --- | --- | --- | --- | --- |")
    for what, name, values in rows:
        print(f"| {what} | {name} | {min(values):.4g} | {statistics.median(values):.4g} | {max(values):.4g} | {len(values)} |")
    print()
