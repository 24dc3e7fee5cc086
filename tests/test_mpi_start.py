"""MPI programs that dtrun starts itself, without mpirun: on this host and on three.

Open MPI finds a PMIx server in dtrun, MPICH a PMI-1 one.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from support import fashion_mnist
from support.job import BUILD, DTRUN, RANK, Job, JobTest, end, main, nightly, skip, until
from support.lab import Lab, command_of, parent_of, why_not

OPEN_MPI = BUILD / "tests" / "open_mpi_program"
MPICH = BUILD / "tests" / "mpich_program"
TRAIN = BUILD / "bin" / "dtrun-train"
LAUNCHERS = ["per-process", "torchrun"]


PMIX_REFUSAL = subprocess.run([DTRUN, "plan", "--set", "job.pmi=pmix", "--", "true"], capture_output=True, text=True).stderr


def needs(file):
    if file == OPEN_MPI and PMIX_REFUSAL:
        return unittest.skip("dtrun was built without PMIx")
    return unittest.skipUnless(file.exists(), f"{file.name} was not built: its library was not found")


def losses(text):
    return re.findall(r"loss (\d+\.\d+)", text)


class MpiTest(JobTest):
    def environment(self, **more):
        more.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        return super().environment(**more)

    def setUp(self):
        super().setUp()
        self.segments = set(os.listdir("/dev/shm"))

    def tearDown(self):
        super().tearDown()
        def left():
            names = set(os.listdir("/dev/shm")) - self.segments
            return [name for name in names if name.startswith(("dtrun-", "vader", "mpich"))]
        until(lambda: not left(), "the files in /dev/shm to go")  # the suite over mpi has some for a minute, beside this test

    def assert_sums(self, result, size):
        self.assert_ok(result)
        total = size * (size + 1) // 2
        found = sorted(re.findall(r"rank (\d+) of (\d+) on \S+: sum (\d+)", result.out))
        self.assertEqual(found, sorted((str(r), str(size), str(total)) for r in range(size)), str(result))


class OneHost(MpiTest):
    @needs(OPEN_MPI)
    def test_an_open_mpi_program_starts_under_every_launcher(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher=launcher):
                self.assert_sums(self.ranks(3, OPEN_MPI, sets=[f"launcher.name={launcher}"]), 3)

    @needs(MPICH)
    def test_an_mpich_program_starts_under_every_launcher(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher=launcher):
                self.assert_sums(self.ranks(3, MPICH, sets=[f"launcher.name={launcher}"]), 3)

    @needs(OPEN_MPI)
    def test_a_program_behind_an_interpreter_is_served_what_the_config_names(self):
        self.assert_sums(self.ranks(2, "sh", "-c", f"{OPEN_MPI}; true", sets=["job.pmi=pmix"]), 2)

    @needs(OPEN_MPI)
    def test_without_it_every_process_is_alone(self):
        # Two processes that Open MPI did not start may both try to make it, and one ends then.
        (self.folder / f"ompi.{os.uname().nodename.partition('.')[0]}.{os.geteuid()}").mkdir(mode=0o700)
        result = self.ranks(2, OPEN_MPI, sets=["job.pmi=none"])
        self.assert_ok(result)
        self.assertEqual(result.out.count("rank 0 of 1 "), 2, str(result))

    @needs(OPEN_MPI)
    def test_a_network_without_127_0_0_1_is_named(self):
        if why_not():
            self.skipTest(why_not())
        done = subprocess.run(["unshare", "-n", DTRUN, "-n", "2", "--set", "backend.name=none", "--", OPEN_MPI], cwd=self.folder, env=self.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertNotEqual(done.returncode, 0)
        self.golden_lines(done.stderr, "127.0.0.1")

    @needs(OPEN_MPI)
    def test_the_mpi_backend_starts_without_mpirun(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher=launcher):
                result = self.ranks(2, RANK, sets=["backend.name=mpi", "comm.local=none", f"launcher.name={launcher}"])
                self.assert_ok(result)
                for rank in range(2):
                    self.assertIn(f"rank {rank} of 2 over mpi: sum 3\n", result.out)

    @needs(OPEN_MPI)
    def test_leaders_of_pretended_hosts_start_mpi_with_all_others(self):
        result = self.ranks(4, RANK, sets=["backend.name=mpi", "comm.emulate_hosts=2"])
        self.assert_ok(result)
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4 over shm+mpi: sum 10\n", result.out)

    @needs(OPEN_MPI)
    def test_the_plan_says_what_is_served(self):
        def plan(*sets, command=OPEN_MPI):
            words = [word for item in ("job.processes_per_host=2", *sets) for word in ("--set", item)]
            result = self.dtrun("plan", "--json", *words, "--", command)
            self.assert_ok(result)
            return json.loads(result.out)
        served = plan()
        self.assertEqual(served["pmi"], "pmix")
        env = served["processes"][1]["env"]
        self.assertEqual((env["PMIX_RANK"], env["PMIX_NAMESPACE"]), ("1", "⟦pmix_namespace⟧"))
        self.assertEqual(plan("job.pmi=none")["pmi"], "none")
        self.assertEqual(plan(command="true")["pmi"], "none")
        self.assertEqual(plan("backend.name=mpi", command="true")["pmi"], "pmix")  # ranks in containers share no memory
        self.assertEqual(plan("backend.name=mpi", "comm.local=none", command="true")["pmi"], "pmix")
        pmi1 = plan("job.pmi=pmi1", command="true")["processes"][1]["env"]
        self.assertEqual((pmi1["PMI_FD"], pmi1["PMI_RANK"], pmi1["PMI_SIZE"]), ("3", "1", "2"))

    def test_bad_values_are_refused(self):
        self.assert_user_error(self.ranks(2, "true", sets=["job.pmi=pmi2"]), "job.pmi", "pmi2", "pmi1")
        self.golden_error(self.ranks(2, "true", sets=["job.pmi=pmi1", "job.env.PMI_RANK=5"]), "job.env", "'PMI_RANK'")

    @unittest.skipUnless(PMIX_REFUSAL, "dtrun was built with PMIx")
    def test_a_build_without_pmix_says_so(self):
        for sets in (["job.pmi=pmix"], ["backend.name=mpi", "comm.local=none"]):
            self.golden_error(self.ranks(2, "true", sets=sets), "job.pmi: ", "PMIx", "libpmix-dev", "mpirun")

    @needs(OPEN_MPI)
    def test_a_restart_has_an_mpi_job_of_its_own(self):
        # Rank 1 dies once rank 0 has said its MPI job.
        script = (f"[ $DTRUN_GENERATION = 0 ] && [ $RANK = 1 ] && while [ ! -e {self.folder}/said ]; do sleep 0.01; done && kill -9 $$; "
                  f"echo $PMIX_NAMESPACE; : > {self.folder}/said; exec {OPEN_MPI}")
        job = self.start_ranks(2, "sh", "-c", script, sets=["job.pmi=pmix", "restart.max=1"])
        result = job.finish()
        self.assert_sums(result, 2)
        names = [(job.run_dir() / folder / "rank-0.out").read_text().splitlines()[0] for folder in (".", "generation-1")]
        self.assertNotEqual(*names)


class Failures:
    def test_mpi_abort_ends_the_job_with_its_code(self):
        result = self.ranks(3, self.program, "abort", "1")
        self.assertEqual(result.code, 7, str(result))
        self.assertIn("rank 1 called MPI_Abort with code 7", result.err)

    def keep_busy(self):
        """A rank that waits busily keeps no job from its end."""
        result = self.ranks(2, self.program, "stay", "1", sets=["watch.stall=3s", "watch.on_stall=fail"])
        self.assertEqual((result.code, self.last_verdict()["exit_class"]), (1, "hang"), str(result))
        self.assertRegex(result.err, "rank 0 in P?MPI_Allreduce")

    def test_a_rank_killed_before_mpi_init_ends_those_that_wait_for_it(self):
        result = self.ranks(3, self.program, "die-before", "2")
        self.assertEqual(result.code, 137, str(result))
        self.assert_verdict(result, ending=(2, "SIGKILL"), first_failed_rank=2)

    def test_a_rank_that_leaves_before_mpi_init_does_not_make_others_wait_for_ever(self):
        result = self.ranks(3, self.program, "leave-before", "1")
        self.assertEqual(result.code, 1, str(result))
        self.golden_lines(result.err, "dtrun: job ", "rank 1 ", "code 0", "MPI_Init")

    def test_a_rank_that_leaves_without_mpi_finalize_fails(self):
        result = self.ranks(3, self.program, "leave-after", "1")
        self.assertEqual(result.code, 1, str(result))
        self.golden_lines(result.err, "dtrun: job ", "rank 1 ", "code 0", "MPI_Finalize")

    def test_nothing_survives_a_killed_agent(self):
        job = self.start_ranks(2, self.program, "wait")
        for rank in range(2):
            job.wait_for_line(rank, "ready")
        agents = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == job.pid]
        self.assertEqual(len(agents), 1)
        os.kill(agents[0], signal.SIGKILL)
        self.assertEqual(job.finish().code, 137)

    def test_a_waiting_job_can_be_interrupted(self):
        job = self.start_ranks(2, self.program, "wait")
        for rank in range(2):
            job.wait_for_line(rank, "ready")
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish().code, 130)


@needs(OPEN_MPI)
class OpenMpiFailures(Failures, MpiTest):
    program = OPEN_MPI

    @unittest.skipUnless(shutil.which("eu-stack") or shutil.which("gdb"), "there is neither eu-stack nor gdb")
    def test_a_rank_that_waits_busily_keeps_no_job_from_its_end(self):
        self.keep_busy()


@needs(MPICH)
class MpichFailures(Failures, MpiTest):
    program = MPICH

    @nightly
    @unittest.skipUnless(shutil.which("eu-stack") or shutil.which("gdb"), "there is neither eu-stack nor gdb")
    def test_a_rank_that_waits_busily_keeps_no_job_from_its_end(self):
        self.keep_busy()


class ThreeHosts(MpiTest):
    one_boot_id = False

    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)
        folder = tempfile.TemporaryDirectory(prefix="dtrun-lab-")
        cls.addClassCleanup(folder.cleanup)
        cls.lab = Lab(folder.name, one_boot_id=cls.one_boot_id)
        cls.addClassCleanup(cls.lab.close)

    def tearDown(self):
        lab = self.lab
        with contextlib.suppress(AssertionError):
            until(lambda: not any(map(lab.processes_on, range(3))), "the hosts to be empty", 10)
        self.assertEqual([command_of(pid) for i in range(3) for pid in lab.processes_on(i)], [])
        super().tearDown()

    def run_cluster(self, *command, sets=(), ranks=2):
        shell = json.dumps(self.lab.shell())
        hosts = json.dumps(self.lab.names)
        file = self.write(f"[job]\ncommand = {json.dumps(list(map(str, command)))}\nprocesses_per_host = {ranks}\n"
                          f"grace = \"3s\"\n[cluster]\nhosts = {hosts}\nremote_shell = {shell}\n")
        words = [word for item in sets for word in ("--set", item)]
        process = subprocess.Popen(
            [*self.lab.enter(0, self.folder), str(DTRUN), "--config", str(file), *words], cwd=self.folder,
            env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace")
        self.addCleanup(end, process)
        return Job(process, self.folder).finish()

    def check_failures(self, program):
        for how, code, text in (("die-before", 137, "rank 5 was killed by signal 9"),
                                ("leave-before", 1, "rank 5 exited with code 0 without MPI_Init"),
                                ("abort", 7, "rank 5 called MPI_Abort with code 7")):
            with self.subTest(how=how):
                result = self.run_cluster(program, how, "5")
                self.assertEqual(result.code, code, str(result))
                self.assertIn(text, result.err)

    def check_restart(self, program, pmi):
        script = f"[ $DTRUN_GENERATION = 0 ] && [ $RANK = 5 ] && kill -9 $$; exec {program}"
        result = self.run_cluster("sh", "-c", script, sets=[f"job.pmi={pmi}", "restart.max=1"])
        self.assert_sums(result, 6)
        self.assertIn("after 1 restart", result.err)


class OpenMpiOnThreeHosts(ThreeHosts):
    @needs(OPEN_MPI)
    def test_an_open_mpi_program_starts_under_every_launcher(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher=launcher):
                result = self.run_cluster(OPEN_MPI, sets=[f"launcher.name={launcher}"])
                self.assert_sums(result, 6)
                for i, name in enumerate(self.lab.names):
                    self.assertIn(f"rank {2 * i} of 6 on {name}: sum 21\n", result.out)

    @needs(OPEN_MPI)
    def test_the_mpi_backend_joins_hosts_alone_and_under_shared_memory(self):
        for local, name in (("none", "mpi"), ("shm", "shm+mpi")):
            with self.subTest(local=local):
                result = self.run_cluster(RANK, sets=["backend.name=mpi", f"comm.local={local}"])
                self.assert_ok(result)
                for rank in range(6):
                    self.assertIn(f"rank {rank} of 6 over {name}: sum 21\n", result.out)

    @needs(OPEN_MPI)
    def test_failures_on_another_host_end_those_that_wait(self):
        self.check_failures(OPEN_MPI)

    @needs(OPEN_MPI)
    def test_a_restart_starts_mpi_again_on_all_hosts(self):
        self.check_restart(OPEN_MPI, "pmix")

    @nightly
    @needs(OPEN_MPI)
    @needs(TRAIN)
    def test_training_reaches_the_same_loss_over_mpi_and_gloo(self):
        if not fashion_mnist.DATA.exists():
            self.skipTest("the package dataset-fashion-mnist is not installed")
        data = fashion_mnist.small(self.folder / "data", images=6000)
        seen = {}
        for backend in ("gloo", "mpi"):
            result = self.run_cluster(TRAIN, "--model", "mlp", "--epochs", "1", "--batch", "120", "--data", data, ranks=1,
                                      sets=[f"backend.name={backend}", 'job.env.OMP_NUM_THREADS=1'])
            self.assert_ok(result)
            seen[backend] = [float(loss) for loss in losses(result.out)]
        self.assertTrue(seen["gloo"], result.out)
        self.assertEqual(len(seen["gloo"]), len(seen["mpi"]))
        for a, b in zip(seen["gloo"], seen["mpi"]):
            self.assertAlmostEqual(a, b, delta=5e-3)  # sums in another order


class MpichOnThreeHosts(ThreeHosts):
    """Debian's MPICH hangs in MPI_Finalize over UCX's TCP now and then, under its own mpirun too: here UCX has shared
    memory."""

    one_boot_id = True

    @needs(MPICH)
    def test_an_mpich_program_starts_under_every_launcher(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher=launcher):
                self.assert_sums(self.run_cluster(MPICH, sets=[f"launcher.name={launcher}"]), 6)

    @needs(MPICH)
    def test_failures_on_another_host_end_those_that_wait(self):
        self.check_failures(MPICH)

    @needs(MPICH)
    def test_a_restart_starts_mpi_again_on_all_hosts(self):
        self.check_restart(MPICH, "pmi1")


if __name__ == "__main__":
    if not (OPEN_MPI.exists() or MPICH.exists()):
        skip("no MPI library was found when this build was configured")
    main()
