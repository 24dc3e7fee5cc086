#!/usr/bin/env python3
"""Launch and failure times, compared with mpirun and torchrun.

  tools/bench/launch.py [--ranks 2,16,64] [--failures 2] [--restarts 2] [--rounds 10] [--torchrun PATH] [--without mpirun]

start    from exec of the launcher to the first line of output
all up   from exec of the launcher to the first instruction of the last rank
failure  from kill -9 of one rank to the exit of the launcher, and how many ranks survive it
restart  from kill -9 of one rank to the first line of the next generation, for launchers that restart
"""

import argparse
import contextlib
import os
import signal
import subprocess
import time

from measure import STAMP, environment, interleave, launchers, print_header, table


def start(argv, ranks):
    """(seconds to the first line, seconds to the last rank's first instruction)"""
    begin = time.monotonic_ns()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, env=environment()) as job:
        first, stamps = None, []
        for line in job.stdout:
            if "stamp " not in line:
                continue
            first = first or time.monotonic_ns()
            stamps.append(int(line.split()[-1]))
    if len(stamps) != ranks or job.returncode != 0:
        raise SystemExit(f"{argv[0]}: {len(stamps)} of {ranks} ranks, exit code {job.returncode}")
    return (first - begin) / 1e9, (max(stamps) - begin) / 1e9


def stay(argv):
    """A job with a program that prints its stamp and waits to be killed."""
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, env=environment())


def read_pids(job, ranks):
    """Waits for the stamps of all ranks; returns (each rank's process, time of the first stamp in ns)."""
    pids, first = {}, None
    while len(pids) < ranks:
        line = job.stdout.readline()
        if not line:
            raise SystemExit(f"{job.args[0]}: ended with {len(pids)} of {ranks} ranks up")
        if "stamp " in line:
            _, rank, pid, _ = line[line.index("stamp "):].split()
            pids[int(rank)] = int(pid)
            first = first or time.monotonic_ns()
    return pids, first


def end_ranks(pids):
    for pid in pids.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def restart(argv, ranks):
    """Seconds from the kill to the first line of the next generation"""
    with stay(argv) as job:
        pids, _ = read_pids(job, ranks)
        time.sleep(1.1)  # dtrun does not restart a failure within its first second
        begin = time.monotonic_ns()
        os.kill(pids[ranks - 1], signal.SIGKILL)
        pids, first = read_pids(job, ranks)
        job.terminate()
        end_ranks(pids)  # torchrun of torch 2.15 leaves them alive
        job.stdout.read()
    return (first - begin) / 1e9


def failure(argv, ranks):
    """(seconds from the kill to the launcher's exit, survivors)"""
    with stay(argv) as job:
        pids, _ = read_pids(job, ranks)
        begin = time.monotonic_ns()
        os.kill(pids[ranks - 1], signal.SIGKILL)
        job.stdout.read()
        job.wait()
        seconds = (time.monotonic_ns() - begin) / 1e9
    deadline = time.monotonic() + 2  # processes that end within 2 s do not count as survivors
    alive = list(pids.values())
    while alive and time.monotonic() < deadline:
        alive = [pid for pid in alive if os.path.exists(f"/proc/{pid}")]
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    return seconds, len(alive)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,16,64")
    parser.add_argument("--failures", default="2", help="ranks of the jobs that lose one")
    parser.add_argument("--restarts", default="2", help="ranks of the jobs that start again")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--without", action="append", default=[], help="leave a launcher out")
    parser.add_argument("--torchrun", help="a torchrun that works here")
    options = parser.parse_args()
    print_header(options.torchrun)
    starts, ups, ends, agains = [], [], [], []
    for ranks in map(int, options.ranks.split(",")):
        candidates = {name: make for name, make in launchers(options.torchrun).items() if name not in options.without}
        commands = {name: make(ranks, [str(STAMP)]) for name, make in candidates.items()}
        for name, values in interleave(commands, options.rounds, lambda argv: start(argv, ranks)).items():
            starts.append((f"{ranks} ranks", name, [first for first, _ in values]))
            ups.append((f"{ranks} ranks", name, [up for _, up in values]))
    for ranks in map(int, options.failures.split(",")):
        commands = {name: make(ranks, [str(STAMP), "stay"]) for name, make in candidates.items()}
        for name, values in interleave(commands, options.rounds, lambda argv: failure(argv, ranks)).items():
            survivors = sum(alive for _, alive in values)
            ends.append((f"{ranks} ranks", f"{name} ({survivors} survivors)", [seconds for seconds, _ in values]))
    for ranks in map(int, options.restarts.split(",")):
        candidates = {name: make for name, make in launchers(options.torchrun, restarts=1).items()
                      if name not in [*options.without, "mpirun"]}
        commands = {name: make(ranks, [str(STAMP), "stay"]) for name, make in candidates.items()}
        for name, values in interleave(commands, options.rounds, lambda argv: restart(argv, ranks)).items():
            agains.append((f"{ranks} ranks", name, values))
    table("Launch to the first user line", starts, "s")
    table("Launch to the first instruction of the last rank", ups, "s")
    table("kill -9 of one rank to the end of the launcher", ends, "s")
    table("kill -9 of one rank to the first line after the restart", agains, "s")


if __name__ == "__main__":
    main()
