"""Horovod's API for TensorFlow and Keras over libdtrun: each program of programs/horovod/tensorflow is a rank.

Runs with the TensorFlow of the Python that DTRUN_TEST_TENSORFLOW names, or of `tools/setup frameworks`.
"""

import subprocess
import unittest

from support.horovod import PROGRAMS, SHIM, HorovodTest, python_with
from support.job import main, skip

PYTHON = python_with("tensorflow", "DTRUN_TEST_TENSORFLOW")
KERAS_2 = {"TF_USE_LEGACY_KERAS": "1"}


def has_keras_2():
    return subprocess.run([PYTHON, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('tf_keras'))"]).returncode == 0


class HorovodTensorFlow(HorovodTest):
    PYTHON = PYTHON

    def package(self, *paths, **more):
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "TF_NUM_INTRAOP_THREADS": "1"}
        return super().package(*paths, **{**quiet, **more})

    def test_operations(self):
        for count in (2, 3):
            self.hold(count, "tensorflow/operations.py")

    def test_training_equals_that_of_one_process(self):
        for count in (1, 2, 3):
            self.hold(count, "tensorflow/training.py")

    def test_training_with_keras_2(self):
        if not has_keras_2():
            raise unittest.SkipTest(f"{PYTHON} has no tf_keras: `pip install tf_keras`")
        self.hold(2, "tensorflow/training.py", env=self.package(**KERAS_2))

    def test_training_continues_from_the_commit_after_a_restart(self):
        result = self.hold(2, "tensorflow/elastic.py", done="continued", sets=["restart.max=1"])
        for rank in range(2):
            self.assertIn(f"generation 0: rank {rank} starts at epoch 0, step 0", result.out)
            self.assertIn(f"generation 1: rank {rank} starts at epoch 2, step 4", result.out)

    def test_a_script_that_knows_only_horovod(self):
        self.hold(2, "tensorflow/unmodified.py", env=self.package(SHIM))
        result = self.ranks(2, PYTHON, "-m", "dtrun.horovod", PROGRAMS / "tensorflow/unmodified.py", env=self.package())
        self.assert_ok(result)
        self.assertIn("rank 1 of 2 is done", result.out)


if __name__ == "__main__":
    if PYTHON is None:
        skip("no Python with TensorFlow was found: run `tools/setup frameworks`, or set DTRUN_TEST_TENSORFLOW")
    main()
