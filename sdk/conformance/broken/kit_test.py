"""dtrun-conformance finds the fault of each plugin of this folder, names its rule, and finds none in sound plugins.

    kit_test.py TOOL BROKEN SOUND... [--wide] [--mpirun PROGRAM]

TOOL is the program, BROKEN the folder of the broken plugins, SOUND the files of others that must pass. --wide runs the cases of
CONTROLS on each broken plugin too, which pass unless they are expected to fail.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

from faults import CONTROLS, FAULTS, HANGING, LATE, LOADING, NARROW, SUM

# What the sound ones pass. Of plugins that have a test of their own, a part is enough here, and of the sound one's variants what
# they change.
WHOLE = "^(?!Sizes|Sequences|.*World[124])"
# Those that need a process for each rank are for a variant: the ranks of the sound one are threads of one process.
PROCESSES = ("Failures.NameARankThatWasKilled|Faults|.*InProcesses|Requests.OfMessagesStartWhileAPeerIsStopped|"
             "Messages.ReachARankThatWasStopped")
THREADS = WHOLE.replace(")", f"|{PROCESSES})")
# Large buffers are tried by the suite of shm.
UNTIL_LARGE = "^(?!Sizes|.*OfMoreThanTwoGibibytes)"
LOSSY = "Load.Exports|Capabilities|Collectives.(.*Are|Sixteen|GiveAll|.*InWorld3)"
PART = "Load|Structs|Plugin.(Has|Offers|Says)|Capabilities|Launcher|Hosts|Connect|Device|Streams|Events|Counters|Requests.(Start|Keep)"


def part_of(name):
    if "_strict" in name:
        return UNTIL_LARGE if GIVEN.wide else WHOLE
    if "sound_lossy" in name and not GIVEN.wide:
        return LOSSY
    if "sound_processes" in name and not GIVEN.wide:
        return f"^({PART}|Failures|{PROCESSES})"
    return WHOLE if "sound_processes" in name else THREADS if "sound" in name else PART


def allocations(folder):
    """Launchers, the variables of an allocation of each, and the suites that they pass then. Writes the files."""
    (folder / "nodes").write_text("node1\nnode1\nnode2\n")
    (folder / "pe").write_text("node1 2 all.q@node1 UNDEFINED\nnode2 1 all.q@node2 UNDEFINED\n")
    (folder / "flux").write_text("#!/bin/sh\necho 'node[1-2]'\n")
    (folder / "flux").chmod(0o755)
    both = ("Hosts", "Connect")
    return [("sound", ["BROKEN_NODES=a:2 b:2"], both),
            ("slurm", ["SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=node[1-2]", "SLURM_TASKS_PER_NODE=2(x2)"], both),
            ("pbs", ["PBS_JOBID=7.head", f"PBS_NODEFILE={folder}/nodes"], ("Hosts",)),
            ("lsf", ["LSB_JOBID=7", "LSB_MCPU_HOSTS=node1 2 node2 1"], both),
            ("gridengine", ["JOB_ID=7", "NSLOTS=3", "NHOSTS=2", f"PE_HOSTFILE={folder}/pe"], both),
            ("flux", ["FLUX_URI=local:///run/flux/local"], both),
            ("flux", ["FLUX_JOB_ID=f2", "FLUX_JOB_NNODES=2", "FLUX_JOB_SIZE=2", "FLUX_TASK_RANK=1"], ("Hosts",)),
            ("sagemaker", ['SM_HOSTS=["algo-1","algo-2"]', "SM_CURRENT_HOST=algo-2"], ("Hosts",)),
            ("kubernetes", ["JOB_COMPLETION_INDEX=3", "HOSTNAME=train-3"], ("Hosts",))]


class Run:
    """One run of the tool: `code`, `out` and `err`, and by case its status, rules and text."""

    def __init__(self, plugin, only, *more, environment=None):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "junit.xml"
            done = subprocess.run([GIVEN.tool, "--plugin", plugin, "--only", only, "--junit", file, *more], text=True,
                                  capture_output=True, check=False, cwd=folder, env={**os.environ, **(environment or {})})
            self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
            self.cases = {}
            for case in xml.parse(file).iter("testcase"):
                failure, skip = case.find("failure"), case.find("skipped")
                self.cases[f"{case.get('classname')}.{case.get('name')}"] = (
                    "failed" if failure is not None else "skipped" if skip is not None else "passed",
                    case.find("properties/property[@name='rule']").get("value").split(", "),
                    "" if failure is None else failure.text)

    def add(self, again):
        """Adds what another run of the same cases has found."""
        self.code = max(self.code, again.code)
        self.out, self.err = self.out + again.out, self.err + again.err
        self.cases.update({name: case for name, case in again.cases.items() if case[0] == "failed"})

    def failed(self):
        return {name for name, (state, _, _) in self.cases.items() if state == "failed"}


def broken(name):
    expected = FAULTS[name][0]
    wide = CONTROLS if GIVEN.wide and name not in NARROW else []
    if name in ("launcher_bad_default", "launcher_strange_type"):
        only = "Load.(Has|Says|Exports|Stays|TakesH|Knows)"  # what needs no instance
    else:
        own = [re.escape(case) + "$" for case in expected if case.split(".")[0] not in wide]
        only = "^(" + "|".join([*wide, "Load" if wide else "Load.(Exports|Stays)", *own]) + ")"
    nodes = ["--env", "BROKEN_NODES=a:2 b:2"] if name.startswith("launcher") else []
    return Run(GIVEN.broken / f"libdtrun_{name}.so", only, *nodes, "--timeout", "10" if name in HANGING else "100")


class Broken(unittest.TestCase):
    def test_each_fault_is_found_and_nothing_else(self):
        # Those that wait need no processor.
        with concurrent.futures.ThreadPoolExecutor(12) as waiting, concurrent.futures.ThreadPoolExecutor(4) as busy:
            futures = {name: (waiting if name in HANGING | LATE else busy).submit(broken, name) for name in FAULTS}
            runs = {name: future.result() for name, future in futures.items()}
        for name, run in runs.items():
            expected, rules, text = FAULTS[name]
            # While all the others run, a case's wait may be too short, and a fault of two threads need not occur.
            for _ in range(2):
                found = run.failed()
                if found < set(expected) or found == set(expected) and text not in run.cases[expected[0]][2]:
                    print(f"once more, because a fault was not found while others ran: {name}", file=sys.stderr)
                    run.add(broken(name))
            with self.subTest(plugin=name):
                self.assertEqual(run.failed(), set(expected), run.out + run.err)
                self.assertEqual(run.code, 1, run.out)
                for rule in rules.split():
                    self.assertIn(rule, {cited for case in expected for cited in run.cases[case][1]})
                    self.assertIn(f"rule {rule}: ", run.out)
                self.assertIn(text, run.cases[expected[0]][2])
                self.assertGreater(len(run.cases), len(expected), "no case could pass")

    def test_every_plugin_of_the_folder_has_an_entry_here(self):
        files = {file.stem.removeprefix("libdtrun_") for file in GIVEN.broken.glob("libdtrun_*.so")}
        self.assertEqual(files - {"backend_sound", "backend_sound_lossy", "backend_sound_processes", "backend_wrong_in_some_runs", "launcher_sound", "device_sound", "backend_needs_library"}, set(FAULTS))


class Sound(unittest.TestCase):
    def expect_pass(self, run):
        self.assertEqual(run.failed(), set(), run.out + run.err)
        self.assertEqual(run.code, 0, run.err)
        self.assertIn("passed", [state for state, _, _ in run.cases.values()])
        self.assertRegex(run.out.splitlines()[-1], r"^\d+ cases in .* passed, 0 failed, \d+ skipped$")

    def test_the_sound_ones_pass(self):
        files = [GIVEN.broken / "libdtrun_backend_sound.so", GIVEN.broken / "libdtrun_backend_sound_lossy.so",
                 GIVEN.broken / "libdtrun_backend_sound_processes.so", GIVEN.broken / "libdtrun_launcher_sound.so",
                 GIVEN.broken / "libdtrun_device_sound.so", *GIVEN.sound]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = pool.map(lambda file: Run(file, part_of(file.name), environment={"SLURM_JOB_ID": "7"}), files)
            for file, run in zip(files, runs):
                with self.subTest(plugin=file.name):
                    self.expect_pass(run)

    def test_sources_of_hosts_pass_in_an_allocation(self):
        sound = {file.stem.removeprefix("libdtrun_launcher_"): file for file in GIVEN.sound}
        sound["sound"] = GIVEN.broken / "libdtrun_launcher_sound.so"
        with tempfile.TemporaryDirectory() as folder:
            for name, words, members in allocations(pathlib.Path(folder)):
                if name not in sound:
                    continue
                path = {"PATH": f"{folder}:{os.environ['PATH']}"}
                given = [word for variable in words for word in ("--env", variable)]
                run = Run(sound[name], r"^(Hosts|Connect)\.", *given, environment=path)
                with self.subTest(plugin=name):
                    self.expect_pass(run)
                    for case, (state, _, _) in run.cases.items():
                        if case.split(".")[0] in members:
                            self.assertEqual(state, "passed", case + run.out)

    def test_a_library_of_one_rank_for_each_process(self):
        if GIVEN.mpi is None:
            self.skipTest("because the mpi plugin or mpirun is missing")
        allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.expect_pass(Run(GIVEN.mpi, "Load|Structs|Plugin|World1", "--world", "1"))
        run = Run(GIVEN.mpi, "Requests.Keep|AllreduceInWorld2|Messages.OfOne", "--world", "2", "--launch",
                  f"{GIVEN.mpirun} --oversubscribe -n {{ranks}}", environment=allowed)
        self.expect_pass(run)
        self.assertEqual({state for state, _, _ in run.cases.values()}, {"passed"}, run.out)

    def test_a_plugin_that_lacks_its_library_is_tried_in_part(self):
        plugin = GIVEN.broken / "libdtrun_backend_needs_library.so"
        run = Run(plugin, ".")
        self.assertEqual((run.code, run.failed()), (0, set()), run.out)
        self.assertEqual({name for name, (state, _, _) in run.cases.items() if state == "passed"},
                         {name for name in run.cases if name.startswith("Load.")} - set(LOADING))
        self.assertIn(f"skipped  {SUM} (0.00 s): cannot be initialised here: cannot load libvendor.so\n", run.out)
        self.assertEqual(run.out.splitlines()[-1],
                         "only loading was tried: the plugin cannot be initialised here: cannot load libvendor.so")

    def test_a_file_that_cannot_be_loaded_fails_once(self):
        with tempfile.TemporaryDirectory() as folder:
            plugin = pathlib.Path(folder) / "libdtrun_backend_sound.so"
            plugin.write_bytes((GIVEN.broken / plugin.name).read_bytes()[:40])
            run = Run(plugin, ".")
        self.assertEqual((run.code, run.failed()), (1, {"Load.CanBeLoaded"}), run.out)
        self.assertEqual(set(run.cases), run.failed())
        self.assertRegex(run.out.splitlines()[-1], r"^the \d+ cases were not tried: the file cannot be loaded$")
        self.assertIn("file too short", run.cases["Load.CanBeLoaded"][2])

    def test_messages_alone_are_a_profile(self):
        run = Run(GIVEN.broken / "libdtrun_backend_sound.so", "^(?!.*Stopped)[LSM]", "--profile", "messages")
        self.expect_pass(run)
        self.assertIn("Messages.OfEverySizeArrive", run.cases)
        self.assertNotIn("Collectives.AllreduceInWorld2", run.cases)


class Repeated(unittest.TestCase):
    def test_the_report_says_in_how_many_runs_a_case_failed(self):
        case = "Collectives.IntegerSumsAndProductsWrap"
        run = Run(GIVEN.broken / "libdtrun_backend_wrong_in_some_runs.so", f"^({case}|Load.ExportsOneSymbol)$", "--repeat", "30")
        self.assertIn(" cases, each 30 times\n", run.out)
        self.assertEqual((run.code, run.failed()), (1, {case}), run.out)
        found = re.search(rf"FAILED   {case} \(.* s\): in (\d+) of 30 runs: ", run.out)
        self.assertIsNotNone(found, run.out)
        self.assertIn(int(found[1]), range(1, 30))  # all alike: 1 in 2**29
        self.assertRegex(run.out.splitlines()[-1], "^2 cases in .* 1 passed, 1 failed, 0 skipped$")


class Interrupted(unittest.TestCase):
    def test_a_signal_ends_the_case_and_leaves_no_file(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number), tempfile.TemporaryDirectory() as folder:
                command = [GIVEN.tool, "--plugin", GIVEN.broken / "libdtrun_backend_blocks.so", "--only", "Requests.OfMessagesStart"]
                tool = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder},
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
                case = list(pathlib.Path(folder).glob("*/Requests*/record"))
                while not case and tool.poll() is None:
                    time.sleep(0.05)
                    case = list(pathlib.Path(folder).glob("*/Requests*/record"))
                tool.send_signal(number)
                self.assertEqual(tool.wait(30), -number)
                self.assertEqual(os.listdir(folder), [])


class CommandLine(unittest.TestCase):
    def refused(self, *words):
        done = subprocess.run([GIVEN.tool, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_garbage_is_refused_by_name_with_a_next_step(self):
        plugin = ["--plugin", GIVEN.broken / "libdtrun_backend_sound.so"]
        for words, pieces in {
            (): ("--plugin", "is missing"),
            ("\x1b[2Jx\u009b",): ("'\\u001b[2Jx\\u009b' is no argument",),
            ("--plugin", "/nowhere/\x1b[2Jx"): ("/nowhere/\\u001b[2Jx",),
            ("--plug", "x"): ("'--plug'", "did you mean '--plugin'?"),
            ("--plugin",): ("needs a value",),
            ("--plugin", "/nowhere.so"): ("/nowhere.so", "build the plugin"),
            ("--plugin", GIVEN.tool): ("must be named libdtrun_backend_NAME.so", "rename it"),
            (*plugin, "--world", "many"): ("'--world' is 'many'", "1 to 64"),
            (*plugin, "--only", "("): ("'--only'", "regular expression"),
            (*plugin, "--only", "^Nothing$"): ("'--only'", "--list"),
            (*plugin, "--profile", "launcher"): ("'--profile'", "messages and host-collectives"),
            (*plugin, "--profile", "device-collectives"): ("not there yet",),
            (*plugin, "--set", "x"): ("'--set' is 'x'", "OPTION=VALUE"),
            (*plugin, "--set", "nothing=1"): ("no option 'nothing'", "dtrun plugins describe"),
            (*plugin, "--env", "=1"): ("'--env' is '=1'", "NAME=VALUE"),
            (*plugin, "--set", "retries=12"): ("'retries' is '12'", "at most 9"),
            (*plugin, "--junit", "/nowhere/x.xml"): ("'--junit'", "another file"),
            (*plugin, "--launch", "/nowhere/mpirun"): ("no case can be started", "/nowhere/mpirun"),
            (*plugin, "--launch", "false"): ("no case can be started", "--launch", "exit code 1"),
        }.items():
            with self.subTest(words=words):
                text = self.refused(*words)
                for piece in pieces:
                    self.assertIn(piece, text)

    def test_the_list_has_rules_and_runs_nothing(self):
        done = subprocess.run([GIVEN.tool, "--plugin", GIVEN.broken / "libdtrun_backend_exits.so", "--list"], capture_output=True,
                              text=True, check=True)
        self.assertIn("Load.ExportsOneSymbol  V2\n", done.stdout)

    def test_help_has_every_argument(self):
        text = subprocess.run([GIVEN.tool, "--help"], capture_output=True, text=True, check=True).stdout
        for word in ("plugin", "world", "only", "profile", "seed", "junit", "list", "timeout", "set", "env", "launch", "wide"):
            self.assertIn(f"--{word}", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=os.path.abspath)
    parser.add_argument("broken", type=os.path.abspath)
    parser.add_argument("sound", type=os.path.abspath, nargs="*")
    parser.add_argument("--mpi", type=os.path.abspath)
    parser.add_argument("--mpirun")
    parser.add_argument("--wide", action="store_true")
    GIVEN, rest = parser.parse_known_args()
    GIVEN.broken, GIVEN.sound = pathlib.Path(GIVEN.broken), [pathlib.Path(file) for file in GIVEN.sound]
    unittest.main(argv=sys.argv[:1] + rest)
