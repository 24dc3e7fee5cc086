"""Shared by the steps of a run: the pack, the detected libraries, and jobs of dtrun with them."""

import json
import os
import re
import time
from pathlib import Path

import machine
from processes import Runner

DEVICE_BACKEND = ["backend.name=cpu:gloo,cuda:nccl", "backend.gloo.interface=lo", "backend.nccl.interface=lo", "backend.nccl.rdma=off"]
STAGING = ["backend.name=cpu:gloo,cuda:gloo", "backend.gloo.interface=lo"]
ON_CPU = ["backend.name=gloo", "backend.gloo.interface=lo"]
# NCCL rejects two ranks on one device of a host. With different host ids they count as two hosts.
APART = ["sh", "-c", 'NCCL_HOSTID="gpu-check-$RANK" exec "$@"', "rank"]
TRANSPORT = re.compile(r"via \S+|Using network \S+|NET/\S+ : Using .*|nRanks \d+ nNodes \d+ localRanks \d+")


class Skipped(Exception):
    """The step cannot be tried here; the text explains why."""


class Failed(Exception):
    """The step failed; the text explains how."""


class Check:
    def __init__(self, pack, out, libraries, rehearse=False):
        self.pack, self.out, self.rehearse = pack, out, rehearse
        self.prefix, self.programs = pack / "prefix", pack / "programs"
        self.machine = machine.describe(libraries)
        self.runner = Runner(out / "steps")
        self.facts, self.last, self.link_flags = {}, None, []
        self.results = {}  # by name, for the steps tried, as in the report
        self.compiling = None
        self.deadline = time.monotonic() + 60  # of the current step
        self.device = self.reason = None  # from the probe

    @property
    def stands_in(self):
        return bool(self.facts.get("nccl", {}).get("stands_in"))

    @property
    def dtrun(self):
        return self.prefix / "bin/dtrun"

    def left(self):
        """Seconds left for the step."""
        return max(self.deadline - time.monotonic(), 0)

    def plugin(self, kind, name):
        return self.prefix / f"lib/dtrun/plugins/libdtrun_{kind}_{name}.so"

    def environment(self, **more):
        """The environment of commands: the detected libraries, and none of the caller's dtrun variables."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DTRUN_", "NCCL_", "RANK", "WORLD_SIZE"))
                or key.startswith("DTRUN_FAKE_")}
        folders = [self.pack / "deps", *(Path(file).parent for file in (self.machine["nccl"], self.machine["cudart"]) if file)]
        kept.update(LD_LIBRARY_PATH=":".join([*dict.fromkeys(map(str, folders)), *self.of_caller()]),
                    NCCL_DEBUG="WARN", NCCL_NET="Socket", NVIDIA_TF32_OVERRIDE="0", XDG_CACHE_HOME=str(self.out / "cache"), OMP_NUM_THREADS="2")
        kept.update(more)
        return kept

    def of_caller(self):
        """The caller's library path, plus the driver's folder if the loader does not search it."""
        return [folder for folder in (os.environ.get("LD_LIBRARY_PATH"), self.machine["driver_folder"]) if folder]

    def run(self, name, words, **more):
        self.last = self.runner.run(name, words, self.left(), self.environment(**more), self.out)
        if self.last.code is None:
            raise Failed(f"not over after {self.last.seconds:.0f} s: {last_line(self.last.text) or 'no output'}")
        return self.last

    def job(self, name, ranks, words, sets=DEVICE_BACKEND, apart=True, timeout_s=20, **more):
        """A job of dtrun. `apart`: every rank is its own host for NCCL. NCCL's log is beside the output."""
        overrides = [f"job.processes_per_host={ranks}", "job.grace=2s", f"backend.timeout={timeout_s}s", *sets]
        nccl = {} if "NCCL_DEBUG" in more else {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(self.out / f"steps/{name}.nccl.%p")}
        return self.run(name, [self.dtrun, "run", "-v", *(word for item in overrides for word in ("--set", item)), "--",
                               *(APART if apart else []), *words], **nccl, **more)

    def torch_job(self, name, ranks, words, **more):
        """A job of Python with torch, which brings its own libraries. The library path starts with the caller's, such
        as the driver's, and ends with libdtrun's dependencies."""
        folders = ":".join([*self.of_caller(), str(self.pack / "deps")])
        environment = {"PYTHONPATH": str(self.prefix / "lib/python3/dist-packages"), "NCCL_SOCKET_IFNAME": "=lo", "NCCL_IB_DISABLE": "1",
                       "GLOO_SOCKET_IFNAME": "lo", "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "PYTHONDONTWRITEBYTECODE": "1", **more}
        return self.job(name, ranks, ["env", f"LD_LIBRARY_PATH={folders}", self.machine["python"], *words], **environment)

    def transport(self, name):
        """The lines in which NCCL reports how the ranks of a job connected."""
        files = sorted((self.out / "steps").glob(f"{name}.nccl.*"))
        found = {match[0].rstrip() for file in files for match in TRANSPORT.finditer(file.read_text(errors="replace"))}
        return sorted(found)

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
        done = self.run("probe", [machine.PYTHON, Path(__file__).parent / "probe.py", self.machine["nccl"] or "", self.machine["cudart"] or ""])
        try:
            return json.loads(done.out)
        except ValueError:
            raise Failed(cause(done)) from None


def said_by_ranks(done):
    return [re.sub(r"^\[\d+\] ", "", line) for line in done.out.splitlines()]


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return re.sub(r"^\[\d+\] ", "", lines[-1]) if lines else ""


def cause(done):
    """The most informative line about a failure."""
    lines = [line for line in done.text.splitlines() if line.strip()]
    for pattern in (r"device_program: rank", r"beside_nccl:", r"Error: ", "failed after", r"[Ee]rror"):
        found = [line for line in lines if re.search(pattern, line)]
        if found:
            said = [line.strip() for line in lines if re.match(r" +\| \S", line)] if pattern == "failed after" else []  # of the rank
            return " ".join([found[0].strip(), *said[-1:]])[:300]
    return (lines[-1].strip() if lines else "no output")[:300]
