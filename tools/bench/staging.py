#!/usr/bin/env python3
"""Throughput of staging relative to the link and the device's copies: an allreduce in the fake accelerator's memory.

  tools/bench/staging.py [--rate 4gbit | --rate none] [--megabytes 64] [--rounds 6] [--backend gloo,ucx,mpi,mpi-eager] [--repeat 2]

Two ranks, each with its own device (sdk/fake) on its own host (tests/support/lab.py), over a limited link.
With --rate none both run on one host, over the backend's local transport. Each round measures, on the slowest rank:

  wire    the allreduce in the host's memory over the same backend
  pieces  the same in pieces of 4 MiB, as staging does it
  copy    everything from the device to the host, and the same amount back at the same time
  staged  the allreduce in the device's memory
  part = max(wire, copy) / staged: fraction of the slower of the two rates, which is the upper limit

The fake accelerator copies with threads that call memcpy. They share the processors with the wire and its
reductions, unlike a device's copy engines. Needs root and a build with tests.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from measure import BUILD, DTRUN, environment, print_header, urgent
from support.lab import Lab, run

DEVICE = "eth0"  # of a host of the laboratory
# Backend options that select only that device; variables for mpi. Both ranks spin on one pair of processors.
OPTIONS = {"gloo": [f"interface={DEVICE}"], "ucx": [f"devices={DEVICE}", "transports=tcp"]}
TCP = ["OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_mpi_yield_when_idle=1"]
# Open MPI's TCP asks before it sends more than 64 KiB, and the answer queues behind the data on the link.
VARIABLES = {"mpi": TCP, "mpi-eager": [*TCP, *(f"OMPI_MCA_btl_tcp_{name}={4 << 20}" for name in ("eager_limit", "rndv_eager_limit",
                                                                                               "max_send_size"))]}


def limit(lab, rate):
    for holder in lab.holders:
        run("nsenter", "-t", str(holder), "-n", "tc", "qdisc", "add", "dev", DEVICE, "root", "tbf", "rate", rate,
            "burst", "256kb", "latency", "20ms")


def job(lab, backend, words, folder):
    options = [f"backend.name={backend.partition('-')[0]}", "comm.local=none", "output.prefix=none", f"logs.dir={folder}"]
    command = [urgent(folder), BUILD / "bench/staging", *words]
    if lab is None:
        options.append("job.processes_per_host=2")
    else:
        options += ["job.processes_per_host=1", f"cluster.hosts={json.dumps(lab.names)}", f"cluster.remote_shell={json.dumps(lab.shell())}",
                    *(f"backend.options.{option}" for option in OPTIONS.get(backend, []))]
        command = ["env", *VARIABLES.get(backend, []), *command]
    return [*(lab.enter(0) if lab else []), DTRUN, "--plugin-dir", BUILD / "tests/fake",
            *(word for option in options for word in ("--set", option)), "--", *command]


def measure(argv, more):
    """The route, and (seconds of wire, pieces, copies, staged) for every round."""
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, env={**environment(), **more})
    lines = done.stdout.splitlines()
    rounds = [tuple(map(float, line.split()[1:])) for line in lines if line.startswith("staging ")]
    if done.returncode != 0 or not rounds:
        raise SystemExit(f"{argv[0]}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return next(line.removeprefix("route ") for line in lines if line.startswith("route ")), rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="4gbit", help="of each direction, as tc has it; none: loopback")
    parser.add_argument("--megabytes", type=int, default=64, help="of 2^20 bytes")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=2, help="turns of every backend")
    parser.add_argument("--backend", default="gloo,ucx,mpi,mpi-eager")
    options = parser.parse_args()
    words = [str(options.megabytes << 20), str(options.rounds)]
    limited = options.rate != "none"
    print_header(None)
    print(f"{options.megabytes} MiB, two ranks, {options.rate + ' each way' if limited else 'loopback'}\n")
    rounds, routes = {}, {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        lab, more = None, {}
        if limited:
            lab_folder = Path(folder) / "lab"
            lab_folder.mkdir()
            lab = stack.enter_context(contextlib.closing(Lab(lab_folder, 2)))
            more = {"XDG_RUNTIME_DIR": str(lab.runtime_dir(0))}
            limit(lab, options.rate)
        for _ in range(options.repeat):
            for backend in options.backend.split(","):
                routes[backend], times = measure(job(lab, backend, words, folder), more)
                rounds.setdefault(backend, []).extend(times)
    print("| route | wire ms | pieces ms | copy ms | staged ms | part min | median | max | rounds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for backend, times in rounds.items():
        wire, pieces, copy, staged = (1e3 * statistics.median(column) for column in zip(*times))
        part = sorted(max(wire, copy) / staged for wire, _, copy, staged in times)
        print(f"| {routes[backend]}{', eager' * backend.endswith('-eager')} | {wire:.1f} | {pieces:.1f} | {copy:.1f} | {staged:.1f} | {part[0]:.2f} | {statistics.median(part):.2f} | "
              f"{part[-1]:.2f} | {len(times)} |")


if __name__ == "__main__":
    main()
