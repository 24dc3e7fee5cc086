#!/usr/bin/env python3
"""torch.distributed over dtrun compared with torch's gloo: a DDP step of 7.1 M parameters, an all_reduce of 8 bytes.

  tools/bench/torch_backend.py [--python build/frameworks/bin/python3] [--rounds 60] [--batch 64] [--calls 10000]

Both backends are groups of the same two processes, which alternate step by step. A barrier before each step lets the
ranks start together. The step is forward, backward and SGD, with one BLAS thread per rank.
"""

import argparse
import os
import subprocess
import sys
import time

from measure import BUILD, DTRUN, SOURCE, environment, print_header, table

LAYERS = [784, 2048, 2048, 640, 10]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=SOURCE / "build/frameworks/bin/python3", help="with torch 2")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--calls", type=int, default=10000)
    options = parser.parse_args()
    if "DTRUN_RANK" in os.environ:
        return rank_of(options)
    words = ["--rounds", options.rounds, "--batch", options.batch, "--calls", options.calls]
    ranks = [DTRUN, "-q", "-n", 2, "--set", "logs.dir=/tmp/dtrun-bench/{time}", "--set", "output.prefix=none", "--"]
    done = subprocess.run(
        [str(word) for word in [*ranks, options.python, __file__, *words]],
        env=dict(environment(), PYTHONPATH=str(SOURCE / "python"), DTRUN_LIBRARY=str(BUILD / "lib/libdtrun.so.1")),
    )
    return done.returncode


def network():
    import torch

    torch.manual_seed(0)
    layers = []
    for inputs, outputs in zip(LAYERS, LAYERS[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def rank_of(options):
    import torch
    import torch.distributed as dist

    import dtrun.torch

    torch.set_num_threads(1)
    dist.init_process_group("dtrun")
    groups = {"dtrun": dist.group.WORLD, "torch's gloo": dist.new_group(backend="gloo"), "none": None}
    steps, models = step_times(options, groups)
    calls = call_times(options, {name: group for name, group in groups.items() if group is not None})
    if dist.get_rank() == 0:
        print_header(None)
        print(f"torch {torch.__version__}, {sum(p.numel() for p in network().parameters())} parameters, batch {options.batch} a rank")
        pairs = zip(models["dtrun"].parameters(), models["torch's gloo"].parameters())
        print(f"weights after {options.rounds} steps equal: {all(torch.equal(a, b) for a, b in pairs)}\n")
        table("DDP step, 2 ranks", [("step", name, values) for name, values in steps.items()], "ms")
        table("all_reduce of 8 bytes, 2 ranks", [("call", name, values) for name, values in calls.items()], "us")
    dist.destroy_process_group()
    return 0


def step_times(options, groups):
    """Milliseconds per step, by group, and the models; the first tenth of the rounds is warm-up."""
    import torch
    import torch.distributed as dist

    torch.manual_seed(dist.get_rank())
    x, y = torch.randn(options.batch, LAYERS[0]), torch.randint(0, LAYERS[-1], (options.batch,))
    wrap = torch.nn.parallel.DistributedDataParallel
    models = {name: network() if group is None else wrap(network(), process_group=group) for name, group in groups.items()}
    optimizers = {name: torch.optim.SGD(model.parameters(), lr=0.01) for name, model in models.items()}
    times = {name: [] for name in groups}
    for _ in range(options.rounds):
        for name, model in models.items():
            dist.barrier()
            begin = time.perf_counter()
            optimizers[name].zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizers[name].step()
            times[name].append(1e3 * (time.perf_counter() - begin))
    return {name: values[options.rounds // 10 :] for name, values in times.items()}, models


def call_times(options, groups, parts=10):
    """Microseconds per call, by group: means over a tenth of the calls each, in turn."""
    import torch
    import torch.distributed as dist

    x = torch.zeros(2)
    times = {name: [] for name in groups}
    for _ in range(parts):
        for name, group in groups.items():
            calls = max(1, options.calls // parts)
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(calls):
                dist.all_reduce(x, group=group)
            times[name].append(1e6 * (time.perf_counter() - begin) / calls)
    return times


if __name__ == "__main__":
    sys.exit(main())
