"""Horovod's API over libdtrun: each program of programs/horovod is a rank.

Runs with the torch of the Python that DTRUN_TEST_TORCH names, of `tools/setup frameworks`, or of Debian.
"""

import shutil
import subprocess

from support.horovod import PROGRAMS, SHIM, HorovodTest, python_with
from support.job import BUILD, DTRUN, SOURCE, main, nightly, skip

PYTHON = python_with("torch", "DTRUN_TEST_TORCH")


class HorovodShim(HorovodTest):
    PYTHON = PYTHON

    def test_operations_in_the_order_of_each_rank(self):
        self.hold(3, "operations.py")

    def test_training_equals_that_of_one_process(self):
        for count in (1, 3):
            self.hold(count, "training.py")

    def test_ranks_that_differ_are_named(self):
        self.hold(3, "errors.py")

    @nightly
    def test_the_same_on_two_ranks(self):
        for name in ("operations.py", "training.py", "errors.py"):
            with self.subTest(name):
                self.hold(2, name)

    def test_an_operation_that_a_rank_never_submits(self):
        limits = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "1", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "3"}
        result = self.hold(3, "errors.py", "stall", self.folder / "told", done="went on", env=self.package(**limits))
        self.assertRegex(result.err + result.out, r"hvd\.allreduce 'late': .*2 of 3 .*rank 1")

    @nightly
    def test_a_rank_that_leaves_is_named(self):
        self.hold(2, "errors.py", "leave", done="was told", absent=[1])

    def test_a_rank_that_leaves_with_an_error_is_named_and_not_those_that_miss_it(self):
        for count, words in ((2, ["shutdown"]), (3, [])):
            with self.subTest(count=count, words=words):
                pid = self.folder / f"pid-{count}-{len(words)}"
                result = self.ranks(count, self.PYTHON, PROGRAMS / "exit.py", pid, *words, env=self.package())
                self.assertEqual(result.code, 3, str(result))
                self.assert_verdict(result, ending=(1, 3), first_failed_rank=1)
                self.assertIn("HorovodInternalError: allreduce 'late': rank 1 ", result.out + result.err)

    @nightly
    def test_an_operation_that_one_rank_cannot_end(self):
        self.hold(2, "errors.py", "memory", done="was told", sets=["backend.timeout=5s"])

    @nightly
    def test_training_continues_from_the_commit_after_a_restart(self):
        result = self.hold(2, "elastic.py", done="continued", sets=["restart.max=1"])
        for rank in range(2):
            self.assertIn(f"generation 0: rank {rank} starts at step 0, 8 samples left", result.out)
            self.assertIn(f"generation 1: rank {rank} starts at step 3, 5 samples left", result.out)

    def test_a_script_that_knows_only_horovod(self):
        self.hold(2, "unmodified.py", env=self.package(SHIM))
        result = self.ranks(2, PYTHON, "-m", "dtrun.horovod", PROGRAMS / "unmodified.py", env=self.package())
        self.assert_ok(result)
        self.assertIn("rank 1 of 2 is done", result.out)

    @nightly
    def test_a_module_that_knows_only_horovod(self):
        """As python -m: the current folder holds it, and its arguments follow."""
        package = self.folder / "pkg"
        package.mkdir()
        text = "import sys, horovod, torch\nprint(sys.argv, __name__, horovod.__version__.partition('+')[2])\n"
        self.write(text, "pkg/train.py")
        command = [PYTHON, "-m", "dtrun.horovod", "-m"]
        result = self.ranks(2, *command, "pkg.train", "--epochs", "5", env=self.package())
        self.assert_ok(result)
        self.assertEqual(result.out.count(f"['{package}/train.py', '--epochs', '5'] __main__ dtrun"), 2, str(result))
        missing = {("nosuch",): "there is no module 'nosuch'", ("a.b",): "there is no module 'a.b'", (): "expected the name"}
        for words, error in missing.items():
            done = subprocess.run([*command, *words], capture_output=True, text=True, env=self.package())
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(error, done.stderr)

    def test_the_config_leads_a_script_to_it(self):
        """As in an installed tree, where the Python package stands beside the program, and Python alone does not find it."""
        prefix = self.folder / "prefix"
        packages = prefix / "lib/python3/dist-packages"
        packages.mkdir(parents=True)
        (prefix / "bin").mkdir()
        shutil.copy(DTRUN, prefix / "bin")
        for file in (BUILD / "lib").iterdir():
            (prefix / "lib" / file.name).symlink_to(file)
        (packages / "dtrun").symlink_to(SOURCE / "python/dtrun")
        command = [prefix / "bin/dtrun", "-n", "2", "--set", "python.horovod=shim", PYTHON, PROGRAMS / "unmodified.py"]
        env = self.package()
        del env["PYTHONPATH"]
        for missing in (False, True):
            with self.subTest(missing=missing):
                if missing:
                    (packages / "dtrun").unlink()
                done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True)
                if missing:
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.golden_lines(done.stderr, "--set python.horovod")
                else:
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertIn("rank 1 of 2 is done", done.stdout)

    def test_horovod_itself_is_not_mixed_with_it(self):
        real = self.folder / "real" / "horovod" / "common"
        real.mkdir(parents=True)
        for file in (real.parent / "__init__.py", real / "__init__.py", real / "basics.py"):
            file.touch()
        text = f"import sys; sys.path.insert(0, '{real.parents[1]}')\nimport horovod.common.basics\n"
        text += "import dtrun.horovod.torch as hvd\nhvd.init()"
        self.golden(self.say(text).splitlines()[-1], f"{real / 'basics.py'}")

    def test_parts_that_are_absent_are_named(self):
        for part in ("mxnet", "spark"):
            self.golden(self.say(f"import horovod.{part}").splitlines()[-1], f"horovod.{part}: ")
            self.golden(self.say(f"import dtrun.horovod.{part}").splitlines()[-1], f"dtrun.horovod.{part}: ")
        hidden = "import sys; sys.modules['tensorflow'] = None\n"  # as where there is none
        for part in ("horovod.tensorflow", "dtrun.horovod.keras", "horovod.tensorflow.keras"):
            self.golden(self.say(f"{hidden}import {part}").splitlines()[-1].replace(str(PYTHON), "python3"), "python3", "TensorFlow")
        self.golden(self.say("import horovod\nhorovod.run(print, np=2)").splitlines()[-1], "horovod.run", "`dtrun")


if __name__ == "__main__":
    if PYTHON is None:
        skip("no Python with torch was found: install python3-torch, run `tools/setup frameworks`, or set DTRUN_TEST_TORCH")
    main()
