"""The mpirun launcher: an installed mpirun starts the ranks, and dtrun leaves nothing of it behind."""

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import unittest

from support.cluster import ClusterTest, open_lab
from support.job import BUILD, DTRUN, RANK, JobTest, main, nightly, processes_with, skip, until
from support.lab import Lab, command_of
from support.local_launcher import BY_SHELL

OPEN_MPI, MPICH = BUILD / "tests/open_mpi_program", BUILD / "tests/mpich_program"
MPIRUN = ["launcher.name=mpirun"]
SHOW = [sys.executable, "-c", """
import json, os, sys
with open(os.environ["RANK"] + ".json", "w") as file:
    json.dump([sys.argv[1:], dict(os.environ)], file)
"""]


def setUpModule():
    open_lab()


def program_of(pid):
    """The name of the program, without its folder."""
    return (command_of(pid) or " ").split()[0].split("/")[-1]


def victim(program, processes):
    """One of `processes` that runs `program`, once there is one."""
    return until(lambda: next((pid for pid in processes() if program_of(pid) == program), None), program)


class OneHost(JobTest):
    def mpirun(self, count, *command, sets=(), **more):
        return self.ranks(count, *command, sets=[*MPIRUN, *sets], **more)

    def start_mpirun(self, count, *command, sets=(), **more):
        return self.start_ranks(count, *command, sets=[*MPIRUN, *sets], **more)

    def test_the_plan_shows_the_full_command_line(self):
        sets = [word for item in [*MPIRUN, "job.processes_per_host=3"] for word in ("--set", item)]
        result = self.dtrun("plan", *sets, "--", "true", "x y")
        self.assert_ok(result)
        line = next(line for line in result.out.splitlines() if line.startswith("  argv"))
        self.assertIn("mpirun -np 3 --host localhost:3 --map-by slot --bind-to none", line)
        self.assertTrue(line.endswith(f"{DTRUN} mpi-rank true 'x y'"), line)

    @unittest.skipUnless(MPICH.exists(), "no MPICH program was built (libmpich-dev)")
    def test_a_program_of_another_mpi_is_refused(self):
        result = self.mpirun(2, MPICH)
        self.assertEqual(result.code, 127, str(result))
        self.golden_lines(result.err, f"[0] dtrun: '{MPICH}'", "MPICH", "Open MPI")
        self.assertIn("mpiexec.hydra", result.err)
        self.assert_ok(self.mpirun(2, MPICH, sets=["job.isolated_ranks=allow"]))

    @unittest.skipUnless(OPEN_MPI.exists() and shutil.which("mpiexec.hydra"), "there is no Open MPI program or no Hydra here")
    def test_an_open_mpi_program_under_a_hydra_is_refused(self):
        result = self.mpirun(2, OPEN_MPI, sets=["launcher.options.program=mpiexec.hydra"])
        self.assertEqual(result.code, 127, str(result))
        self.golden_lines(result.err, f"[0] dtrun: '{OPEN_MPI}'", "Open MPI", "Hydra")

    @unittest.skipUnless(MPICH.exists(), "no MPICH program was built (libmpich-dev)")
    def test_a_script_that_loads_another_mpi_is_seen(self):
        file = self.folder / "go-on"
        script = ("import ctypes, os, time\nctypes.CDLL('libmpich.so.12')\n"
                  f"while not os.path.exists({str(file)!r}): time.sleep(0.01)\n")
        job = self.start_mpirun(2, sys.executable, "-c", script)
        until(lambda: "warning: rank 0: it has loaded MPICH" in job.log(0) + job.log(0, "err"), "the warning")
        file.touch()
        self.assert_ok(job.finish())
        result = self.mpirun(2, sys.executable, "-c", script.replace("go-on", "never"), sets=["job.isolated_ranks=fail"])
        self.assertEqual(result.code, 1, str(result))
        self.golden_lines(result.err, "[0] dtrun: rank 0: ", "MPICH", "Open MPI")

    def test_every_rank_finds_its_place(self):
        result = self.mpirun(3, *SHOW, "--r=${RANK}", "$${HOME}", sets=["job.env.OUT=part"])
        self.assert_ok(result)
        for rank in range(3):
            arguments, env = json.loads((self.folder / f"{rank}.json").read_text())
            self.assertEqual(arguments, [f"--r={rank}", "${HOME}"])
            for name, value in {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 3, "LOCAL_WORLD_SIZE": 3, "NODE_RANK": 0,
                                "MASTER_ADDR": "127.0.0.1", "DTRUN_RANK": rank, "DTRUN_LOCAL_RANK": rank,
                                "OMPI_COMM_WORLD_RANK": rank, "OUT": "part"}.items():
                self.assertEqual(env[name], str(value), name)
            self.assertNotIn("DTRUN_FIRST_RANK", env)

    def test_ranks_meet_over_gloo_and_over_mpi(self):
        for backend in ("gloo", "mpi"):
            with self.subTest(backend=backend):
                result = self.mpirun(2, RANK, sets=[f"backend.name={backend}", "comm.local=none"])
                self.assert_ok(result)
                for rank in range(2):
                    self.assertIn(f"rank {rank} of 2 over {backend}: sum 3\n", result.out)

    def test_each_rank_has_its_own_output_to_the_byte(self):
        job = self.start_mpirun(2, "sh", "-c", "seq $RANK 50000; echo error of $RANK >&2")
        result = job.finish()
        self.assert_ok(result)
        for rank in range(2):
            self.assertEqual(job.log(rank), "".join(f"{i}\n" for i in range(rank, 50001)))
            self.assertEqual(job.log(rank, "err"), f"error of {rank}\n")
            self.assertIn(f"[{rank}] error of {rank}\n", result.err)

    def test_mpichs_mpiexec_starts_ranks_too(self):
        if shutil.which("mpiexec.hydra") is None:
            self.skipTest("there is no mpiexec.hydra here (mpich)")
        result = self.mpirun(2, RANK, sets=["launcher.options.program=mpiexec.hydra", "comm.local=none"])
        self.assert_ok(result)
        for rank in range(2):
            self.assertIn(f"[{rank}] rank {rank} of 2 over gloo: sum 3\n", result.out)

    def test_one_process_per_host_makes_its_ranks_itself(self):
        result = self.mpirun(2, "sh", "-c", BY_SHELL, RANK, sets=["launcher.options.processes=host"])
        self.assert_ok(result)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 over shm: sum 3\n", result.out)

    def test_a_program_that_is_not_there_is_named(self):
        result = self.mpirun(2, "no-such-program")
        self.assertEqual(result.code, 127, str(result))
        self.assertIn("cannot run 'no-such-program': ", result.err)

    def test_an_mpirun_that_is_not_there_is_named(self):
        self.assert_user_error(self.mpirun(2, "true", sets=["launcher.options.program=no-such-mpirun"]),
                               "no-such-mpirun", "launcher")

    def test_another_number_of_ranks_than_the_jobs_is_refused(self):
        result = self.mpirun(2, RANK, sets=["launcher.options.arguments=-np,1"])
        self.assertNotEqual(result.code, 0)
        self.golden_lines(result.err, "[0] dtrun: mpirun", " 1 rank", " 2")

    def test_arguments_of_the_users_own_come_first(self):
        result = self.mpirun(2, "true", sets=["launcher.options.arguments=--bind-to,core:overload-allowed,--report-bindings"])
        self.assert_ok(result)
        self.assertIn(" socket ", result.err)

    def test_the_rank_that_failed_is_named_and_its_code_is_the_jobs(self):
        result = self.mpirun(2, "sh", "-c", "[ $RANK = 1 ] && exit 7; sleep 1000")
        self.assertEqual(result.code, 7, str(result))
        self.assert_verdict(result, exit_code=7, first_failed_rank=1)

    @unittest.skipUnless(OPEN_MPI.exists(), "no Open MPI program was built")
    def test_a_rank_that_leaves_mpi_is_named_and_not_those_that_mpirun_ends_for_it(self):
        result = self.mpirun(3, OPEN_MPI, "leave-after", "1", sets=["backend.name=none"])
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("rank 1 exited without MPI_Finalize", result.err)
        self.assertNotIn("SIGTERM", result.err)

    # Signals in the middle of that made it crash.
    @unittest.skipUnless(OPEN_MPI.exists(), "no Open MPI program was built")
    def test_an_abort_is_named_and_mpirun_ends_by_itself(self):
        result = self.mpirun(3, OPEN_MPI, "abort", "1", sets=["backend.name=none"])
        self.assertEqual(result.code, 7, str(result))
        if "MPI_ABORT was invoked" in result.err:  # Open MPI may lose its own message
            self.assertIn("MPI_Abort, called on rank 1", result.err)
        self.assertNotRegex(result.err, "Forwarding signal|Segmentation fault")

    def test_so_it_is_under_a_hydra_which_would_wait_for_the_others(self):
        if shutil.which("mpiexec.hydra") is None:
            self.skipTest("there is no mpiexec.hydra here (mpich)")
        for fails, code, how in (("exit 7", 7, "exited with code 7"), ("kill -SEGV $$", 139, "was killed by signal 11")):
            with self.subTest(how=how):
                result = self.mpirun(3, "sh", "-c", f"[ $RANK = 1 ] && {fails}; sleep 1000",
                                     sets=["launcher.options.program=mpiexec.hydra"])
                self.assertEqual(result.code, code, str(result))
                self.assertIn(f"rank 1 {how}", result.err)

    @unittest.skipUnless(OPEN_MPI.exists(), "no Open MPI program was built")
    def test_segments_of_open_mpi_go_with_the_job_whichever_process_is_killed(self):
        for name in ("mpirun", "dtrun"):
            with self.subTest(killed=name):
                shutil.rmtree(self.folder / "runs", ignore_errors=True)
                job = self.start_mpirun(2, OPEN_MPI, "wait", sets=["backend.name=none"])
                until(lambda: all("ready" in job.log(rank) for rank in range(2)), "both ranks")
                rank = victim(OPEN_MPI.name, lambda: processes_with(self.mark))
                with open(f"/proc/{rank}/maps") as maps:
                    segments = {line.split()[-1] for line in maps if "vader_segment" in line}
                self.assertTrue(segments)
                os.kill(job.pid if name == "dtrun" else victim("mpirun", lambda: processes_with(self.mark)), signal.SIGKILL)
                self.assertNotEqual(job.finish().code, 0)
                until(lambda: not any(map(os.path.exists, segments)), f"the end of {segments}")

    def test_nothing_survives_whichever_process_is_killed(self):
        for name in ("mpirun", "dtrun", "a rank"):
            with self.subTest(killed=name):
                shutil.rmtree(self.folder / "runs", ignore_errors=True)  # job.log reads the newest
                job = self.start_mpirun(2, "sh", "-c", "echo rank $RANK is here; sleep 1000")
                until(lambda: all("is here" in job.log(rank) for rank in range(2)), "both ranks")
                word = {"mpirun": "mpirun", "a rank": "sleep", "dtrun": "dtrun"}[name]
                os.kill(job.pid if word == "dtrun" else victim(word, lambda: processes_with(self.mark)), signal.SIGKILL)
                self.assertNotEqual(job.finish().code, 0)
                until(lambda: not processes_with(self.mark), f"the end of all processes after the death of {name}")

    def test_signals_reach_the_ranks(self):
        job = self.start_mpirun(2, "sh", "-c", "trap 'echo usr1 on $RANK' USR1; echo ready; while :; do sleep 0.05; done")
        until(lambda: all("ready" in job.log(rank) for rank in range(2)), "both ranks")
        job.signal(signal.SIGUSR1)
        until(lambda: all(f"usr1 on {rank}" in job.log(rank) for rank in range(2)), "USR1 on both ranks")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().code, 143)


class OnThreeHosts:
    """What goes for either family; with `launcher`, a config, and `programs` of it on hosts 0 and 1."""

    def test_ranks_of_three_hosts_find_their_places(self):
        show = "echo rank $RANK $LOCAL_RANK $NODE_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $(hostname) $MASTER_ADDR"
        result = self.run_cluster("sh", "-c", show, more=self.launcher)
        self.assert_ok(result)
        for rank in range(6):
            host = rank // 2
            self.assertIn(f"[{rank}] rank {rank} {rank % 2} {host} 6 2 node{host} {self.lab.address(0)}\n", result.out)

    def test_the_root_need_not_be_a_host(self):
        result = self.run_cluster("sh", "-c", "echo $RANK on $(hostname)", hosts=["node1", "node2"], more=self.launcher)
        self.assert_ok(result)
        self.assertIn("0 on node1\n", result.out)
        self.assertIn("3 on node2\n", result.out)

    def test_one_process_per_host(self):
        more = self.launcher + "processes = \"host\"\n"
        result = self.run_cluster("sh", "-c", BY_SHELL, RANK, more=more)
        self.assert_ok(result)
        for rank in range(6):
            self.assertIn(f"rank {rank} of 6 over shm+gloo: sum 21\n", result.out)

    def test_a_rank_that_fails_elsewhere_ends_all_hosts(self):
        result = self.run_cluster("sh", "-c", "[ $RANK = 5 ] && echo I am $$ && exit 7; sleep 1000", more=self.launcher)
        self.assertEqual(result.code, 7, str(result))
        pid = re.search(r"I am (\d+)", result.out).group(1)
        self.assert_verdict(result, exit_code=7, first_failed_rank=5)
        self.assertIn(f"host node2, pid {pid}", result.err, str(result))
        self.assertIn(f"| I am {pid}\n", result.err, str(result))

    def test_nothing_survives_whichever_process_is_killed(self):
        for word, host in ((self.programs[0], 0), (self.programs[1], 1), ("sleep", 2), ("dtrun", 0)):
            with self.subTest(killed=word, host=host):
                shutil.rmtree(self.folder / "runs", ignore_errors=True)  # job.log reads the newest
                job = self.start_cluster("sh", "-c", "echo rank $RANK is here; sleep 1000", more=self.launcher)
                until(lambda: all("is here" in job.log(rank) for rank in range(6)), "all ranks")
                os.kill(job.pid if word == "dtrun" else victim(word, lambda: self.lab.processes_on(host)), signal.SIGKILL)
                self.assertNotEqual(job.finish().code, 0)
                until(lambda: not any(map(self.lab.processes_on, range(3))), f"the end of all after the death of {word}")

    def test_the_job_starts_again(self):
        script = "[ $DTRUN_GENERATION = 0 ] && [ $RANK = 5 ] && exit 3; echo generation $DTRUN_GENERATION"
        result = self.run_cluster("sh", "-c", script, more=self.launcher + "[restart]\nmax = 1\n")
        self.assert_ok(result)
        self.assertEqual(result.out.count("generation 1\n"), 6, str(result))


class ThreeHosts(OnThreeHosts, ClusterTest):
    launcher = "[launcher]\nname = \"mpirun\"\n[launcher.options]\n"
    programs = ("mpirun", "orted")

    def test_a_mapping_that_numbers_ranks_otherwise_is_refused(self):
        result = self.run_cluster("true", more=self.launcher + "arguments = [\"--map-by\", \"node\"]\n")
        self.assertNotEqual(result.code, 0)
        self.assertIn("host by host", result.err)

    def test_ranks_meet_over_gloo_and_over_mpi(self):
        for backend in ("gloo", "mpi"):
            with self.subTest(backend=backend):
                result = self.run_cluster(RANK, more=self.launcher + f"[backend]\nname = \"{backend}\"\n")
                self.assert_ok(result)
                for rank in range(6):
                    self.assertIn(f"rank {rank} of 6 over shm+{backend}: sum 21\n", result.out)


@unittest.skipUnless(shutil.which("mpiexec.hydra"), "there is no mpiexec.hydra here (mpich)")
class ThreeHostsOfHydra(OnThreeHosts, ClusterTest):
    launcher = "[launcher]\nname = \"mpirun\"\n[launcher.options]\nprogram = \"mpiexec.hydra\"\n"
    programs = ("mpiexec.hydra", "hydra_pmi_proxy")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="dtrun-lab-")
        cls.addClassCleanup(folder.cleanup)
        cls.lab = Lab(folder.name, one_boot_id=True)  # MPICH hangs in MPI_Finalize over UCX's TCP now and then
        cls.addClassCleanup(cls.lab.close)

    @nightly
    def test_ranks_meet_over_gloo_and_over_mpich(self):
        result = self.run_cluster(RANK, more=self.launcher + "[backend]\nname = \"gloo\"\n")
        self.assert_ok(result)
        for rank in range(6):
            self.assertIn(f"rank {rank} of 6 over shm+gloo: sum 21\n", result.out)
        if not MPICH.exists():
            self.skipTest("no MPICH program was built (libmpich-dev)")
        result = self.run_cluster(MPICH, more=self.launcher + "[backend]\nname = \"none\"\n")
        self.assert_ok(result)
        for rank in range(6):
            self.assertIn(f"rank {rank} of 6 on node{rank // 2}: sum 21\n", result.out)

    def test_an_input_that_ends_after_the_ranks_of_the_first_host(self):
        late = self.folder / "late.hydra"
        late.write_text("#!/bin/sh\n"
                        "{ until [ -e first ]; do sleep 0.01; done; sleep 0.3; touch late; } | exec mpiexec.hydra \"$@\"\n")
        late.chmod(0o755)
        wait = "if [ $RANK -lt 2 ]; then touch first; else until [ -e late ]; do sleep 0.01; done; sleep 0.2; fi"
        more = self.launcher.replace("mpiexec.hydra", str(late)) + "family = \"mpich\"\n"
        self.assert_ok(self.run_cluster("sh", "-c", wait, more=more))


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        skip("there is no mpirun here (openmpi-bin)")
    main()
