#!/usr/bin/env python3
"""Small allreduces called from Python, and how long `import dtrun` takes.

  tools/bench/python.py [--python /path/of/python3] [--rounds 5] [--calls 10000]

Two ranks, one float64 per call, sequential calls: dtrun's package with a numpy array and, if the interpreter has
torch, with a tensor, compared with torch's gloo.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

SCRIPT = os.path.abspath(__file__)


def with_numpy():
    import dtrun
    import numpy

    world, values = dtrun.init(), numpy.zeros(1)
    return world.rank, world.barrier, lambda: world.allreduce(values), dtrun.finalize


def with_tensor():
    import dtrun
    import torch

    world, values = dtrun.init(), torch.zeros(1, dtype=torch.float64)
    return world.rank, world.barrier, lambda: world.allreduce(values), dtrun.finalize


def with_gloo():
    import torch
    import torch.distributed as distributed

    distributed.init_process_group("gloo")
    values = torch.zeros(1, dtype=torch.float64)
    end = distributed.destroy_process_group
    return distributed.get_rank(), distributed.barrier, lambda: distributed.all_reduce(values), end


CANDIDATES = {"dtrun, numpy": with_numpy, "dtrun, torch tensor": with_tensor, "torch's gloo": with_gloo}


def rank(candidate, calls):
    """The program of each rank; rank 0 prints microseconds per call."""
    number, barrier, call, end = CANDIDATES[candidate]()
    for _ in range(100):
        call()
    barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    spent = time.perf_counter() - begin
    if number == 0:
        print(spent / calls * 1e6, flush=True)
    end()


def driver(options):
    from measure import BUILD, DTRUN, SOURCE, environment, interleave, print_header, table

    package = {"PYTHONPATH": str(SOURCE / "python"), "DTRUN_LIBRARY": str(BUILD / "lib/libdtrun.so.1")}
    env = {**environment(), **package}

    def has(module):
        return subprocess.run([options.python, "-c", f"import {module}"], capture_output=True).returncode == 0

    def microseconds(candidate):
        with tempfile.TemporaryDirectory() as folder:
            argv = [DTRUN, "-n", "2", "--set", f"logs.dir={folder}/{{time}}", "--set", "output.prefix=none", "--",
                    options.python, SCRIPT, "--rank", candidate, "--calls", str(options.calls)]  # fmt: skip
            done = subprocess.run(argv, env=env, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{candidate}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return float(done.stdout)

    def milliseconds(code):
        begin = time.perf_counter()
        subprocess.run([options.python, "-c", code], env=env, check=True)
        return (time.perf_counter() - begin) * 1e3

    print_header(None)
    chosen = {name: name for name in CANDIDATES if has("numpy" if "numpy" in name else "torch")}
    results = interleave(chosen, options.rounds, microseconds)
    table(f"allreduce of 8 bytes, {options.calls} calls", [("2 ranks", *each) for each in results.items()], "us")
    results = interleave({"nothing": "pass", "import dtrun": "import dtrun"}, 4 * options.rounds, milliseconds)
    table("An interpreter from start to end", [("1 process", *each) for each in results.items()], "ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that is measured")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    options = parser.parse_args()
    rank(options.rank, options.calls) if options.rank else driver(options)


if __name__ == "__main__":
    main()
