#!/usr/bin/env python3
"""Step time of dtrun-train at 1 and 2 ranks, equal global batch, one BLAS thread per rank.

  tools/bench/train.py [--rounds 5] [--model mlp] [--batch 128]

The step time is the global batch divided by the samples/s that dtrun-train prints. The
first epoch of each run is excluded.
"""

import argparse
import re
import subprocess

from measure import BUILD, DTRUN, environment, interleave, print_header, table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    train = [BUILD / "bin/dtrun-train", "--model", options.model, "--batch", str(options.batch),
             "--epochs", str(options.epochs)]
    accuracies = {}

    def step_ms(argv):
        done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, env=environment())
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        accuracies.setdefault(str(argv), []).append(re.findall(r"test accuracy (0\.\d+)", done.stdout)[-1])
        rates = [float(rate) for rate in re.findall(r"(\d+) samples/s", done.stdout)[1:options.epochs]]
        return 1e3 * options.batch / max(rates)

    candidates = {"alone, without dtrun": train}
    for ranks in (1, 2):
        candidates[f"{ranks} rank{'s' if ranks > 1 else ''} under dtrun"] = [
            DTRUN, "--set", f"job.processes_per_host={ranks}", "--set", "job.env.OMP_NUM_THREADS=1",
            "--set", "logs.dir=/tmp/dtrun-bench/{time}", "--", *train]
    print_header(None)
    results = interleave(candidates, options.rounds, step_ms)
    table(f"dtrun-train, {options.model}, global batch {options.batch}: time of a step",
          [(options.model, name, values) for name, values in results.items()], "ms")
    for name, argv in candidates.items():
        print(f"{name}: test accuracy after {options.epochs} epochs {', '.join(accuracies[str(argv)])}")


if __name__ == "__main__":
    main()
