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

from support.job import BUILD, PATIENCE_S, SOURCE, JobTest, main, nightly, processes_with, until
from test_p2p import FAKES

TOOL = SOURCE / "tools/gpu-check"
sys.path.insert(0, str(SOURCE / "tools/gpu_check"))

import torch_steps  # noqa: E402
from check import Failed  # noqa: E402
from machine import find_python  # noqa: E402
from pack import COMMAND_S  # noqa: E402
from processes import Runner  # noqa: E402
from steps import STEPS  # noqa: E402


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
    pack = property(lambda self: own if (own := self.folder / "gpu-check").exists() else folder / "unpacked/gpu-check")

    def change_the_pack(self):
        """From here on the test has a copy of its own."""
        shutil.copytree(self.pack, self.folder / "gpu-check", symlinks=True)

    def started(self, *arguments, **environment):
        name, value = self.mark.split("=")
        return subprocess.Popen([self.pack / "run", "--out", self.folder / "out", "--patience", "10", "--minutes", "90", *map(str, arguments)], cwd=self.folder,
                                env={name: value, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_here(self, *arguments, **environment):
        with self.started(*arguments, **environment) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err), self.steps()

    def steps(self):
        report = self.folder / "out/report.json"
        return {step["name"]: step for step in json.loads(report.read_text())["steps"]} if report.exists() else {}

    def packed(self):
        """The steps as the archive has them."""
        file = self.folder / "out.tar.gz"
        if not file.exists():
            return {}
        with tarfile.open(file) as archive:
            return {step["name"]: step for step in json.load(archive.extractfile("gpu-check-results/report.json"))["steps"]}

    FAKED = {"DTRUN_FAKE_DEVICES": "1", "DTRUN_FAKE_MEMORY": "known"}

    def over_fakes(self, only, *arguments):
        return self.run_here("--libraries", FAKES, "--only", only, *arguments, **self.FAKED)

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
        self.assertTrue((pack / "share/dtrun/failures.toml").exists(), "programs/nccl_library_test looks there")

    def test_the_steps_fit_into_three_commands(self):
        plan = [line.split() for line in (folder / "unpacked/gpu-check/README").read_text().splitlines() if line.startswith("    command ")]
        self.assertEqual([line[4] for line in plan], [step["name"] for step in STEPS])
        for command in {line[1] for line in plan}:
            self.assertIn(command, "123")
            self.assertLessEqual(sum(int(line[2]) for line in plan if line[1] == command), COMMAND_S)
        for i, step in enumerate(STEPS):
            self.assertLessEqual(set(step["needs"]), {earlier["name"] for earlier in STEPS[:i]}, step["name"])

    @unittest.skipIf(Path("/dev/nvidia0").exists(), "this machine has a GPU")
    def test_without_a_gpu_each_step_says_why_it_was_skipped(self):
        done, steps = self.run_here()
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(list(steps), [step["name"] for step in STEPS])
        for step in steps.values():
            self.assertIn(step["result"], ("ok", "skipped"), step)
            if step["result"] == "skipped":
                self.assertRegex(done.stdout, rf"{step['name']} .* skipped, because \S+")
        self.golden(steps["operations-1"]["because"].partition(": ")[0], "CUDA")
        self.assert_results(steps, "ok", "plugin-nccl")
        self.assertIn("failed, ", (self.folder / "out/report.txt").read_text())

    @nightly
    def test_over_fakes_it_does_all_that_needs_one_process_and_staging(self):
        done, steps = self.over_fakes("")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_results(steps, "ok", "identity", "plugin-cuda", "plugin-nccl", "doctor", "plan", "operations-1", "capture-1", "order-1", "large-1",
                            "streams-1", "refusals-1", "staging-shm", "staging-large", "staging-beside", "staging-order", "staging-streams", "staging-gloo",
                            "staging-abort", "staging-deadline", "staging-mismatch", "staging-hang", "rate-staging", "bench-1")
        self.assert_results(steps, "skipped", "operations-2", "mismatch", "torch-first-staging", "ddp-nccl-1", "train-mlp")
        self.assertEqual(sum("captured in" in line for line in steps["capture-1"]["facts"]["lines"]), 3)
        self.golden_lines("\n".join(steps["staging-large"]["facts"]["lines"]), "37748756 bytes")
        self.assertIn("slower", " ".join(steps["rate-staging"]["facts"]["lines"]))
        self.assertEqual(self.packed(), steps)
        self.golden(steps["operations-2"]["because"])
        self.assertIn(" GPU", done.stdout)
        rows = steps["bench-1"]["facts"]["rows"]
        self.assertEqual({(row["layer"], row["reduce"]) for row in rows if row["layer"] != "bare"},
                         {(layer, how) for layer in ("dtrun", "bare, not blocking", "copy") for how in ("sum", "avg")})

    def test_a_run_that_is_ended_has_written_what_it_found_and_is_resumed(self):
        only = ["--libraries", FAKES, "--only", "^(plugin-nccl|staging-hang|staging-abort)$"]
        with self.started(*only, **self.FAKED) as process:
            until(lambda: self.packed().get("staging-hang", {}).get("result") == "running", "the archive to say that the step runs")
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
        self.assert_results(self.packed(), "ok", "identity", "staging-abort")
        done, steps = self.run_here("--resume", *only, **self.FAKED)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assert_results(steps, "ok", "staging-abort", "plugin-nccl")
        self.golden(steps["staging-hang"]["because"])
        self.assertNotRegex(done.stdout, "(?m)^staging-")

    def test_what_has_no_time_waits_for_another_run(self):
        only = "^(operations-1|plugin-nccl)$"
        done, steps = self.over_fakes(only, "--minutes", 0.2)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assert_results(steps, "waiting", "operations-1", "plugin-nccl")
        self.assertIn("--resume tries it", done.stdout)
        done, steps = self.over_fakes(only, "--resume")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_results(steps, "ok", "operations-1", "plugin-nccl")

    def test_what_needs_a_step_that_failed_is_skipped(self):
        self.change_the_pack()
        (self.pack / "programs/device_program").write_text("#!/bin/sh\nexit 9\n")
        done, steps = self.over_fakes("^[acoslr].*-1$|^staging-")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual({name for name, step in steps.items() if step["result"] == "failed"}, {"operations-1", "staging-shm"})
        self.golden(steps["capture-1"]["because"], "operations-1", "exit code")

    @nightly
    @unittest.skipUnless(find_python()["torch"], "this machine has no torch")
    def test_torch_is_rehearsed_on_the_cpu(self):
        done, steps = self.run_here("--rehearse", "--only", "^(torch-order-staging|ddp-staging-2)$", PATH=os.environ["PATH"])
        self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
        self.assert_results(steps, "ok", "torch-order-staging", "ddp-staging-2")

    def test_a_rehearsal_without_a_device_fails_by_that_alone(self):
        only = ["--rehearse", "--libraries", FAKES, "--only", "^(operations-1|staging-shm|bench-1|hang|abi)$"]
        none = {**self.FAKED, "DTRUN_FAKE_DEVICES": "0"}
        done, steps = self.run_here(*only, **none)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        for name in ("operations-1", "staging-shm", "bench-1", "hang"):
            self.golden(steps[name]["because"].partition(": ")[0])
        self.change_the_pack()
        (self.pack / "prefix/lib/dtrun/plugins/libdtrun_device_cuda.so").unlink()
        done, steps = self.run_here(*only, **none)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(steps["staging-shm"]["result"], "failed")

    def test_what_compute_sanitizer_finds_is_told(self):
        tool = self.folder / "bin/compute-sanitizer"
        tool.parent.mkdir()
        for errors, result in ((0, "ok"), (2, "failed")):
            tool.write_text(f'#!/bin/sh\nshift 4\n"$@"\nprintf "========= Invalid read of size 4\\n========= ERROR SUMMARY: {errors} errors\\n"\n')
            tool.chmod(0o755)
            done, steps = self.run_here("--libraries", FAKES, "--only", "^initcheck-staging$", PATH=f"{tool.parent}:/usr/bin:/bin", **self.FAKED)
            self.assert_results(steps, result, "initcheck-staging")
        self.golden(steps["initcheck-staging"]["because"])

    def test_other_weights_are_named(self):
        results = {"ddp-gloo-2": {"result": "ok", "facts": {"digest": "ab"}}, "ddp-gloo-1": {"result": "ok", "facts": {"digest": "ef"}}}
        self.assertEqual(torch_steps.equal_to(results, "ddp-nccl-2", "ab"), ["ddp-gloo-2"])
        with self.assertRaisesRegex(Failed, "differ from those of ddp-gloo-2"):
            torch_steps.equal_to(results, "ddp-nccl-2", "cd")

    def test_its_own_glibc_carries_its_programs(self):
        self.change_the_pack()
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
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)
        done = subprocess.run([TOOL, "pack", self.folder / "x.tar.gz", "--build", self.folder], capture_output=True, text=True, check=False)
        self.golden(done.stderr, f"{self.folder}")
        done = subprocess.run([TOOL, "pack", self.folder / "x.tar.xz"], capture_output=True, text=True, check=False)
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
