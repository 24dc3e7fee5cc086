"""dtrun-conformance finds the fault of each plugin of this folder, names its rule, and finds none in sound plugins.

    kit_test.py TOOL BROKEN SOUND... [--mpirun PROGRAM]

TOOL is the program, BROKEN the folder of the broken plugins, SOUND the files of others that must pass.
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

# Cases that are run on every broken plugin, and pass unless they are expected to fail.
CONTROLS = ("Load", "Structs", "Plugin.HasACompleteTable", "Plugin.SaysValidTextsAtLaunch", "Capabilities.MakeSense", "Capabilities.AreKnown", "Launcher", "Hosts", "Connect", "Requests.KeepTheirOutcome",
            "Messages.OfOneTagKeepTheirOrder", "Collectives.AllreduceInWorld2", "Devices", "DeviceMemory", "Streams", "Events", "Counters")

LOADING = "Load.TouchesNothingInInit"
ERRORS = "Structs.ErrorsOfAnotherSize"
OPERATIONS = "Structs.OperationsOfAnotherSize"
FLAGS = "Structs.FlagsThatMustBeUnderstood"
RANKS = "Launcher.PlansEveryRankOnce"
TEXTS = "Launcher.GivesValidTexts"
REFUSAL = "Launcher.PassesOnARefusal"
SIZES = "Launcher.TakesStructsOfAnotherSize"
SAME = "Launcher.PlansTheSameEachTime"
LAUNCHER_FLAGS = "Launcher.RefusesFlagsThatMustBeUnderstood"
MEMBERS = "Plugin.LeavesTheProcessAloneInEachMember"
ALL_PLANS = (RANKS, SAME, "Launcher.TouchesNothingWhenItPlans", "Launcher.WritesNothingWhenItPlans", TEXTS, REFUSAL, SIZES, LAUNCHER_FLAGS)
NO_HOSTS = "Hosts.AreNotFoundWithoutThePlatform"
ALLOCATION = "Hosts.AreOnePossibleAllocation"
STARTED = "Connect.StartsEachHostOnce"
QUERY_SIZES = ("Hosts.TakeStructsOfAnotherSize", "Connect.TakesStructsOfAnotherSize")
QUERY_FLAGS = ("Hosts.RefuseFlagsThatMustBeUnderstood", "Connect.RefusesFlagsThatMustBeUnderstood")
NO_DEVICE = "DeviceMemory.ThatIsNotThereIsRefused"
EVENTS = "Events.HoldStreamsBack"
COUNTERS = "Counters.ReleaseAtTheirValueAndAbove"
DESTROYED = "Streams.EndWhenTheirWorkHasEnded"
PENDING = "Requests.KeepTheirOutcome"
ORDER = "Messages.OfOneTagKeepTheirOrder"
SUM = "Collectives.AllreduceInWorld2"
UNANSWERED = "Failures.EndAMessageThatNobodyAnswers"
WORLD_OF_2 = (OPERATIONS, FLAGS, PENDING, ORDER, SUM)
EVERY_WORLD = WORLD_OF_2 + (ERRORS, "Structs.ParametersOfCommunicatorsOfAnotherSize", "Structs.SnapshotSinksOfAnotherSize",
                            "Structs.ParametersOfAbortOfAnotherSize")

# Plugin -> the cases that fail, a rule that each names, a piece of what the first prints.
FAULTS = {
    "backend_extra_symbol": (("Load.ExportsOneSymbol",), "V2", "exports 'broken_helper'"),
    "backend_no_nodelete": (("Load.StaysWhenItIsClosed",), "V12", "NODELETE"),
    "backend_other_name": (("Load.SaysWhoItIs",), "V1", "somebody_else"),
    "backend_thread_in_entry": (("Load.HasACheapEntry", "Load.TouchesNothingInTheEntry"), "V3", "started a thread"),
    "backend_entry_reads_behind": (("Load.TakesHostsOfAnotherSize",), "S2", "behind a dtrun_host of"),
    "backend_any_extension": (("Load.KnowsNoUnknownExtension",), "S13", "nobody.nothing"),
    "backend_key_twice": (("Load.HasOptionsThatMakeSense",), "O1", "there twice"),
    "backend_long_key": (("Load.HasOptionsThatMakeSense",), "O1", "has 3000000 characters"),
    "backend_signal_handler": ((LOADING,), "T7", "is 'handled'"),
    "backend_changes_environment": ((LOADING,), "T7", "BROKEN_WAS_HERE"),
    "backend_changes_folder": ((LOADING,), "T7", "working folder"),
    "backend_longer_caps": (("Structs.CapabilitiesOfAnotherSize",), "S3", "behind a dtrun_backend_caps of"),
    "backend_init_on_error": ((ERRORS,), "E4", "behind a dtrun_error of"),
    "backend_writes_out": ((ERRORS,), "S14", "wrote to *out"),
    "backend_reads_behind": ((OPERATIONS,), "S2", "behind a dtrun_op of"),
    "backend_keeps_operation": ((OPERATIONS, FLAGS, ORDER, SUM), "", "Segmentation fault"),
    "backend_ignores_flags": ((FLAGS,), "S6", "with bit 30"),
    "backend_throws": (WORLD_OF_2, "", "thrown by enqueue"),
    "backend_unknown_status": ((PENDING,), "E2", "status 99 does not exist"),
    "backend_no_text": ((ERRORS, UNANSWERED), "E3", "no text"),
    "backend_exits": (EVERY_WORLD, "T8", "exit code 0"),
    "backend_out_untouched": ((PENDING, ORDER, SUM), "B17", "left *out untouched"),
    "backend_leaks_descriptor": (("Plugin.KeepsNothingOfCommunicatorsThatWent",), "T9", "descriptor "),
    "backend_leaks_memory": (("Plugin.NeedsNoMoreMemoryForEachCall",), "T13", "bytes that the process grows by"),
    "backend_abort_is_deaf": (("Abort.EndsWhatIsBlocked",), "F6", "waited in vain for 'aborted'"),
    "backend_forgets_failure": (("Failures.EndACallThatAnotherRankSkips",), "F3", "did not end within"),
    "backend_claims_type": (("Capabilities.AgreeWithWhatTypesAndReductionsDo", SUM), "", "no int16 here"),
    "backend_wrong_sum": ((SUM,), "C2", "6.000000, not 5.000000"),
    "backend_rounds_each_step": (("Collectives.SixteenBitSumsAreAccumulatedInFloat32",), "C5", "data"),
    "backend_early_barrier": (("Collectives.BarrierInWorld2",), "C3", "entered"),
    "backend_wrong_order": ((ORDER,), "M1", "data"),
    "backend_no_timeouts": ((UNANSWERED,), "F1", "DTRUN_TIMEOUT"),
    "backend_never_completes": (("Messages.OfEverySizeArrive",), "", "did not end within"),
    "backend_blocks": (("Requests.OfMessagesStartWithoutAPeer",), "B6", "waited in vain for 'started'"),
    "backend_pending_alone": ((PENDING,), "B6", "without a request"),
    "backend_changes_outcome": ((PENDING,), "B7", "ok()"),
    "backend_waits_too_long": (("Requests.SurviveShortWaits",), "B8", "waited in vain for 'waited'"),
    "backend_replaced_in_circle": (("Load.HasOptionsThatMakeSense",), "O1", "replaced in a circle"),
    "backend_long_table": (("Load.SaysWhoItIs",), "S1", "bytes of its dtrun_plugin"),
    "backend_out_with_ok": ((PENDING, ORDER, SUM), "B6", "wrote to *out and returned status 0"),
    "backend_other_code": ((UNANSWERED, ERRORS), "E3", "the code of the error"),
    "backend_error_with_ok": (("Capabilities.MakeSense",), "E3", "is no failure and filled the error"),
    "backend_forks_and_waits": (tuple(case for case in EVERY_WORLD if case != ERRORS), "T8", "copies of this process"),
    "backend_bad_fact": (("Plugin.SaysValidTextsAtLaunch",), "S15", "the text of fact 'wire'"),
    "backend_null_variable": (("Plugin.SaysValidTextsAtLaunch",), "B26", "the value of 'BROKEN_WIRE' is NULL"),
    "backend_launch_touches": ((MEMBERS,), "T7", "in or before launch_info"),
    "backend_create_touches": ((MEMBERS,), "T7", "in or before comm_create"),
    "backend_abort_touches": ((MEMBERS,), "T7", "in or before comm_abort"),
    "backend_test_touches": ((MEMBERS,), "T7", "is 'handled'"),
    "backend_claims_bit": (("Capabilities.AreKnown",), "B15", "that its headers do not have"),
    "backend_claims_bytes": (("Capabilities.HoldForTheLargestBuffer",), "B13", "more than 64 MiB"),
    "backend_small_limit": (("Capabilities.MakeSense",), "B13", "at least 16 MiB"),
    "backend_releases_early": (("Requests.FinishBeforeReleaseReturns",), "B10", "before the other rank took part"),
    "launcher_no_member": (("Load.SaysWhoItIs",), "V10", "none of plan, find_hosts and connect"),
    "launcher_other_plan": ((SAME, SIZES, LAUNCHER_FLAGS), "", "the second time"),
    "launcher_rank_twice": ((RANKS,), "L2", "times that rank 0 is planned"),
    "launcher_rank_missing": ((RANKS,), "L2", "times that rank 1 is planned"),
    "launcher_null_value": ((TEXTS,), "L3", "the value of 'RANK' is NULL"),
    "launcher_null_argument": ((TEXTS,), "L3", "argument 1 is NULL"),
    "launcher_equals_in_name": ((TEXTS,), "L3", "RANK=OF"),
    "launcher_deaf_to_refusal": ((REFUSAL,), "L6", "DTRUN_OUT_OF_MEMORY"),
    "launcher_init_on_error": ((REFUSAL,), "E4", "behind a dtrun_error of"),
    "launcher_wrong_stride": ((SIZES,), "S10", "dtrun_job_hosts of"),
    "launcher_ignores_flags": ((LAUNCHER_FLAGS,), "S6", "with bit 30"),
    "launcher_unknown_status": (ALL_PLANS, "E2", "status 99"),
    "launcher_fails_silently": (ALL_PLANS, "L6", "without a text"),
    "launcher_forks": (ALL_PLANS, "T8", "processes behind"),
    "launcher_plan_touches": (("Launcher.TouchesNothingWhenItPlans",), "T7", "by the first plan"),
    "launcher_writes_file": (("Launcher.WritesNothingWhenItPlans",), "L5", "bytes that this process has written"),
    "launcher_no_arguments": ((TEXTS,), "L3", "has no program"),
    "launcher_long_process": ((TEXTS,), "S1", "a dtrun_process says that it has"),
    "launcher_plan_other_code": ((REFUSAL,), "E3", "the code of the error"),
    "launcher_find_touches": (("Hosts.AreFoundWithoutATrace",), "T7", "by the first call in this process"),
    "launcher_find_writes_file": (("Hosts.AreFoundWithoutATrace",), "L5", "hosts.cache"),
    "launcher_bad_evidence": ((ALLOCATION,), "S15", "evidence has control characters"),
    "launcher_long_allocation": ((ALLOCATION,), "S1", "a dtrun_allocation says that it has"),
    "launcher_hosts_by_process": (("Hosts.AreTheSameEachTime",), "L9", "in another process"),
    "launcher_connect_touches": (("Connect.LeavesNoTrace",), "T7", "by the first call in this process"),
    "launcher_bad_trial": ((STARTED,), "S15", "trial is no UTF-8"),
    "launcher_finds_always": ((NO_HOSTS,), "L8", "in an empty environment"),
    "launcher_reads_environment": ((NO_HOSTS,), "L7", "variables that only the process has"),
    "launcher_no_platform_is_a_failure": ((NO_HOSTS,), "L8", "DTRUN_NOT_FOUND"),
    "launcher_host_twice": ((ALLOCATION,), "L9", "the host 'a' twice"),
    "launcher_negative_slots": ((ALLOCATION,), "L9", "has -1 slots"),
    "launcher_other_hosts": (("Hosts.AreTheSameEachTime", QUERY_SIZES[0], QUERY_FLAGS[0]), "", "the second time"),
    "launcher_no_allocation": ((ALLOCATION, "Hosts.PassOnARefusal"), "", "allocations"),
    "launcher_two_allocations": ((ALLOCATION,), "L9", "a second allocation"),
    "launcher_hosts_deaf_to_refusal": (("Hosts.PassOnARefusal",), "L6", "DTRUN_OUT_OF_MEMORY"),
    "launcher_query_reads_behind": (QUERY_SIZES, "S2", "behind a dtrun_hosts_query of"),
    "launcher_query_ignores_flags": (QUERY_FLAGS, "S6", "with bit 30"),
    "launcher_connect_without_text": (("Connect.ReadsTheQueryOnly",), "L10", "failed without a text"),
    "launcher_no_program": ((STARTED,), "L10", "a command has no program"),
    "launcher_unknown_host": ((STARTED,), "L10", "starts host 2 of 2"),
    "launcher_host_not_started": ((STARTED,), "L10", "commands that start host 1 of 2"),
    "launcher_host_started_twice": ((STARTED,), "L10", "commands that start host 1 of 2"),
    "launcher_connect_deaf_to_refusal": (("Connect.PassesOnARefusal",), "L6", "DTRUN_OUT_OF_MEMORY"),
    "device_no_text": (("Devices.AreDescribedInALine", NO_DEVICE, "Devices.RefuseFlagsThatMustBeUnderstood",
                        "Devices.FillErrorsOfAnotherSize"), "E3", "failed without a text"),
    "device_writes_out": ((NO_DEVICE,), "S14", "wrote to *out"),
    "device_ignores_flags": (("Devices.RefuseFlagsThatMustBeUnderstood",), "S6", "with bit 30"),
    "device_no_counter_wait": (("Load.SaysWhoItIs",), "V10", "counter_wait"),
    "device_kind_of_host": (("Devices.AreCountedFromZero",), "G1", "its kind is 0"),
    "device_no_devices": (("Devices.AreCountedFromZero",), "G1", "DTRUN_FAILED_PRECONDITION"),
    "device_long_description": (("Devices.AreDescribedInALine",), "G11", "behind a description of 1 bytes"),
    "device_keeps_device": (("Devices.LeaveTheThreadsDeviceAlone",), "G2", "after mem_alloc on device 1"),
    "device_first_byte_only": (("DeviceMemory.KnowsItsDevice",), "G4", "the last byte"),
    "device_all_on_first_device": (("DeviceMemory.KnowsItsDevice",), "G4", "memory of a device"),
    "device_longer_memory": (("Devices.TakeStructsOfAnotherSize",), "S3", "behind a dtrun_memory of"),
    "device_bad_alignment": (("DeviceMemory.IsAlignedAndKeepsWhatIsWritten",), "G5", "aligned to 256"),
    "device_takes_any_device": ((NO_DEVICE,), "G5", "it gave what it cannot have"),
    "device_copies_at_once": (("Streams.KeepTheOrderOfTheirWork",), "G6", "before the stream's earlier work had ended"),
    "device_always_captured": (("Streams.AreNotCapturedByThemselves",), "G10", "nobody captures"),
    "device_never_recorded_runs": ((EVENTS,), "G7", "never recorded"),
    "device_events_are_early": ((EVENTS,), "G7", "before the stream came to it"),
    "device_wait_forgets": ((EVENTS, DESTROYED), "G7", "a stream did not wait for an event"),
    "device_waits_for_new_place": (("Events.KeepTheirOldPlaceForThoseThatWait",), "G7", "was not reached"),
    "device_counter_forgets": ((COUNTERS,), "G8", "at 4, of a wait for 5"),
    "device_counter_equal": ((COUNTERS,), "G8", "was not reached"),
    "device_counter_blocks": (("Streams.HoldUpNoCall",), "G3", "counter_wait waits"),
    "device_destroy_waits": ((DESTROYED,), "G9", "stream_destroy waits"),
    "device_destroy_drops": ((DESTROYED,), "G9", "was not reached"),
    "launcher_bad_default": (("Load.HasOptionsThatMakeSense",), "O1", "'retries' is 'many'"),
}
# These harm more than is worth a list, or hang: only the cases that are expected, beside those of the file.
NARROW = {"backend_forgets_failure", "backend_unknown_status", "backend_no_text", "backend_out_untouched", "backend_pending_alone", "backend_wrong_sum",
          "backend_early_barrier", "backend_no_timeouts", "backend_never_completes", "backend_abort_is_deaf", "backend_blocks",
          "backend_waits_too_long", "backend_releases_early", "backend_rounds_each_step", "backend_error_with_ok", "backend_other_code", "launcher_bad_default", "device_no_counter_wait",
          "device_kind_of_host", "device_no_devices", "device_takes_any_device", "device_events_are_early", "device_counter_forgets",
          "device_counter_equal", "device_counter_blocks"}
HANGING = {"backend_forgets_failure", "backend_no_timeouts", "backend_never_completes", "backend_abort_is_deaf", "backend_blocks",
           "backend_waits_too_long", "device_never_recorded_runs", "device_waits_for_new_place", "device_counter_equal",
           "device_counter_blocks", "device_destroy_waits", "device_destroy_drops"}

# What the sound ones pass. Of plugins that have a test of their own, a part is enough here.
WHOLE = "^(?!Sizes|Sequences|.*World[124]|Failures.NameARankThatWasKilled)"  # its ranks are threads of one process
PART = ("Load|Structs|Plugin|Capabilities|Launcher|Hosts|Connect|Device|Streams|Events|Counters|Abort|Requests.(Start|Of|Keep|Finish)|Communicators.DoNot|"
        "Messages.(OfOne|Are|ThatCross)|Failures.(NameARankThatLeft|EndAMessage)")


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

    def failed(self):
        return {name for name, (state, _, _) in self.cases.items() if state == "failed"}


def broken(name):
    expected = FAULTS[name][0]
    wide = [] if name in NARROW else CONTROLS
    if name == "launcher_bad_default":
        only = "Load.(Has|Says|Exports|Stays|TakesH|Knows)"  # what needs no instance
    else:
        own = [re.escape(case) + "$" for case in expected if case.split(".")[0] not in wide]
        only = "^(" + "|".join([*wide, "Load", *own]) + ")"
    nodes = ["--env", "BROKEN_NODES=a:2 b:2"] if name.startswith("launcher") else []
    return Run(GIVEN.broken / f"libdtrun_{name}.so", only, *nodes, "--timeout", "10" if name in HANGING else "100")


class Broken(unittest.TestCase):
    def test_each_fault_is_found_and_nothing_else(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for name, run in zip(FAULTS, pool.map(broken, FAULTS)):
                expected, rule, text = FAULTS[name]
                with self.subTest(plugin=name):
                    self.assertEqual(run.failed(), set(expected), run.out + run.err)
                    self.assertEqual(run.code, 1)
                    for case in expected:
                        if rule:
                            self.assertIn(rule, run.cases[case][1], case)
                            self.assertIn(f"rule {rule}: ", run.out)
                    self.assertIn(text, run.cases[expected[0]][2])
                    self.assertGreater(len(run.cases), len(expected), "no case could pass")

    def test_every_plugin_of_the_folder_has_an_entry_here(self):
        files = {file.stem.removeprefix("libdtrun_") for file in GIVEN.broken.glob("libdtrun_*.so")}
        self.assertEqual(files - {"backend_sound", "launcher_sound", "device_sound", "backend_needs_library"}, set(FAULTS))


class Sound(unittest.TestCase):
    def expect_pass(self, run):
        self.assertEqual(run.failed(), set(), run.out + run.err)
        self.assertEqual(run.code, 0, run.err)
        self.assertIn("passed", [state for state, _, _ in run.cases.values()])
        self.assertRegex(run.out.splitlines()[-1], r"^\d+ cases in .* passed, 0 failed, \d+ skipped$")

    def test_the_sound_ones_pass(self):
        files = [GIVEN.broken / "libdtrun_backend_sound.so", GIVEN.broken / "libdtrun_launcher_sound.so",
                 GIVEN.broken / "libdtrun_device_sound.so", *GIVEN.sound]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = pool.map(lambda file: Run(file, WHOLE if "sound" in file.name else PART, environment={"SLURM_JOB_ID": "7"}),
                            files)
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
                         {name for name in run.cases if name.startswith("Load.")} - {LOADING})
        self.assertIn(f"skipped  {SUM} (0.00 s): cannot be initialised here: cannot load libvendor.so\n", run.out)
        self.assertEqual(run.out.splitlines()[-1],
                         "only loading was tried: the plugin cannot be initialised here: cannot load libvendor.so")

    def test_messages_alone_are_a_profile(self):
        run = Run(GIVEN.broken / "libdtrun_backend_sound.so", "^[LSM]", "--profile", "messages")
        self.expect_pass(run)
        self.assertIn("Messages.OfEverySizeArrive", run.cases)
        self.assertNotIn("Collectives.AllreduceInWorld2", run.cases)


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
        for word in ("plugin", "world", "only", "profile", "seed", "junit", "list", "timeout", "set", "env", "launch"):
            self.assertIn(f"--{word}", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=os.path.abspath)
    parser.add_argument("broken", type=os.path.abspath)
    parser.add_argument("sound", type=os.path.abspath, nargs="*")
    parser.add_argument("--mpi", type=os.path.abspath)
    parser.add_argument("--mpirun")
    GIVEN, rest = parser.parse_known_args()
    GIVEN.broken, GIVEN.sound = pathlib.Path(GIVEN.broken), [pathlib.Path(file) for file in GIVEN.sound]
    unittest.main(argv=sys.argv[:1] + rest)
