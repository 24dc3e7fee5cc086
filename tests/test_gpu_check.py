"""tools/gpu-check: the pack, what it does on a machine without a GPU, and over libraries that stand in for CUDA and NCCL.

A copy of the pack runs in a folder of its own and without the caller's environment, as on a machine to which it was carried."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

from support.job import BUILD, PATIENCE_S, SOURCE, JobTest, main, processes_with
from test_p2p import FAKES

TOOL = SOURCE / "tools/gpu-check"
sys.path.insert(0, str(SOURCE / "tools/gpu_check"))

from processes import Runner  # noqa: E402


def setUpModule():
    global folder, archive
    folder = Path(tempfile.mkdtemp(prefix="dtrun-gpu-check-"))
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    if not (FAKES / "libcudart.so.13").exists():
        raise unittest.SkipTest("the nccl plugin's tests are not built")
    archive = folder / "pack.tar.gz"
    subprocess.run([TOOL, "pack", archive, "--build", BUILD], check=True)
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "unpacked")


class Pack(JobTest):
    def run_here(self, *arguments, **environment):
        pack = self.folder / "gpu-check"
        shutil.copytree(folder / "unpacked/gpu-check", pack, symlinks=True)
        name, value = self.mark.split("=")
        done = subprocess.run([pack / "run", "--out", self.folder / "out", *map(str, arguments)], cwd=self.folder, timeout=PATIENCE_S,
                              env={name: value, **environment}, capture_output=True, text=True, check=False)
        report = self.folder / "out/report.json"
        steps = {step["name"]: step for step in json.loads(report.read_text())["steps"]} if report.exists() else {}
        return done, steps

    def over_fakes(self, only, *arguments):
        return self.run_here("--libraries", FAKES, "--only", only, *arguments, DTRUN_FAKE_DEVICES="1", DTRUN_FAKE_MEMORY="known")

    def assert_results(self, steps, result, *names):
        for name in names:
            self.assertEqual(steps[name]["result"], result, f"{steps[name]}\n{steps[name].get('output')}")

    def test_is_small_and_whole(self):
        self.assertLessEqual(archive.stat().st_size, 64 << 20)
        pack = folder / "unpacked/gpu-check"
        for file in pack.rglob("*"):
            self.assertTrue(file.exists(), f"{file} is a link to nothing")
            self.assertFalse(file.is_symlink() and os.path.isabs(os.readlink(file)), file)
        self.assertIn("glibc", json.loads((pack / "manifest.json").read_text())["needs"])

    @unittest.skipIf(Path("/dev/nvidia0").exists(), "this machine has a GPU")
    def test_without_a_gpu_each_step_says_why_it_was_skipped(self):
        done, steps = self.run_here()
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertGreater(len(steps), 25)
        for step in steps.values():
            self.assertIn(step["result"], ("ok", "skipped"), step)
            if step["result"] == "skipped":
                self.assertRegex(done.stdout, rf"{step['name']} .* skipped, because \S+")
        self.assertRegex(steps["operations-1"]["because"], "^there is no CUDA device: ")
        self.assert_results(steps, "ok", "plugin-nccl")
        self.assertIn("failed, ", (self.folder / "out/report.txt").read_text())

    def test_over_fakes_it_does_all_that_needs_one_process_and_staging(self):
        done, steps = self.over_fakes("")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_results(steps, "ok", "identity", "plugin-cuda", "plugin-nccl", "doctor", "plan", "operations-1", "streams-1",
                            "refusals-1", "staging-shm", "staging-gloo", "staging-abort", "staging-deadline", "staging-mismatch", "staging-hang", "bench-1")
        self.assert_results(steps, "skipped", "operations-2", "mismatch", "ddp", "train-mlp")
        self.assertIn("stands in for a real one", steps["operations-2"]["because"])
        self.assertIn("nothing of this ran on a GPU", done.stdout)
        self.assertEqual({row["layer"] for row in steps["bench-1"]["facts"]["rows"]}, {"dtrun", "bare, not blocking"})

    def test_its_own_glibc_carries_its_programs(self):
        done, steps = self.over_fakes("^(plugin-nccl|operations-1|staging-shm)$", "--own-loader")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_results(steps, "ok", "plugin-nccl", "operations-1", "staging-shm")
        self.assertIn("glibc of the pack", (self.folder / "out/report.txt").read_text())
        self.assertEqual(subprocess.run([self.folder / "gpu-check/prefix/bin/dtrun", "--version"], check=False,
                                        env={"LD_LIBRARY_PATH": str(self.folder / "gpu-check/deps")}).returncode, 0, "it is as it was")

    def test_mistakes_are_named(self):
        for arguments, text in ((["--only", "("], "no regular expression"), (["--minutes", "-1"], "must be above 0"),
                                (["--libraries", "/nowhere"], "'/nowhere', which is no folder")):
            done, _ = self.run_here(*arguments)
            shutil.rmtree(self.folder / "gpu-check")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)
        done = subprocess.run([TOOL, "pack", self.folder / "x.tar.gz", "--build", self.folder], capture_output=True, text=True, check=False)
        self.assertIn("is no build of dtrun", done.stderr)
        done = subprocess.run([TOOL, "pack", self.folder / "x.zip"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)


class Processes(JobTest):
    def test_what_a_command_leaves_is_killed(self):
        runner = Runner(self.folder / "steps")
        hanging = "import os, time; os.fork() or os.setsid(); print('here', flush=True); time.sleep(100)"
        start = time.monotonic()
        done = runner.run("hang", [sys.executable, "-c", hanging], 1, self.environment(), self.folder)
        self.assertIsNone(done.code)
        self.assertIn("here", done.out)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(runner.survivors(), [])
        runner.run("leave", ["sh", "-c", "setsid sleep 100 & exit 0"], 30, self.environment(), self.folder)
        self.assertEqual(processes_with(runner.all), [])


if __name__ == "__main__":
    main()
