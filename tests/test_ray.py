"""dtrun.ray.run: bundles of a placement group of Ray as the hosts of a job, on a cluster of two nodes on this machine.

Runs where `tools/setup frameworks` has fetched ray, into build/frameworks.
"""

import os
import signal
import subprocess
from pathlib import Path

from support.job import SOURCE, main, skip
from support.python import FAILS_EARLY, PythonTest

PYTHON = SOURCE / "build/frameworks/bin/python3"
DRIVER = """
import os, time
import dtrun, dtrun.ray, ray
from ray.cluster_utils import Cluster

def total(start, step=1):
    with dtrun.init() as world:
        value = bytearray((start + step * world.rank).to_bytes(8, "little"))
        world.allreduce(memoryview(value).cast("q"))
        return world.rank, world.size, int.from_bytes(value, "little")

def one_fails():
    if os.environ["RANK"] == "1":
        raise KeyError("no such column")
    time.sleep(1000)

def wait():
    print("waiting", flush=True)
    time.sleep(1000)

def outcome(*arguments, **named):
    try:
        print("returned", dtrun.ray.run(*arguments, **named), flush=True)
    except dtrun.Error as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        if isinstance(error, dtrun.JobFailed):
            print(f"rank {error.rank}, code {error.exit_code}, class", error.verdict and error.verdict["exit_class"], flush=True)

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
cluster.add_node(num_cpus=2)
ray.init(address=cluster.address, log_to_driver=False)
print("Ray has started", flush=True)
"""


class Ray(PythonTest):
    def start_driver(self, text):
        for _ in range(5):  # Ray gives its nodes 30 s to start, which a busy machine may not keep
            job = self.start_python(DRIVER + text, python=PYTHON)
            if job.process.stdout.readline() == "Ray has started\n":
                return job
            result = job.finish()
        self.fail(f"Ray does not start: {result}")

    def wait_for(self, job, text, count):
        for _ in range(count):
            self.assertIn(text, job.process.stdout.readline())

    def test_results_and_failures(self):
        early = self.write(FAILS_EARLY, "sitecustomize.py").parent
        result = self.start_driver(
            "outcome(total, (1,), {'step': 10}, num_proc=3)\n"
            "outcome(total, (1,), num_proc=2, strategy='STRICT_SPREAD')\n"
            "outcome(one_fails, num_proc=2)\n"
            "outcome(one_fails, num_proc=2, config={'logs.dir': '/proc/nowhere'})\n"
            f"outcome(total, (1,), num_proc=2, env={{'PYTHONPATH': '{early}'}})\n"
            "outcome(total, num_proc=50, placement_timeout=0.5)\n"
            "outcome(total, num_proc=0)\n"
            "ray.util.placement_group.placement_group = None  # no task may start\n"
            "outcome(one_fails, num_proc=2, config={'backend.nme': 'x'})\n").finish()
        self.assert_ok(result)
        self.assertIn("returned [(0, 3, 33), (1, 3, 33), (2, 3, 33)]\n", result.out, str(result))
        self.assertIn("returned [(0, 2, 3), (1, 2, 3)]\n", result.out, str(result))
        self.assertIn("KeyError: 'no such column'\nrank 1, code 1, class user-error\n", result.out)
        self.assertIn("/proc/nowhere", result.out)
        self.assertIn("rank None, code 2, class None\n", result.out)
        self.assertIn("\nrank 1, code 3, class user-error\n", result.out)
        self.assertRegex(result.out, "InvalidArgument: dtrun.ray.run: --set backend.nme=x: .*'backend.name'")
        self.assertIn("50 bundles of {'CPU': 1} (PACK) in 0.5 s", result.out)
        self.assertIn("num_proc is 0; ", result.out)

    def test_a_lost_worker_ends_the_job_with_a_verdict(self):
        job = self.start_driver("outcome(wait, num_proc=2)")
        self.wait_for(job, "waiting", 2)
        os.kill(worker_of_host(1), signal.SIGKILL)
        result = job.finish()
        self.assertRegex(result.out, "JobFailed: .*'wait' .*SIGTERM", str(result))
        self.assertIn("rank None, code 143, class preemption\n", result.out)

    def test_ctrl_c_ends_every_rank(self):
        job = self.start_driver("dtrun.ray.run(wait, num_proc=2)")
        self.wait_for(job, "waiting", 2)
        job.signal(signal.SIGINT)
        result = job.finish()
        self.assertIn("KeyboardInterrupt", result.err)


def worker_of_host(index):
    """Pid of the process of Ray that has started dtrun as this host of the job."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = entry.joinpath("cmdline").read_text().split("\0")
            parent = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            of_parent = Path(f"/proc/{parent}/cmdline").read_text()
        except OSError:
            continue  # gone
        if "--host-index" in words and words[words.index("--host-index") + 1] == str(index) and of_parent.startswith("ray::"):
            return parent
    raise AssertionError(f"no task of Ray has started host {index}")


if __name__ == "__main__":
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import ray"], capture_output=True, check=False).returncode != 0:
        skip(f"{PYTHON} has no ray: `tools/setup frameworks` fetches it from PyPI")
    main()
