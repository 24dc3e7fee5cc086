#!/usr/bin/env python3
"""Exposes jobs to common faults for hours, and looks for survivors, leftovers and growth.

Each round starts a job in which each rank has a child in its own session, and applies a random one of these trials
(--trials selects them):

  kill     SIGKILL to one of its processes: dtrun's own, an ssh client, an sshd, a rank, a child
  stop     SIGSTOP to one of them, SIGCONT a moment later
  restart  a rank fails in each of --restarts generations; checks memory, descriptors, mappings, zombies of dtrun
  short    --jobs jobs that end at once
  disk     the disk of the run directory fills (root)
  network  the link of a host goes down (--hosts)
  flap     it goes down and up again (--hosts)
  clock    the machine's clock jumps by an hour and back (root; only if named in --trials, on your own machine)

Afterwards each remaining process, segment in /dev/shm, socket, socket folder or control group is
reported as a failure. --load keeps that many processors busy. With --hosts the job runs on that many network
namespaces with an sshd each (root).

  tools/bench/soak.py build/release/bin/dtrun [--minutes 60] [--rounds N] [--trials kill,stop] [--hosts 3] [--load 2]
"""

import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from endurance import places, trials  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dtrun")
    parser.add_argument("--minutes", type=float, default=60, help="no more rounds after this time")
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    parser.add_argument("--trials", default="", help="by comma: " + ",".join(trials.TRIALS))
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=2, help="on each host")
    parser.add_argument("--restarts", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    unknown = [name for name in filter(None, arguments.trials.split(",")) if name not in trials.TRIALS]
    if unknown:
        parser.error(f"--trials: unknown {', '.join(unknown)}; known are {', '.join(trials.TRIALS)}")
    return arguments


def chosen(arguments):
    """The trials to draw from: name -> (trial, weight)."""
    asked = [name for name in arguments.trials.split(",") if name]
    have = {"": True, "root": os.geteuid() == 0, "hosts": arguments.hosts > 1, "asked": False}
    if asked:
        return {name: trials.TRIALS[name][:2] for name in asked}
    return {name: (trial, weight) for name, (trial, weight, need) in trials.TRIALS.items() if have[need]}


def main():
    arguments = parse()
    chance = random.Random(arguments.seed)
    drawn = chosen(arguments)
    settings = trials.Settings(restarts=arguments.restarts, jobs=arguments.jobs)
    dtrun = os.path.abspath(arguments.dtrun)
    times, failures = collections.defaultdict(list), []
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(arguments.load)]
    with tempfile.TemporaryDirectory() as folder:
        place = places.Hosts(dtrun, arguments.ranks, arguments.hosts, folder) if arguments.hosts > 1 else \
            places.ThisHost(dtrun, arguments.ranks, folder)
        try:
            end = time.monotonic() + 60 * arguments.minutes
            for number in range(arguments.rounds):
                if time.monotonic() > end:
                    break
                name = chance.choices(list(drawn), [weight for _, weight in drawn.values()])[0]
                outcome = drawn[name][0](place, chance, settings)
                times[outcome.what].append(outcome.seconds)
                if outcome.failures:
                    failures.append(f"round {number}, {outcome.what}: {outcome.failures}")
                    print(failures[-1], file=sys.stderr, flush=True)
        finally:
            place.close()
            for process in busy:
                process.kill()
                process.wait()
    print(f"{sum(map(len, times.values()))} rounds, load {os.getloadavg()[1]:.1f}")
    for what, all_times in sorted(times.items()):
        print(f"{len(all_times):5} x {what:34}  {sorted(all_times)[len(all_times) // 2]:.3f} s"
              f" median, {max(all_times):.3f} s at most")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
