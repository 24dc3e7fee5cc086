"""Ranks that never join each other are noticed: a program would train N times alone, and every one succeed."""

import ctypes
import shutil
import sys
import unittest

from support.cluster import ClusterTest, open_lab
from support.job import JobTest, free_port, main, needs_stacks, needs_torch, nightly

WARNING = "have not joined each other"
# dtrun looks at 0.5, 1.5, 3.5, 7.5 ... s: once at least until a program is more than twice as old, twice until
# it is more than four times as old.
BEGIN = "import time; begin = time.monotonic(); "
LINGER = "; time.sleep(1.5 * (time.monotonic() - begin) + 2)"
IMPORT = f"{BEGIN}import torch"
# Steps of training until dtrun ends the job, nearly always inside of backward.
TRAIN = """
end = time.monotonic() + 120
x = torch.ones(400, 400, requires_grad=True)
loss = (x @ x).sum()
while time.monotonic() < end: loss.backward(retain_graph=True)
"""
# One step that takes as long and no processor: a hook rests inside of backward.
STEP = """
x = torch.ones(4, requires_grad=True)
x.register_hook(lambda _: time.sleep(4 * (time.monotonic() - begin) + 4))
x.sum().backward()
"""
ALONE = IMPORT + STEP
JOIN = "; import torch.distributed as d; d.init_process_group('gloo')"


# Two Open MPIs that start at once, each without a server, collide in the folder that they make for their sessions.
APART = "import os, tempfile; os.environ['OMPI_MCA_orte_tmpdir_base'] = tempfile.mkdtemp(); "


def mpi(library):
    start = f"import ctypes; mpi = ctypes.CDLL('{library}', ctypes.RTLD_GLOBAL); mpi.MPI_Init(None, None)"
    return f"{BEGIN}{start}{LINGER}; mpi.MPI_Finalize()"


def setUpModule():
    open_lab()


def loaded(name):
    try:
        ctypes.CDLL(name)
        return True
    except OSError:
        return False


class OneHost(JobTest):
    def python(self, script, sets=(), **more):
        return self.ranks(2, sys.executable, "-c", script, sets=["backend.name=none", *sets], **more)

    def assert_named(self, result, *texts):
        self.assert_ok(result)
        self.assertEqual(result.err.count(WARNING), 1, str(result))
        for text in texts:
            self.assertIn(text, result.err, str(result))

    def assert_silent(self, result):
        self.assert_ok(result)
        self.assertNotIn(WARNING, result.err)

    @needs_torch
    @needs_stacks
    def test_torch_without_a_process_group_is_named(self):
        self.assert_named(self.python(ALONE), "each has PyTorch loaded", "init_process_group")

    @needs_torch
    def test_torch_with_one_is_not(self):
        self.assert_silent(self.python(IMPORT + JOIN + STEP))

    @needs_torch
    def test_nor_is_one_that_meets_in_a_file(self):
        join = f"d.init_process_group('gloo', init_method='file://{self.folder}/met', rank=int(os.environ['RANK']), world_size=2)"
        self.assert_silent(self.python(f"{IMPORT}, os, torch.distributed as d; {join}{STEP}"))

    @nightly
    @needs_torch
    def test_nor_are_ranks_that_were_only_never_seen_to_join(self):
        self.assert_silent(self.python(IMPORT + LINGER, sets=["job.isolated_ranks=fail"]))

    @nightly
    @needs_torch
    def test_nor_is_one_that_meets_at_a_port_of_its_own(self):
        own = f"import os; os.environ['MASTER_PORT'] = '{free_port()}'; "
        self.assert_silent(self.python(f"{own}{IMPORT}{JOIN}{STEP}d.barrier()"))

    @nightly
    @needs_torch
    @needs_stacks
    def test_ranks_that_are_isolated_fail_the_job_where_they_must_not_be(self):
        result = self.python(IMPORT + TRAIN, sets=["job.isolated_ranks=fail"])
        self.assertEqual(result.code, 1, str(result))
        self.assertIn(WARNING, result.err)
        self.assert_verdict(result, exit_class="isolated-ranks", exit_code=1)

    @nightly
    @needs_torch
    def test_or_are_let_be(self):
        self.assert_silent(self.python(ALONE, sets=["job.isolated_ranks=allow"]))

    @needs_torch
    def test_a_job_that_fails_has_a_cause_of_its_own(self):
        result = self.python(IMPORT + LINGER + "; raise SystemExit(3)", sets=["job.isolated_ranks=fail"])
        self.assertEqual(result.code, 3, str(result))
        self.assertNotIn(WARNING, result.err)

    def test_programs_that_share_the_work_by_rank_are_not_named(self):
        self.assert_silent(self.ranks(2, "sh", "-c", "sleep 2; echo $RANK"))
        self.assert_silent(self.python(f"{BEGIN}import os{LINGER}; print(os.environ['RANK'])"))

    @nightly
    @needs_torch
    def test_nor_is_one_process_that_has_all_ranks(self):
        self.assert_silent(self.python(ALONE, sets=["launcher.name=per-node"]))

    def assert_mpi(self, library, name, pmi, mpirun):
        self.assert_named(self.python(APART + mpi(library), sets=["job.pmi=none"]), f"each has {name} loaded", f'job.pmi = "{pmi}"')
        for sets in ([f"job.pmi={pmi}"], ["launcher.name=mpirun", f"launcher.options.program={mpirun}"]):
            with self.subTest(sets=sets):
                self.assert_silent(self.python(mpi(library), sets=sets))

    @unittest.skipUnless(loaded("libmpi.so.40") and shutil.which("mpirun"), "there is no Open MPI here (openmpi-bin)")
    def test_open_mpi_without_a_server_is_named_and_with_one_is_not(self):
        self.assert_mpi("libmpi.so.40", "Open MPI", "pmix", "mpirun")

    @nightly
    @unittest.skipUnless(loaded("libmpich.so.12") and shutil.which("mpiexec.hydra"), "there is no MPICH here (mpich)")
    def test_mpich_without_a_server_is_named_and_with_one_is_not(self):
        self.assert_mpi("libmpich.so.12", "MPICH", "pmi1", "mpiexec.hydra")


class ThreeHosts(ClusterTest):
    @needs_torch
    @needs_stacks
    def test_the_evidence_of_all_hosts_counts(self):
        for script, named in ((ALONE, True), (IMPORT + JOIN + STEP, False)):
            with self.subTest(script=script):
                result = self.run_cluster(sys.executable, "-c", script, ranks=1, more="[backend]\nname = \"none\"\n")
                self.assert_ok(result)
                self.assertEqual(WARNING in result.err, named, str(result))


# Before torch is there, so that dtrun has looked, 1 and 3 s after the start, by the time that the ranks give up:
# where a port is taken they do so at once.
CHANGES = """
import datetime, os, sys, time
begin = time.monotonic()
rank, way = int(os.environ["RANK"]), sys.argv[1]
if way == "port" and rank == 1: os.environ["MASTER_PORT"] = "1"
if way == "own port" and rank == 0: os.environ["MASTER_PORT"] = "0"
if way == "size": os.environ["WORLD_SIZE"] = "4"
if way == "rank" and rank == 1: os.environ["RANK"] = "0"
if way == "harmless": os.environ["MASTER_ADDR"] = "localhost"
import torch, torch.distributed as d
if way == "rank": time.sleep(max(0, begin + 4 - time.monotonic()))
d.init_process_group("gloo", timeout=datetime.timedelta(seconds=int(sys.argv[2])))
"""


@needs_torch
class ChangedVariables(JobTest):
    """Programs that set MASTER_PORT and its like themselves, so that ranks never meet."""

    def changes(self, way, limit_s=5, sets=()):
        script = self.write(CHANGES, "changes.py")
        for left in self.folder.glob("runs"):
            left.rename(self.folder / f"runs-before-{way}")
        result = self.ranks(2, sys.executable, script, way, str(limit_s), sets=["backend.name=none", *sets])
        return result, self.last_verdict()

    @nightly
    def test_the_rank_that_has_changed_them_is_named(self):
        for way, rank, said in (
            ("port", 1, r"rank 1 set MASTER_PORT to 1, where dtrun set \d+"),
            ("own port", 0, r"rank 0 set MASTER_PORT to 0, where dtrun set \d+"),
            ("rank", 1, r"rank 1 set RANK to 0, where dtrun set 1"),
        ):
            with self.subTest(way=way):
                result, verdict = self.changes(way)
                self.assertRegex(result.err, rf"failed after [^:]*: {said}\n", str(result))
                self.golden_lines(result.err, "  next: ", "MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE")
                self.assertEqual(verdict["blamed"]["ranks"], [rank], str(result))

    @nightly
    def test_of_all_that_have_changed_them_alike_none_is_blamed(self):
        result, verdict = self.changes("size")
        self.golden_lines(result.err, "  ranks 0, 1 ", "WORLD_SIZE", " 4", " 2")
        self.assertIsNone(verdict["blamed"], str(result))

    @nightly
    def test_a_job_that_meets_nevertheless_is_not_told_of_them(self):
        result, _ = self.changes("harmless")
        self.assert_ok(result)
        self.assertNotIn("MASTER_ADDR", result.err)

    @needs_stacks
    def test_a_standstill_at_the_start_tells_of_them(self):
        result, verdict = self.changes("port", limit_s=1000, sets=["watch.stall=1s", "watch.on_stall=fail"])
        self.assertRegex(result.err, r"rank 1 in \S+ at changes\.py:\d+ \(.*MASTER_PORT.* 1, .*\d+\)")
        self.assertRegex(result.err, r"no progress for [^:]*: rank 1 .*MASTER_PORT")
        self.assertEqual(verdict["blamed"]["ranks"], [1], str(result))


if __name__ == "__main__":
    main()
