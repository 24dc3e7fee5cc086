#!/usr/bin/env python3
"""Backends between two network namespaces, compared with the libraries themselves over the same link.

  tools/bench/link.py [--rate 1gbit | --rate none] [--backend gloo,ucx,mpi] [BENCH-OPTION ...]

All other options go to `dtrun bench`, which runs with two ranks, one in each namespace; for
example --sizes 8:64M --seconds 30 --json link.json. Needs root. A token bucket limits each
direction. The next run removes what a killed run leaves behind.
"""

import argparse
import subprocess
import sys
import tempfile

from lab import DEVICE, OPTIONS, Lab
from measure import DTRUN, environment, print_header, urgent


def bench(lab, backends, options, folder):
    """The command line of `dtrun bench` between the two namespaces."""
    first = urgent(folder)
    command = [*lab.enter(0), DTRUN, "bench", "allreduce", "--np", "2", "--local", "none",
               "--backend", backends, "--peers", "raw-gloo,raw-mpi,raw-ucx",
               "--wrap", f"{first} ip netns exec {lab.prefix}${{RANK}}",
               "--mpirun", " ".join([first, *lab.mpirun(folder)])]
    for name in backends.split(","):
        for option in OPTIONS.get(name, []):
            command += ["--set", f"{name}:backend.options.{option}"]
    return [str(word) for word in command] + options


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit", help="of each direction, as tc has it; none: unlimited")
    parser.add_argument("--backend", default="gloo,ucx,mpi")
    options, others = parser.parse_known_args()
    print_header(None)
    print(f"link between two namespaces, {options.rate}", flush=True)
    with Lab(options.rate) as lab, tempfile.TemporaryDirectory() as folder:
        variables = dict(environment(), GLOO_SOCKET_IFNAME=DEVICE, UCX_TLS="tcp", UCX_NET_DEVICES=DEVICE)
        return subprocess.run(bench(lab, options.backend, others, folder), env=variables).returncode


if __name__ == "__main__":
    sys.exit(main())
