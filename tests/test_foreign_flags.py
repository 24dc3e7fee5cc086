"""Every option of mpirun, prterun, mpiexec, srun and torchrun has an answer: what it is here, that it has no effect, or
what to write in its place. The lists are in foreign_flags/, and those of the installed programs are compared with them."""

import os
import re
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path

from support.job import BUILD, JobTest, main


LISTS = Path(__file__).with_name("foreign_flags")
FRONTS = {"openmpi-4.1.4": "mpirun", "openmpi-5": "mpirun", "prrte-2026": "prterun", "mpich-4.0.2": "mpiexec.hydra",
          "slurm-22.05.8": "srun"}
NOT_ASKED = ["--help", "--version", "--verbose", "--quiet",  # of dtrun itself
             "--soft", "--arch", "--file", "--usage"]  # rather the program's
BARE = ["knows no flag", "unknown option", "rror: ", "see --help"]


def options(name):
    """Of a list: the spellings of an option, and what values it takes."""
    found = []
    for line in (LISTS / f"{name}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            spellings, _, values = line.partition(" : ")
            found.append((spellings.split(), values.split()))
    return found


def each(name):
    for spellings, values in options(name):
        for spelling in spellings:
            yield spelling, values


class Answers(JobTest):
    def setUp(self):
        super().setUp()
        self.write("a slots=4\n", "hosts")
        self.write("print(1)\n", "train.py")

    def in_place_of(self, front, *words):
        return self.dtrun(front, "-n", "2", *words, "true").err

    def test_each_option_behind_the_name_of_its_launcher(self):
        for name, front in FRONTS.items():
            plain = self.in_place_of(front).splitlines()
            self.assertIn("type: dtrun -n 2", plain[0])
            for spelling, values in each(name):
                with self.subTest(list=name, option=spelling):
                    said = self.in_place_of(front, spelling, *values)
                    for bare in BARE:
                        self.assertNotIn(bare, said)
                    # Translated, or named in a line.
                    command = next((line for line in said.splitlines() if "type: dtrun" in line), plain[0])
                    self.assertTrue(command != plain[0] or re.search(rf"(?m)^(  |dtrun: ){re.escape(spelling)}\b", said),
                                    f"{spelling} is lost in silence: {said}")

    def test_no_option_given_to_dtrun_itself_is_lost_in_silence(self):
        for name in FRONTS:
            for spelling, values in each(name):
                if spelling in ("-h", "--help", "-V", "--version", "-v", "--verbose", "-q", "--quiet"):
                    continue
                with self.subTest(list=name, option=spelling):
                    words = [spelling, *values, "true"]
                    result = self.dtrun("plan", "-n", "2", *words)
                    if result.code != 0:
                        # A word with one dash may be read as a letter and its value.
                        letter = spelling if spelling.startswith("--") else spelling[:2]
                        self.assertRegex(result.err, rf"(?<![-\w])({re.escape(spelling)}|{re.escape(letter)})(?![-\w])")
                        continue
                    told = self.dtrun("-v", "plan", "-n", "2", *words)
                    for line in told.err.splitlines():
                        if "has no effect" in line:
                            self.assertIn(line, result.err)
                    own = re.search(rf"(?<![-\w]){re.escape(spelling)}[, ]", self.dtrun("plan", "--help").out)
                    self.assertTrue(own or spelling in told.err, f"{spelling}: {told}")

    def test_each_long_option_given_to_dtrun_itself_has_an_answer(self):
        for name in FRONTS:
            for spelling, values in each(name):
                if not spelling.startswith("--") or spelling in NOT_ASKED:
                    continue
                with self.subTest(list=name, option=spelling):
                    self.assertNotIn("unknown option", self.dtrun("plan", "-n", "2", spelling, *values, "true").err)
        self.golden(self.dtrun("plan", "-n", "2", "-K", "-u", "--kill-on-bad-exit=1", "--distribution=block", "--kill-on-bad-exit=0",
                               "--pty", "--jobid", "7", "--nodefile=hosts", "true").err)

    def test_mappings_that_are_dtruns_own(self):
        planned = self.dtrun("plan", "--map-by", "slot", "--rank-by", "slot", "-n", "2", "true")
        self.assert_ok(planned)
        self.golden_lines(planned.err, " slot has no effect: ")
        planned = self.dtrun("-v", "plan", "--map-by", "ppr:2:node", "true")
        self.assert_ok(planned)
        self.assertIn("2 ranks", planned.out)
        self.golden_lines(planned.err, "--map-by ppr:2:node is read as --set job.processes_per_host=2")

    def test_refused_options_are_told_at_once_with_a_command_that_runs(self):
        for front in ([], ["mpirun"]):
            with self.subTest(front=front):
                refused = self.dtrun(*front, "--map-by", "node", "--xml", "-np", "2", "--spawn-timeout", "60", "sh", "-c", "echo $RANK of 'us'")
                self.assertEqual(refused.code, 2)
                for spelling in ("--map-by", "--xml", "--spawn-timeout"):
                    self.assertRegex(refused.err, rf"(?m)^(dtrun:| ) {spelling} ")
                typed = re.search(r"type: dtrun (.*)", refused.err)[1]
                ran = self.dtrun(*shlex.split(typed))
                self.assert_ok(ran)
                self.assertEqual(sorted(ran.out.splitlines()), ["[0] 0 of us", "[1] 1 of us"])

    def test_each_option_of_torchrun(self):
        for spelling, values in each("torchrun-2.14.1"):
            with self.subTest(option=spelling):
                result = self.dtrun("plan", "torchrun", spelling, *values, *(["train"] if spelling in ("-m", "--module") else
                                    ["true"] if spelling.replace("_", "-") == "--no-python" else ["train.py"]))
                if result.code != 0:
                    self.assertIn(spelling, result.err)
                    self.assertNotIn("--help lists", result.err)


class Variables(JobTest):
    def test_those_of_mpirun_srun_and_torchrun_are_told_with_what_to_set(self):
        env = self.environment(OMPI_MCA_plm_rsh_agent="ssh -q", SLURM_JOB_ID="7", SLURM_HINT="nomultithread",
                               HYDRA_IFACE="lo", PET_NPROC_PER_NODE="2", OMPI_MCA_btl="self")
        ran = self.dtrun("sh", "-c", "echo $OMPI_MCA_btl", env=env)
        self.assert_ok(ran)
        self.assertEqual(ran.out, "self\n")
        planned = self.dtrun("plan", "true", env=env)
        for name, instead in (("OMPI_MCA_plm_rsh_agent", "--set 'cluster.remote_shell=[\"ssh\", \"-q\"]'"),
                              ("SLURM_HINT=nomultithread", "srun"), ("HYDRA_IFACE", "--set network.interface=lo"),
                              ("PET_NPROC_PER_NODE", "dtrun torchrun")):
            self.golden_lines(ran.err, f"  warning    {name}", instead)
            self.golden_lines(planned.out, f"warning: {name}", instead)
        self.assertNotIn("has no effect", self.dtrun("plan", "torchrun", "--no-python", "true", env=env).err)


class OfOpenMpisLibrary(JobTest):
    WARNING = "  warning    OMPI_MCA_btl (job.env): only Open MPI "
    SETTING = ["--mca", "btl", "tcp,self", "-n", "2"]

    def test_a_program_without_it_gets_a_line(self):
        ran = self.dtrun(*self.SETTING, "python3", "-c", "pass")
        self.assert_ok(ran)
        self.assertIn(self.WARNING, ran.err)
        self.assertIn("add --set job.pmi=pmix\n", ran.err)
        self.assertNotIn("only Open MPI", self.dtrun(*self.SETTING[3:], "python3", "-c", "pass",
                                                     env=self.environment(OMPI_MCA_btl="tcp,self")).err)

    @unittest.skipUnless(shutil.which("mpirun"), "there is no Open MPI")
    def test_where_it_may_be_read_there_is_none(self):
        for words in (["--set", "job.pmi=pmix"], ["--set", "launcher.name=mpirun"], ["--set", "backend.name=mpi"],
                      ["--set", "launcher.name=per-node"]):
            with self.subTest(words=words):
                planned = self.dtrun("plan", *self.SETTING, *words, "true")
                self.assert_ok(planned)
                self.assertNotIn("only Open MPI", planned.out)
        program = BUILD / "tests" / "open_mpi_program"
        if program.exists():
            self.assertNotIn("only Open MPI", self.dtrun("plan", *self.SETTING, program).out)


class Lists(JobTest):
    """The lists are those of the programs, where these have the version."""

    def printed(self, program, *arguments, version, **env):
        if shutil.which(program) is None:
            self.skipTest(f"there is no {program}")
        run = lambda *words: subprocess.run([program, *words], env={**os.environ, **env}, capture_output=True, text=True,
                                            stdin=subprocess.DEVNULL, check=False).stdout
        if version[1] not in run(version[0]):
            self.skipTest(f"it is not {program} {version[1]}")
        return run(*arguments).splitlines()

    def assert_list(self, name, spellings):
        self.assertGreater(len(spellings), 20)
        listed = {spelling for spelling, _ in each(name)}
        self.assertEqual(sorted(set(spellings) - listed), [])

    def test_open_mpi(self):
        lines = self.printed("mpirun", "--allow-run-as-root", "--help", "full", version=("--version", "(Open MPI) 4.1.4"))
        forms = [re.match(r"(?:   )?(-[-\w|]+)", line) for line in lines]
        self.assert_list("openmpi-4.1.4", [name for form in forms if form for name in form[1].split("|")])

    def test_mpich(self):
        lines = self.printed("mpiexec.hydra", "--help", version=("--version", "4.0.2"))
        forms = [re.match(r"    -([-\w/]+)", line) for line in lines]
        self.assert_list("mpich-4.0.2", ["-" + name.lstrip("-") for form in forms if form for name in form[1].split("/")])

    def test_slurm(self):
        conf = self.write("ClusterName=x\nSlurmctldHost=localhost\n", "slurm.conf")
        lines = self.printed("srun", "--help", version=("--version", "22.05.8"), SLURM_CONF=str(conf))
        forms = [re.match(r"  (-\w)?,? +(--[-\w]+)?", line) for line in lines]
        self.assert_list("slurm-22.05.8", [name for form in forms if form for name in form.groups() if name])

    def test_torchrun(self):
        said = "\n".join(self.printed(os.environ.get("DTRUN_TORCHRUN", "torchrun"), "--help", version=("--help", "usage: torchrun")))
        forms = re.findall(r"(?m)^  (-[-\w]+)(?: [^-\n][^\n,]*)?(?:, (--[-\w]+))?(?:[^\n]*?, (--[-\w]+))?", said)
        self.assert_list("torchrun-2.14.1", [name for form in forms for name in form if name])


if __name__ == "__main__":
    main()
