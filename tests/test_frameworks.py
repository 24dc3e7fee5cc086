"""Unmodified scripts of the frameworks that PyPI has: PyTorch 2, Lightning, accelerate, transformers, DeepSpeed,
TensorFlow, JAX, mpi4py; those of torch with its own gloo and with dtrun in gloo's place.

Runs where `tools/setup frameworks` has fetched them, into build/frameworks.
"""

from support.frameworks import PLACE, PYTHON, SCRIPTS, TORCH_BACKENDS, needs, needs_compiler, require, settings
from support.job import JobTest, main


class Frameworks(JobTest):
    def run_script(self, name, *words, sets=(), torch_backend="gloo"):
        return self.ranks(2, PYTHON, SCRIPTS / name, *words, sets=[*settings(torch_backend), *sets])

    def assert_both_say(self, result, text):
        self.assert_ok(result)
        for rank in range(2):
            self.assertIn(text.format(rank), result.out)
        self.assertNotIn("have not joined", result.err)

    def hold_with_torch(self, text, name, *words, sets=()):
        for backend in TORCH_BACKENDS:
            with self.subTest(backend=backend, words=words):
                self.assert_both_say(self.run_script(name, *words, sets=sets, torch_backend=backend), f"{text} over {backend}")

    @needs("torch")
    def test_torch_of_today_without_a_process_group_is_named(self):
        script = (
            "import time; begin = time.monotonic(); import torch\n"
            "end = time.monotonic() + 4 * (time.monotonic() - begin) + 4\n"
            "x = torch.ones(400, 400, requires_grad=True); loss = (x @ x).sum()\n"
            "while time.monotonic() < end: loss.backward(retain_graph=True)\n"
        )
        result = self.ranks(2, PYTHON, "-c", script)
        self.assert_ok(result)
        self.assertRegex(result.err, "have not joined .*PyTorch")

    @needs("torch")
    def test_torch_of_today(self):
        self.hold_with_torch("rank {} of 2 agrees", "../programs/ddp.py")

    @needs("torch")
    def test_fsdp2(self):
        self.hold_with_torch("rank {} of 2 took 4 steps", "fsdp2_train.py")

    @needs("lightning")
    def test_lightning_with_a_process_for_each_rank(self):
        self.hold_with_torch("rank {} of 2 took 4 steps", "lightning_fit.py", "ddp", 2, 1)

    @needs("lightning")
    def test_lightning_that_spawns_by_itself(self):
        self.hold_with_torch("rank {} of 2 took 4 steps", "lightning_fit.py", "ddp_spawn", 2, 1, sets=["launcher.name=per-node"])

    @needs("accelerate")
    def test_accelerate(self):
        self.hold_with_torch("rank {} of 2 took 4 steps, sum 3,", "accelerate_train.py")

    @needs("accelerate")
    def test_the_own_tests_of_accelerate(self):
        folder = next(PLACE.glob("lib/python3*/site-packages/accelerate/test_utils/scripts"))
        tests = {"test_script": "Num processes: 2", "test_sync": "Test Distributed `no_sync`"}  # its others are for GPUs
        for name, text in tests.items():
            for backend in TORCH_BACKENDS:
                with self.subTest(name=name, backend=backend):
                    sets = [*settings(backend), "job.env.ACCELERATE_USE_CPU=true"]
                    result = self.ranks(2, PYTHON, folder / f"{name}.py", sets=sets)
                    self.assert_ok(result)
                    self.assertIn(text, result.out)

    @needs("transformers")
    def test_the_trainer_of_hugging_face(self):
        self.hold_with_torch("rank {} of 2 took 4 steps", "transformers_train.py", self.folder / "out")

    @needs("deepspeed")
    @needs_compiler
    def test_deepspeed(self):
        self.assert_both_say(self.run_script("deepspeed_train.py"), "rank {} of 2: sum 3")
        for stage in (1, 2, 3):
            self.hold_with_torch(f"rank {{}} of 2 took 4 steps at stage {stage}", "deepspeed_zero.py", stage)

    @needs("jax")
    def test_jax(self):
        self.assert_both_say(self.run_script("jax_sum.py", sets=["job.dialects=jax"]), "rank {} of 2: sum 3")
        self.assert_both_say(self.run_script("jax_sum.py", "address"), "rank {} of 2: sum 3")

    @needs("tensorflow")
    def test_tensorflow_by_tf_config(self):
        for sets in ([], ["job.roles={worker=2}"]):
            with self.subTest(sets=sets):
                sets = [*sets, 'job.dialects=["tf-config"]']
                self.assert_both_say(self.run_script("tensorflow_train.py", sets=sets), "worker {} of 2: sum 3")

    @needs("tensorflow")
    def test_a_training_loop_of_tensorflow(self):
        result = self.run_script("tensorflow_loop.py", sets=['job.dialects=["tf-config"]'])
        self.assert_both_say(result, "worker {} of 2 took 4 steps")

    @needs("tensorflow")
    def test_a_job_with_parameter_servers_ends_with_its_chief(self):
        sets = ["job.roles={chief=1, worker=2, ps=1}", 'job.dialects=["tf-config"]']
        result = self.ranks(4, PYTHON, SCRIPTS / "tensorflow_parameter_server.py", sets=sets)
        self.assert_ok(result)
        self.assertIn("chief: 10 steps on /job:ps/", result.out)
        self.assertRegex(result.err, "chief .*ranks 1-3 ")

    @needs("mpi4py")
    def test_mpi4py_with_and_without_mpirun(self):
        for sets in (["job.pmi=pmix"], ["launcher.name=mpirun"]):
            with self.subTest(sets=sets):
                self.assert_both_say(self.run_script("mpi4py_sum.py", sets=sets), "rank {} of 2: sum 3")

    @needs("mpi4py")
    def test_the_own_benchmarks_of_mpi4py(self):
        result = self.ranks(2, PYTHON, "-m", "mpi4py.bench", "helloworld", sets=["job.pmi=pmix"])
        self.assert_both_say(result, "I am process {} of 2")
        self.assertIn("(2 processes, 1 bytes)", self.ranks(2, PYTHON, "-m", "mpi4py.bench", "ringtest", sets=["job.pmi=pmix"]).out)


if __name__ == "__main__":
    require()
    main()
