"""The main job: real data, one and two ranks, the same accuracy."""

import os
import re
import shutil
import signal
import subprocess

from support.fashion_mnist import DATA, small
from support.job import BUILD, SOURCE, JobTest, main, nightly, skip

TRAIN = BUILD / "bin" / "dtrun-train"


def accuracy(text):
    return float(re.findall(r"test accuracy (0\.\d+)", text)[-1])


class Train(JobTest):
    def environment(self, **more):
        # Under the thread sanitizer tools/test says 1: OpenMP's barriers are invisible to it.
        if "OMP_NUM_THREADS" in os.environ:
            more.setdefault("OMP_NUM_THREADS", os.environ["OMP_NUM_THREADS"])
        # Threads that spin at OpenMP's barriers take most of two busy cores.
        more.setdefault("OMP_WAIT_POLICY", "passive")
        return super().environment(**more)

    def train(self, ranks, *arguments):
        return self.ranks(ranks, TRAIN, *arguments)

    @nightly
    def test_two_ranks_reach_what_one_reaches(self):
        results = {}
        for ranks in (1, 2):
            result = self.train(ranks, "--model", "mlp", "--epochs", "5", "--batch", "128")
            self.assert_ok(result)
            self.assertEqual(len(re.findall(r"epoch \d/5 .*loss .*test accuracy .* samples/s", result.out)), 5, result.out)
            results[ranks] = accuracy(result.out)
            self.assertGreaterEqual(results[ranks], 0.865)
        self.assertLessEqual(abs(results[1] - results[2]), 0.01, results)

    @nightly
    def test_it_says_where_it_trains(self):
        env = self.environment(CUDA_VISIBLE_DEVICES="")
        for device in "auto", "cpu":
            result = self.ranks(1, TRAIN, "--epochs", "1", "--device", device, "--data", small(self.folder / device), env=env)
            self.assert_ok(result)
            self.golden_lines(result.out, "1 rank (cpu, ")
        for wrong in ("banana", "gpu", "CUDA", "cuda:-1"):
            result = self.ranks(1, TRAIN, "--device", wrong)
            self.assertNotEqual(result.code, 0)
            self.golden_lines(result.err, f"'{wrong}'")

    def test_the_quickstart_config_is_this_job(self):
        environment = self.environment(PATH=f"{TRAIN.parent}:{os.environ['PATH']}")
        result = self.dtrun("plan", SOURCE / "configs/quickstart.toml", env=environment)
        self.assert_ok(result)
        self.assertIn("2 ranks", result.out)
        self.assertIn(f"{TRAIN} --model mlp --epochs 5 --batch 128", result.out)

    def test_a_cnn_trains(self):
        result = self.train(2, "--model", "cnn", "--epochs", "1", "--batch", "64", "--data", small(self.folder / "small"))
        self.assert_ok(result)
        self.assertGreater(accuracy(result.out), 0.3)

    def test_an_interrupted_run_goes_on_from_its_checkpoint(self):
        file = self.folder / "model.pt"
        common = [TRAIN, "--epochs", "6", "--checkpoint", file, "--data", small(self.folder / "small", images=10000)]
        whole = self.ranks(2, *common)
        self.assert_ok(whole)
        file.unlink()
        shutil.rmtree(self.folder / "runs")
        job = self.start_ranks(2, *common, "--resume", file)  # a job that may restart has both from the start
        job.wait_for_line(0, "epoch 2/6")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().code, 143)
        result = self.ranks(2, *common, "--resume", file)
        self.assert_ok(result)
        self.assertIn(f"of '{file}'", result.out)
        self.assertNotIn("epoch 1/6", result.out)
        self.assertAlmostEqual(accuracy(result.out), accuracy(whole.out), delta=0.002)

    @nightly
    def test_a_finished_run_continues_with_more_epochs(self):
        file = self.folder / "model.pt"
        common = [TRAIN, "--checkpoint", file, "--resume", file, "--data", small(self.folder / "small", images=1000)]
        self.assert_ok(self.ranks(2, *common, "--epochs", "1"))
        shutil.rmtree(self.folder / "runs")
        result = self.ranks(2, *common, "--epochs", "2")
        self.assert_ok(result)
        self.assertIn("epoch 2/2", result.out)
        self.assertNotIn("epoch 1/2", result.out)

    def test_a_batch_that_does_not_divide_is_refused(self):
        result = self.train(2, "--batch", "33")
        self.assertNotEqual(result.code, 0)
        self.assertIn("33", result.err)

    def test_an_unknown_option_is_named(self):
        result = self.train(1, "--modl", "cnn")
        self.assertEqual(result.code, 2, str(result))
        self.golden_lines(result.err, "'--modl'", "dtrun-train --help")
        result = self.train(1, "--epochs", "many")
        self.assertEqual(result.code, 2, str(result))
        self.golden_lines(result.err, "dtrun-train: --epochs: 'many'", "100000", "dtrun-train --help")

    def test_a_terminal_obeys_nothing_of_a_message(self):
        for words in (["--\x1b[2Jx"], ["--model", "\x1b[2Jx"], ["--data", "/no\x1b[2Jx"]):
            result = subprocess.run([TRAIN, *words], env=self.environment(), cwd=self.folder, capture_output=True, text=True, check=False)
            self.assertNotEqual(result.returncode, 0, str(result))
            self.assertIn("\\u001b[2Jx", result.stderr)
            self.assertNotIn("\x1b", result.stderr)

    def test_missing_data_says_how_to_get_it(self):
        result = self.train(2, "--data", self.folder / "nowhere")
        self.assertNotEqual(result.code, 0)
        self.assertIn("nowhere", result.err)
        self.assertIn("dataset-fashion-mnist", result.err)

    def test_truncated_data_is_named(self):
        copy = self.folder / "data"
        copy.mkdir()
        for file in DATA.iterdir():
            (copy / file.name).write_bytes(file.read_bytes())
        broken = copy / "train-images-idx3-ubyte.gz"
        broken.write_bytes(broken.read_bytes()[:100000])
        result = self.train(2, "--data", copy)
        self.assertNotEqual(result.code, 0)
        self.assertIn("train-images-idx3-ubyte", result.err)


if __name__ == "__main__":
    if not TRAIN.exists():
        skip("dtrun-train was not built: libtorch was not found when this build was configured")
    if not DATA.exists():
        skip("the package dataset-fashion-mnist is not installed")
    main()
