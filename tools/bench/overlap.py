#!/usr/bin/env python3
"""How much of a computation hides an asynchronous allreduce between two namespaces.

  tools/bench/overlap.py [--rate 1gbit] [--megabytes 32] [--rounds 8] [--backend gloo,ucx] [--repeat 2]

Two ranks with one computing thread each; the computation takes as long as the allreduce. The link is limited, so that
the cores are partly idle during the transfer. A spare core would have the same effect.

  hidden = 1 - (both - allreduce) / computation        fraction of the computation, on the slowest rank

MPI_Iallreduce is measured in the same way. Needs root.
"""

import argparse
import statistics
import subprocess
import tempfile

from lab import OPTIONS, Lab
from measure import BUILD, DTRUN, environment, print_header, urgent

def job(lab, backend, words, folder):
    command = [DTRUN]
    for option in ["job.processes_per_host=2", f"backend.name={backend}", "comm.local=none", "output.prefix=none",
                   f"logs.dir={folder}", *(f"backend.options.{option}" for option in OPTIONS.get(backend, []))]:
        command += ["--set", option]
    return [*lab.enter(0), *command, "--", urgent(folder), "ip", "netns", "exec", lab.prefix + "${RANK}",
            BUILD / "bench/overlap", *words]


def measure(argv):
    """(seconds of the allreduce, of the computation, of both) for every round"""
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, env=environment())
    rounds = [tuple(map(float, line.split()[1:])) for line in done.stdout.splitlines() if line.startswith("overlap ")]
    if done.returncode != 0 or not rounds:
        raise SystemExit(f"{argv[0]}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--megabytes", type=int, default=32, help="of 2^20 bytes")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=2, help="turns of every candidate")
    parser.add_argument("--backend", default="gloo,ucx")
    options = parser.parse_args()
    words = [str(options.megabytes << 20), str(options.rounds)]
    print_header(None)
    print(f"{options.megabytes} MiB between two namespaces, {options.rate}\n")
    with Lab(options.rate) as lab, tempfile.TemporaryDirectory() as folder:
        candidates = {name: job(lab, name, words, folder) for name in options.backend.split(",")}
        if (BUILD / "bench/overlap_mpi").exists():
            candidates["MPI_Iallreduce"] = [*lab.mpirun(folder), "-n", "2", urgent(folder), BUILD / "bench/overlap_mpi", *words]
        rounds = {name: [] for name in candidates}
        for _ in range(options.repeat):
            for name, argv in candidates.items():
                rounds[name] += measure(argv)
    print("| candidate | allreduce ms | computation ms | both ms | hidden min | median | max | rounds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, times in rounds.items():
        comm, compute, both = (1e3 * statistics.median(column) for column in zip(*times))
        hidden = sorted(1 - (both - comm) / compute for comm, compute, both in times)
        print(f"| {name} | {comm:.1f} | {compute:.1f} | {both:.1f} | {hidden[0]:.2f} | "
              f"{statistics.median(hidden):.2f} | {hidden[-1]:.2f} | {len(times)} |")


if __name__ == "__main__":
    main()
