"""What the steps of a run share: the pack, the libraries that were found, and jobs of dtrun over them."""

import json
import os
import re
from pathlib import Path

import machine
from processes import Runner

DEVICE_BACKEND = ["backend.name=cpu:gloo,cuda:nccl", "backend.gloo.interface=lo", "backend.nccl.interface=lo", "backend.nccl.rdma=off"]
# NCCL refuses two ranks on a device of one host; with a host's name of their own they are on two.
APART = ["sh", "-c", 'NCCL_HOSTID="gpu-check-$RANK" exec "$@"', "rank"]


class Skipped(Exception):
    """The step cannot be tried here; the text says why."""


class Failed(Exception):
    """The step is not as it should be; the text says how."""


class Check:
    def __init__(self, pack, out, libraries):
        self.pack, self.out = pack, out
        self.prefix, self.programs = pack / "prefix", pack / "programs"
        self.machine = machine.describe(libraries)
        self.runner = Runner(out / "steps")
        self.facts, self.last, self.link_flags, self.left = {}, None, [], lambda: 60.0
        self.device = self.reason = None  # what the probe says

    @property
    def stands_in(self):
        return bool(self.facts.get("nccl", {}).get("stands_in"))

    @property
    def dtrun(self):
        return self.prefix / "bin/dtrun"

    def plugin(self, kind, name):
        return self.prefix / f"lib/dtrun/plugins/libdtrun_{kind}_{name}.so"

    def environment(self, **more):
        """What commands run with: the libraries found, and nothing of a dtrun of the caller's."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DTRUN_", "NCCL_", "RANK", "WORLD_SIZE"))
                or key.startswith("DTRUN_FAKE_")}
        folders = [self.pack / "deps", *(Path(file).parent for file in (self.machine["nccl"], self.machine["cudart"]) if file)]
        before = os.environ.get("LD_LIBRARY_PATH")
        kept.update(LD_LIBRARY_PATH=":".join([*dict.fromkeys(map(str, folders)), *([before] if before else [])]),
                    NCCL_DEBUG="WARN", NCCL_NET="Socket", NVIDIA_TF32_OVERRIDE="0", DTRUN_NCCL_PLUGIN=str(self.plugin("backend", "nccl")),
                    XDG_CACHE_HOME=str(self.out / "cache"), OMP_NUM_THREADS="2")
        kept.update(more)
        return kept

    def run(self, name, words, limit_s, **more):
        self.last = self.runner.run(name, words, min(limit_s, self.left()), self.environment(**more), self.out)
        if self.last.code is None:
            raise Failed(f"not over after {self.last.seconds:.0f} s")
        return self.last

    def job(self, name, ranks, words, limit_s=60, sets=DEVICE_BACKEND, apart=True, **more):
        """A job of dtrun. `apart`: every rank is a host of its own to NCCL."""
        overrides = [f"job.processes_per_host={ranks}", "job.grace=2s", "backend.timeout=30s", *sets]
        return self.run(name, [self.dtrun, "-v", *(word for item in overrides for word in ("--set", item)), "--",
                               *(APART if apart else []), *words], limit_s, **more)

    def expect_code(self, done, wanted=0):
        if done.code == 77:
            raise Skipped(last_line(done.out) or "its program says so")
        if done.code != wanted:
            raise Failed(f"exit code {done.code}: {cause(done)}")

    def expect_text(self, done, *patterns):
        for pattern in patterns:
            if not re.search(pattern, done.text):
                raise Failed(f"nothing like '{pattern}' in: {cause(done)}")

    def probe(self):
        done = self.run("probe", [machine.PYTHON, Path(__file__).parent / "probe.py", self.machine["nccl"] or "", self.machine["cudart"] or ""], 60)
        try:
            return json.loads(done.out)
        except ValueError:
            raise Failed(cause(done)) from None


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return re.sub(r"^\[\d+\] ", "", lines[-1]) if lines else ""


def cause(done):
    """The line that says most about a failure."""
    lines = [line for line in done.text.splitlines() if line.strip()]
    for pattern in ("failed after", r"device_program: rank", r"beside_nccl:", r"[Ee]rror"):
        found = [line for line in lines if re.search(pattern, line)]
        if found:
            return found[0].strip()[:300]
    return (lines[-1].strip() if lines else "no output")[:300]
