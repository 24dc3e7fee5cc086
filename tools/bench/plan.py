#!/usr/bin/env python3
"""Processor time and memory of `dtrun config check`, `dtrun plan` and `dtrun plan --json`, per rank of a large job.

  tools/bench/plan.py [--jobs 1024x1,8192x8,1000x1000] [--verbs check,plan,json] [--dtrun build/release/bin/dtrun]

Exits with 1 if a job of 65,536 ranks or more exceeds the budget: BUDGET_US of processor time and BUDGET_BYTES of
memory per rank. Smaller jobs are measured but not judged: most of their cost is fixed.

seconds   wall-clock time, which other programs on this machine increase
us/rank   processor time of dtrun and its probe together, microseconds per rank
bytes/rank  peak memory of dtrun, per rank; probe: of its probe
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time

from hosts import is_dtrun
from measure import DTRUN

BUDGET_US = {"check": 20, "plan": 40, "json": 100}
BUDGET_BYTES = 1300
LARGE = 65536
VERBS = {"check": ["config", "check"], "plan": ["plan"], "json": ["plan", "--json"]}


def config(hosts, slots, folder):
    """A hostfile, because it may be longer than a config file."""
    names = os.path.join(folder, "hosts")
    with open(names, "w") as file:
        file.write("".join(f"h{i} slots={slots}\n" for i in range(hosts)))
    path = os.path.join(folder, "job.toml")
    with open(path, "w") as file:
        file.write(f'[job]\ncommand = ["true"]\n[cluster]\nhostfile = "{names}"\n[backend]\nname = "none"\n')
    return path


def probe_peak(pid, peaks, ended):
    """The peak VmHWM of children in bytes, polled until they end."""
    while not ended.is_set():
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                names = [name for name in children.read().split() if is_dtrun(name)]
            for name in names:
                with open(f"/proc/{name}/status") as status:
                    peaks += [int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")]
        except OSError:
            pass
        time.sleep(0.01)


def measure(dtrun, verb, path):
    """Seconds, seconds of processor time, bytes of dtrun, bytes of its probe."""
    begin = time.monotonic()
    process = subprocess.Popen([dtrun, *VERBS[verb], path], stdout=subprocess.DEVNULL)
    peaks, ended = [0], threading.Event()
    watch = threading.Thread(target=probe_peak, args=(process.pid, peaks, ended))
    watch.start()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    ended.set()
    watch.join()
    if process.returncode != 0:
        sys.exit(f"dtrun {' '.join(VERBS[verb])} exited with {process.returncode}")
    # These times include the reaped children; the peaks are separate.
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, max(peaks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="1024x1,8192x8,1000x1000", help="HOSTSxSLOTS,...")
    parser.add_argument("--verbs", default="check,plan", help=",".join(VERBS))
    parser.add_argument("--dtrun", default=str(DTRUN))
    arguments = parser.parse_args()
    over = []
    print("| job | ranks | verb | seconds | us/rank | bytes/rank | probe |\n| --- | --- | --- | --- | --- | --- | --- |")
    for job in arguments.jobs.split(","):
        hosts, slots = (int(number) for number in job.split("x"))
        ranks = hosts * slots
        with tempfile.TemporaryDirectory() as folder:
            path = config(hosts, slots, folder)
            for verb in arguments.verbs.split(","):
                seconds, busy, size, probe = measure(arguments.dtrun, verb, path)
                us, each = busy * 1e6 / ranks, size / ranks
                print(f"| {job} | {ranks} | {verb} | {seconds:.2f} | {us:.1f} | {each:.0f} | {probe / ranks:.0f} |", flush=True)
                if ranks >= LARGE and (us > BUDGET_US[verb] or each > BUDGET_BYTES):
                    over.append(f"{job}: {verb}: {us:.1f} us and {each:.0f} bytes for a rank; the budget is "
                                f"{BUDGET_US[verb]} us and {BUDGET_BYTES} bytes")
    if over:
        sys.exit("\n".join(over))


if __name__ == "__main__":
    main()
