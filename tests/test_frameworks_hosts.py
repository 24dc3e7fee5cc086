"""Unmodified scripts of the frameworks on three hosts with a rank each, as test_frameworks.py runs them on one.

Runs where `tools/setup frameworks` has fetched them, into build/frameworks.
"""

from support.cluster import ClusterTest, open_lab
from support.frameworks import PYTHON, SCRIPTS, TORCH_BACKENDS, needs, needs_compiler, require, settings
from support.horovod import SHIM
from support.job import BUILD, SOURCE, main


def setUpModule():
    open_lab()


class FrameworksOnHosts(ClusterTest):
    def run_script(self, name, *words, sets=(), torch_backend="gloo"):
        sets = [*settings(torch_backend), *sets]
        command = [PYTHON, SCRIPTS / name, *words]
        flags = [word for item in sets for word in ("--set", item)]
        return self.start_on(0, "--config", self.config(command, ranks=1), *flags).finish()

    def assert_all_say(self, result, text):
        self.assert_ok(result)
        for rank in range(3):
            self.assertIn(text.format(rank), result.out)
        self.assertNotIn("have not joined", result.err)

    def hold_with_torch(self, text, name, *words, sets=()):
        for backend in TORCH_BACKENDS:
            with self.subTest(backend=backend, words=words):
                result = self.run_script(name, *words, sets=sets, torch_backend=backend)
                self.assert_all_say(result, f"{text} over {backend}")

    @needs("torch")
    def test_torch(self):
        self.hold_with_torch("rank {} of 3 agrees", "../programs/ddp.py")

    @needs("torch")
    def test_fsdp2(self):
        self.hold_with_torch("rank {} of 3 took 4 steps", "fsdp2_train.py")

    @needs("lightning")
    def test_lightning(self):
        self.hold_with_torch("rank {} of 3 took 3 steps", "lightning_fit.py", "ddp", 1, 3)

    @needs("lightning")
    def test_lightning_that_spawns_by_itself(self):
        # What is spawned loads torch again: on a busy machine dtrun asks meanwhile whether the ranks will join.
        sets = ["launcher.name=per-node", "job.isolated_ranks=allow"]
        self.hold_with_torch("rank {} of 3 took 3 steps", "lightning_fit.py", "ddp_spawn", 1, 3, sets=sets)

    def hold_with_horovods_api(self, program):
        own = [f"job.env.DTRUN_LIBRARY={BUILD}/lib/libdtrun.so.1", f"job.env.PYTHONPATH={SOURCE}/python:{SHIM}"]
        self.assert_all_say(self.run_script(f"../programs/horovod/{program}", sets=own), "rank {} of 3 is done")

    @needs("torch")
    def test_a_script_of_torch_that_knows_only_horovod(self):
        self.hold_with_horovods_api("unmodified.py")

    @needs("tensorflow")
    def test_a_script_of_tensorflow_that_knows_only_horovod(self):
        self.hold_with_horovods_api("tensorflow/unmodified.py")

    @needs("accelerate")
    def test_accelerate(self):
        self.hold_with_torch("rank {} of 3 took 3 steps, sum 6,", "accelerate_train.py")

    @needs("transformers")
    def test_the_trainer_of_hugging_face(self):
        self.hold_with_torch("rank {} of 3 took 3 steps", "transformers_train.py", self.folder / "out")

    @needs("deepspeed")
    @needs_compiler
    def test_deepspeed_zero(self):
        for stage in (1, 2, 3):
            self.hold_with_torch(f"rank {{}} of 3 took 4 steps at stage {stage}", "deepspeed_zero.py", stage)

    @needs("jax")
    def test_jax(self):
        self.assert_all_say(self.run_script("jax_sum.py", sets=["job.dialects=jax"]), "rank {} of 3: sum 6")
        self.assert_all_say(self.run_script("jax_sum.py", "address"), "rank {} of 3: sum 6")

    @needs("tensorflow")
    def test_tensorflow_workers(self):
        sets = ["job.dialects=tf-config"]
        self.assert_all_say(self.run_script("tensorflow_train.py", sets=sets), "worker {} of 3: sum 6")
        self.assert_all_say(self.run_script("tensorflow_loop.py", sets=sets), "worker {} of 3 took 4 steps")

    @needs("tensorflow")
    def test_tensorflow_parameter_server(self):
        sets = ["job.roles={chief=1, worker=1, ps=1}", "job.dialects=tf-config"]
        result = self.run_script("tensorflow_parameter_server.py", sets=sets)
        self.assert_ok(result)
        self.assertIn("chief: 10 steps on /job:ps/", result.out)

    @needs("mpi4py")
    def test_mpi4py(self):
        for sets in (["job.pmi=pmix"], ["launcher.name=mpirun"]):
            with self.subTest(sets=sets):
                self.assert_all_say(self.run_script("mpi4py_sum.py", sets=sets), "rank {} of 3: sum 6")


if __name__ == "__main__":
    require()
    main()
