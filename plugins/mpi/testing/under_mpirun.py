#!/usr/bin/env python3
"""Runs a test program under mpirun: one process per rank, a fresh folder that they share.

    under_mpirun.py --mpirun PATH -n RANKS [--survive] PROGRAM [ARGUMENT ...]

Root may start it, as in a container. --survive: mpirun does not end the job when a rank dies.
The exit status is mpirun's.
"""
import argparse
import os
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpirun", required=True)
    parser.add_argument("-n", type=int, required=True)
    parser.add_argument("--survive", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dtrun-mpi-") as folder:
        environment = dict(os.environ, SUITE_FOLDER=folder, OMPI_ALLOW_RUN_AS_ROOT="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        command = [given.mpirun, "-n", str(given.n), "--oversubscribe", "-x", "SUITE_FOLDER"]
        if given.survive:
            command += ["--mca", "orte_enable_recovery", "1"]
        return subprocess.run(command + given.command, env=environment, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
