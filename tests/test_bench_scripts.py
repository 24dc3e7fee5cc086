"""Every script of tools/bench still runs, with as little of its work as it takes; what it measures is not looked at.

networks.py asks stock libraries, which takes minutes: only its line of arguments is read. torch_backend.py needs torch 2 from PyPI,
which tools/setup frameworks installs.
"""

import os
import subprocess
import unittest

from support import lab
from support.job import BUILD, DTRUN, SOURCE, JobTest, main

FRAMEWORKS = SOURCE / "build/frameworks/bin/python3"
# What is run, and what must stand in its answer.
SCRIPTS = {
    "connect.py --ranks 2 --rounds 1": ["| shm |"],
    "hosts.py --hosts 2 --ranks 2 --rounds 1": ["2 hosts x 2 ranks: first rank"],
    "launch.py --ranks 2 --failures 2 --restarts 2 --rounds 1 --without mpirun":
        ["### Launch to the first user line", "| 2 ranks | dtrun (0 survivors) |", "first line after the restart"],
    f"soak.py {DTRUN} --trials kill,stop --rounds 3": ["3 rounds", "0 failures"],
    f"soak.py {DTRUN} --trials restart --rounds 1 --restarts 60": ["60 restarts", "0 failures"],
    f"soak.py {DTRUN} --trials short --rounds 1 --jobs 3": ["3 short jobs", "0 failures"],
    f"healthy_jobs.py --dtrun {DTRUN} --jobs 4": ["0 false accusations"],
    "peers.py --rounds 1": ["| hang |"],
    "plan.py --jobs 64x2": ["| 64x2 | 128 | check |", "| 64x2 | 128 | plan |"],
    "python.py --rounds 1 --calls 100": ["| 1 process | import dtrun |"],
    "staging.py --rate none --megabytes 9 --rounds 1 --repeat 1 --backend gloo": ["| staging over gloo |"],
    "train.py --rounds 1 --epochs 2 --batch 1024": ["2 ranks under dtrun: test accuracy after 2 epochs"],
}
BETWEEN_HOSTS = {
    "link.py --rate none --backend gloo --sizes 8 --rounds 2 --seconds 1": ["gloo"],
    "staging.py --rate 1gbit --megabytes 9 --rounds 1 --repeat 1 --backend gloo": ["1gbit each way", "| staging over gloo |"],
    "overlap.py --rate none --megabytes 1 --rounds 1 --repeat 1 --backend gloo": ["| gloo |"],
    "connectivity.py --rounds 1 --hosts 2 --networks 1": ['interface = "auto"'],
    f"soak.py {DTRUN} --trials kill --rounds 1 --hosts 2": ["1 rounds", "0 failures"],
    f"soak.py {DTRUN} --trials network --rounds 1 --hosts 2": ["lost network", "0 failures"],
    f"soak.py {DTRUN} --trials flap --rounds 1 --hosts 2": ["flapping link", "0 failures"],
    f"soak.py {DTRUN} --trials disk --rounds 1": ["full disk", "0 failures"],
}


class BenchScripts(JobTest):
    def run_script(self, line):
        script, *arguments = line.split()
        environment = dict(self.environment(), DTRUN_BUILD=os.environ["DTRUN_BUILD"])
        return subprocess.run([SOURCE / "tools/bench" / script, *arguments], timeout=200, cwd=self.folder,
                              env=environment, capture_output=True, text=True)

    def run_scripts(self, lines):
        for line, texts in lines.items():
            if line.startswith("peers.py") and not (BUILD / "tests/nccl-fake").exists():
                continue  # the nccl plugin is not built here
            with self.subTest(line):
                done = self.run_script(line)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                for text in texts:
                    self.assertIn(text, done.stdout)

    def test_scripts_of_one_host(self):
        self.run_scripts(SCRIPTS)

    @unittest.skipIf(lab.why_not(), f"no laboratory, because {lab.why_not()}")
    def test_scripts_between_hosts(self):
        self.run_scripts(BETWEEN_HOSTS)

    @unittest.skipUnless(FRAMEWORKS.exists(), f"{FRAMEWORKS} is missing: tools/setup frameworks makes it")
    def test_torch(self):
        self.run_scripts({f"torch_backend.py --python {FRAMEWORKS} --rounds 2 --calls 10": ["dtrun", "gloo"]})

    def test_an_unknown_network_is_answered_with_the_known_ones(self):
        done = self.run_script("networks.py no-such-network")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("docker0_with_one_address_everywhere", done.stderr)

    def test_no_script_is_left_out(self):
        programs = {path.name for path in (SOURCE / "tools/bench").glob("*.py") if os.access(path, os.X_OK)}
        self.assertEqual(programs, {line.split()[0] for line in [*SCRIPTS, *BETWEEN_HOSTS, "networks.py", "torch_backend.py"]})


if __name__ == "__main__":
    main()
