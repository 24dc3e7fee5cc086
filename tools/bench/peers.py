#!/usr/bin/env python3
"""Time for a job to detect that a GPU cannot read another one, and to start its ranks without peer access.

  tools/bench/peers.py [--rounds 5]

Measures from the exec of dtrun to the first line of a rank, for each fault, without records of an earlier job. CUDA,
NVML and NCCL are test libraries (plugins/nccl/testing) that simulate two GPUs and their faults. The result is
therefore dtrun's time, not that of real GPUs.
"""

import argparse
import subprocess
import tempfile
import time

from measure import BUILD, DTRUN, environment, interleave, print_header, table

FAKES = BUILD / "tests/nccl-fake"
FAULTS = ["none", "refused", "unsupported", "corrupt", "slow", "crash", "hang"]


def first_line(fault):
    """Seconds to the first line, which must report whether peer access is off."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(environment(), DTRUN_FAKE_DEVICES="2", XDG_CACHE_HOME=folder)
        if fault != "none":
            env["DTRUN_FAKE_PEERS"] = f"1>0={fault}"
        argv = [DTRUN, "--set", "job.processes_per_host=2", "--set", f"logs.dir={folder}/{{time}}",
                "--set", "backend.name=nccl", "--set", f"backend.options.library={FAKES}/libnccl.so.2",
                "--set", f"backend.options.cuda_library={FAKES}/libcudart.so.13", "--", "sh", "-c", "echo p2p=$DTRUN_P2P"]
        begin = time.monotonic_ns()
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=env) as job:
            line = job.stdout.readline()
            seconds = (time.monotonic_ns() - begin) / 1e9
            _, said = job.communicate()
        if ("p2p=on" if fault == "none" else "p2p=off") not in line:
            raise SystemExit(f"{fault}: {line}{said}")
        return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print_header(None)
    results = interleave({fault: fault for fault in FAULTS}, options.rounds, first_line)
    table("Launch to the first line of a rank", [(fault, "dtrun", values) for fault, values in results.items()], "s")


if __name__ == "__main__":
    main()
