#!/usr/bin/env python3
"""Time for the ranks of a job to join, compared with Gloo's own full mesh.

  tools/bench/connect.py [--ranks 128] [--rounds 5] [--backend gloo,ucx] [--without raw-gloo]

Measures from the start of a rank's dtrun_init (or connectFullMesh) to its end, on the slowest rank, as reported
by `dtrun bench`. The result therefore includes the spread of the ranks' start times. Candidates take turns, each
in its own run. Never runs at real-time priority: hundreds of such ranks would starve kernel threads.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from measure import DTRUN, environment, interleave, print_header, table, urgent


def joining(layer, arguments, ranks):
    """Seconds for a layer to join."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "out.json"
        command = [DTRUN, "bench", "barrier", "--np", ranks, "--rounds", "1", "--seconds", "0.1", "--warmup", "0",
                   "--wrap", urgent(folder), "--json", file, *arguments]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment())
        layers = json.loads(file.read_text())["layers"] if file.exists() else []
        times = [one["joining_s"] for one in layers if one["name"] == layer]
        if not times or times[0] is None:
            raise SystemExit(f"{layer} did not start:\n{done.stdout}{done.stderr}")
        return times[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="128")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backend", default="gloo,ucx")
    parser.add_argument("--without", action="append", default=[], help="leave a candidate out")
    options = parser.parse_args()
    print_header(None)
    rows = []
    for ranks in options.ranks.split(","):
        # layer name -> bench options
        candidates = {"shm": ["--local", "shm", "--peers", "none"]}
        for name in options.backend.split(","):
            candidates[name] = ["--local", "none", "--peers", "none", "--backend", name]
        candidates["raw-gloo"] = ["--local", "shm", "--peers", "raw-gloo"]
        for name in options.without:
            candidates.pop(name, None)
        results = interleave({name: (name, arguments) for name, arguments in candidates.items()}, options.rounds,
                             lambda candidate: joining(*candidate, ranks))
        rows += [(f"{ranks} ranks", name, values) for name, values in results.items()]
    table("All ranks have joined", rows, "s")


if __name__ == "__main__":
    main()
