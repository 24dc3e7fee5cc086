#!/usr/bin/env python3
"""Runs many short healthy jobs under load and counts false accusations: verdicts, warnings, places.

    tools/bench/healthy_jobs.py --dtrun build/release/bin/dtrun --jobs 1000 [--at-once 4] [--python /usr/bin/python3]

All jobs are healthy and must end with code 0, although job.isolated_ranks and watch.on_stall are "fail". Any complaint
in the output, or any other exit code, is a false accusation. Kinds of jobs take turns; kinds with packages that
the Python lacks are left out. Exit code 0 if there was no false accusation.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time

GROUP = "import torch, torch.distributed as d, os; "
STEPS = "\nfor _ in range(20): d.all_reduce(torch.ones(100))\nd.barrier(); d.destroy_process_group()\n"
# Steps of unequal length, of which no rank has the longer ones; rank 0 saves now and then.
UNEVEN = """
import random, time, torch, torch.distributed as d
d.init_process_group("gloo")
weights = torch.ones(200, 200)
for step in range(200):
    weights @ weights
    time.sleep(random.expovariate(50))
    if step % 60 == 59 and d.get_rank() == 0: time.sleep(0.3)
    d.all_reduce(weights)
d.barrier(); d.destroy_process_group()
"""
JAX = """
import os, jax
jax.distributed.initialize(f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", int(os.environ['WORLD_SIZE']), int(os.environ['RANK']))
import jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("d",)); n = jax.process_count()
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("d")), np.full((1,), jax.process_index() + 1.0, np.float32))
assert float(jax.jit(lambda v: v.sum(), out_shardings=NamedSharding(mesh, P()))(x)) == n * (n + 1) / 2
"""
KINDS = {
    "sh": ("", None),
    "torch": ("torch", GROUP + "d.init_process_group('gloo')" + STEPS),
    "torch-file": (
        "torch",
        GROUP + "d.init_process_group('gloo', init_method='file://' + os.environ['MEET'], rank=int(os.environ['RANK']), "
        "world_size=int(os.environ['WORLD_SIZE']))" + STEPS,
    ),
    "torch-late": ("torch", "import time, torch; time.sleep(1.5)\n" + GROUP + "d.init_process_group('gloo')" + STEPS),
    "uneven": ("torch", UNEVEN),
    "jax": ("jax", JAX),
}
ACCUSATIONS = ("not joined each other", "not seen to join", "no progress", "failed", "stood", "still needed", "others wait")


def has(python, package):
    look = f"import importlib.util as u, sys; sys.exit(not u.find_spec('{package}'))"
    return not package or subprocess.run([python, "-c", look], check=False).returncode == 0


def run(options, folder, number, kind):
    script = KINDS[kind][1]
    command = ["sh", "-c", "sleep 0.$RANK"] if script is None else [options.python, "-c", script]
    sets = ["job.processes_per_host=2", "backend.name=none", "job.isolated_ranks=fail", "watch.stall=30s", "watch.on_stall=fail"]
    words = [word for one in sets for word in ("--set", one)]
    environment = {**os.environ, "MEET": str(folder / f"meet-{number}"), "JAX_PLATFORMS": "cpu"}
    begin = time.monotonic()
    done = subprocess.run(
        [options.dtrun, *words, "--set", f"logs.dir={folder}/run-{number}", "--", *command],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
    )
    said = [line for line in done.stderr.splitlines() if any(text in line for text in ACCUSATIONS)]
    return kind, done.returncode, said, done.stderr, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtrun", type=os.path.abspath, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    kinds = [kind for kind in options.kinds.split(",") if has(options.python, KINDS[kind][0])]
    seen, false, longest = collections.Counter(), 0, 0.0
    with tempfile.TemporaryDirectory(prefix="dtrun-healthy-") as name:
        folder = pathlib.Path(name)
        with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
            jobs = [pool.submit(run, options, folder, i, kinds[i % len(kinds)]) for i in range(options.jobs)]
            for job in concurrent.futures.as_completed(jobs):
                kind, code, said, text, seconds = job.result()
                seen[kind] += 1
                longest = max(longest, seconds)
                if code == 0 and not said:
                    continue
                false += 1
                print(f"--- {kind}: exit code {code}: {said}\n{text}", flush=True)
    print(f"{sum(seen.values())} jobs ({dict(seen)}), {options.at_once} at once, the longest {longest:.1f} s: {false} false accusations")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
