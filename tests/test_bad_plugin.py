"""Plugins that cannot be had or must not be loaded: one clear answer each."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

from support.job import BUILD, RANK, SOURCE, JobTest, main

PLUGINS = BUILD / "lib" / "dtrun" / "plugins"
ABI = ".".join(re.findall(r"define DTRUN_ABI_M(?:AJOR|INOR) (\d+)u", (SOURCE / "sdk/include/dtrun/abi/base.h").read_text()))
WRONG = BUILD / "tests" / "plugins"  # built by core/plugin/testing


class BadPlugin(JobTest):
    def setUp(self):
        super().setUp()
        self.plugins = self.folder / "plugins"
        self.plugins.mkdir(mode=0o755)
        for folder in (self.folder, self.plugins):  # a plugin's own libraries lie beside it
            for name in ("libglpH.so.0", "libglpN.so.0"):
                (folder / name).symlink_to(PLUGINS / name)

    def place(self, source, name):
        target = self.plugins / f"libdtrun_backend_{name}.so"
        shutil.copy(source, target)
        target.chmod(0o755)
        return target

    def check(self, name, *texts):
        result = self.dtrun("--plugin-dir", self.plugins, "--set", f"backend.name={name}", "--", "true")
        self.assert_user_error(result, *texts)

    def test_a_name_that_exists_nowhere_lists_what_exists_and_where_it_looked(self):
        self.check("golo", "'golo'", "\n  did you mean 'gloo'?\n", f"\n    {self.plugins} (", f"\n    {PLUGINS} (")
        for setting in ("launcher.name=nosuch", "backend.path=/nosuch\nfile"):
            result = self.dtrun("--plugin-dir", self.plugins, "--set", setting, "--", "true")
            self.assert_user_error(result)
            self.assertEqual("\\n" in result.err, "file" in setting, result.err)

    def test_json_names_files_with_names_that_are_no_utf8(self):
        folder = os.fsdecode(os.fsencode(self.folder) + b"/caf\xe9")
        shutil.copytree(PLUGINS, folder)
        for verb in (["list"], ["describe", "gloo"]):
            result = self.dtrun("plugins", *verb, "--json", "--plugin-dir", folder)
            self.assert_ok(result)
            self.assertIn("/caf\ufffd/libdtrun_backend_gloo.so", result.out)
            json.loads(result.out)

    def test_a_name_that_is_a_path_is_refused(self):
        self.check("../evil", "'../evil'")

    def test_that_hangs_or_exits_in_a_rank_ends_the_job_and_is_named(self):
        for name in ("init_exits", "exits_when_loaded", "operation_exits", "thread_exits", "shutdown_exits", "destroy_hangs", "init_hangs"):
            with self.subTest(name=name):
                self.place(WRONG / f"libdtrun_backend_{name}.so", name)
                result = self.dtrun("--plugin-dir", self.plugins, "--set", f"backend.name={name}", "--set", "backend.timeout=1s",
                                    "--set", "comm.local=none", "-n", "2", "--", RANK)
                self.assertEqual(result.code, 70, str(result))
                self.golden_lines(result.err, f"    | dtrun: backend '{name}', ")

    def test_that_leaves_by_the_systems_exit_is_named(self):
        self.place(WRONG / "libdtrun_backend_operation_leaves.so", "operation_leaves")
        result = self.dtrun("--plugin-dir", self.plugins, "--set", "backend.name=operation_leaves", "--set", "comm.local=none", "-n",
                            "2", "--", RANK)
        self.assertNotEqual(result.code, 0, str(result))
        self.golden_lines(result.err, "  it reported: ", "_exit", "'operation_leaves'")

    def refuse(self, name, ranks):
        """The output of a job in which rank 1 rejects its plugin. Each rank stays until all have failed, so that none is ended by the end of
        another; the limit is an hour."""
        self.place(WRONG / f"libdtrun_backend_{name}.so", name)
        all_ended = " -a ".join(f"-e ended.{rank}" for rank in range(ranks))
        stay = f"{RANK}; code=$?; touch ended.$RANK; until [ {all_ended} ]; do sleep 0.1; done; exit $code"
        result = self.dtrun("--plugin-dir", self.plugins, "--set", f"backend.name={name}", "--set", "comm.local=none", "--set",
                            "backend.timeout=1h", "-n", str(ranks), "--", "sh", "-c", stay)
        self.assertNotEqual(result.code, 0, str(result))
        return result.out + result.err

    def test_that_refuses_on_one_rank_fails_on_all_at_once(self):
        said = self.refuse("refuses", 4)
        why = "rank 1 .*'world' over backend 'refuses': "
        for rank in range(4):
            self.assertRegex(said, rf"(?m)^\[{rank}\] .*{why}")
        self.golden_lines(said, "[3] ", "'world'", "10s")

    def test_that_cannot_be_initialised_on_one_rank_fails_on_all_at_once(self):
        said = self.refuse("init_refuses", 3)
        for rank, who in enumerate(("rank 1: ", "", "rank 1: ")):
            self.assertRegex(said, rf"(?m)^\[{rank}\] rank failed: {who}.*'init_refuses': ")

    def test_truncated(self):
        file = self.place(PLUGINS / "libdtrun_backend_gloo.so", "cut")
        file.write_bytes(file.read_bytes()[:1000])
        self.check("cut", str(file), "truncated")

    def test_not_a_shared_object(self):
        file = self.plugins / "libdtrun_backend_text.so"
        file.write_text("hello\n")
        self.check("text", str(file), "shared object")

    def test_without_a_library_that_it_needs(self):
        (self.plugins / "libglpN.so.0").unlink()
        self.place(PLUGINS / "libdtrun_backend_gloo.so", "gloo")
        self.check("gloo", "libglpN.so.0: ")

    def test_of_another_name(self):
        self.place(PLUGINS / "libdtrun_backend_gloo.so", "renamed")
        self.check("renamed", "'gloo'", "renamed")

    def test_of_the_wrong_kind(self):
        self.place(PLUGINS / "libdtrun_launcher_per_process.so", "per_process")
        self.check("per_process", "launcher", "backend")

    def test_of_another_abi(self):
        self.place(WRONG / "libdtrun_backend_other_minor.so", "other_minor")
        self.check("other_minor", "other_minor", ABI, "ABI")

    def test_that_crashes_is_one_answer_here_and_one_row_in_the_list(self):
        self.place(WRONG / "libdtrun_backend_entry_crashes.so", "entry_crashes")
        self.check("entry_crashes", "SIGSEGV")
        listed = self.dtrun("plugins", "list", "--plugin-dir", self.plugins)
        self.assert_ok(listed)
        self.assertIn("SIGSEGV", listed.out)
        self.assertRegex(listed.out, r"backend\s+gloo\s+\d")

    def test_world_writable(self):
        file = self.place(PLUGINS / "libdtrun_backend_gloo.so", "gloo")
        file.chmod(0o777)
        self.check("gloo", str(file), "chmod")

    def test_in_a_world_writable_folder(self):
        self.place(PLUGINS / "libdtrun_backend_gloo.so", "gloo")
        self.plugins.chmod(0o777)
        self.check("gloo", str(self.plugins), "chmod")

    def test_that_the_own_group_may_write_is_told_once_a_job(self):
        self.place(PLUGINS / "libdtrun_backend_gloo.so", "gloo")
        command = ("-n", "2", "--plugin-dir", self.plugins, "--set", "backend.name=gloo", "--", RANK, "sum")
        self.assertNotIn("chmod g-w", self.dtrun(*command).err)
        self.plugins.chmod(0o775)
        told = f"the folder '{self.plugins}' may be "
        result = self.dtrun(*command)
        self.assert_ok(result)
        self.assertEqual(result.err.count(told), 1, str(result))
        self.assertEqual(result.err.count("chmod g-w"), 1, str(result))
        self.assertIn(told, self.dtrun("plan", *command).out)

    def test_a_first_match_that_fails_is_the_final_answer(self):
        (self.plugins / "libdtrun_backend_gloo.so").write_text("broken\n")
        self.check("gloo", str(self.plugins / "libdtrun_backend_gloo.so"))

    def test_the_working_directory_is_never_searched(self):
        shutil.copy(PLUGINS / "libdtrun_backend_gloo.so", self.folder / "libdtrun_backend_mine.so")
        self.check("mine", "'mine'")

    def test_no_launcher_of_that_name(self):
        result = self.dtrun("--set", "launcher.name=per-proces", "--", "true")
        self.golden_error(result, "'per-proces'", "'per-process'")

    def test_a_launcher_that_plans_what_cannot_be_is_named(self):
        shutil.copy(WRONG / "libdtrun_launcher_bad.so", self.plugins)
        for fault in ("silent", "unknown-status", "escapes", "crashes", "aborts", "exits", "hangs", "null-argument", "null-name",
                      "null-value", "no-program", "twice", "equals", "must-understand", "local-rank", "own-variable", "cwd",
                      "process-flags", "beyond"):
            with self.subTest(fault=fault):
                result = self.dtrun("--plugin-dir", self.plugins, "--set", "launcher.name=bad", "--", "true", fault)
                self.golden_error(result, "bad")
        self.assert_ok(self.dtrun("--plugin-dir", self.plugins, "--set", "launcher.name=bad", "--", "true", "well"))

    def test_a_link_bears_the_name(self):
        shutil.copy(PLUGINS / "libdtrun_backend_gloo.so", self.folder / "any.so")
        (self.plugins / "libdtrun_backend_gloo.so").symlink_to("../any.so")
        self.assert_ok(self.dtrun("--plugin-dir", self.plugins, "-n", "2", "--", RANK))

    def test_that_says_too_much_costs_an_answer(self):
        self.place(WRONG / "libdtrun_backend_launch_talks.so", "launch_talks")
        self.check("launch_talks", "launch_info ", "4096 ")

    def test_replaced_between_plan_and_load(self):
        gloo, other = PLUGINS / "libdtrun_backend_gloo.so", WRONG / "libdtrun_backend_constructs.so"
        ran = self.folder / "ran"
        environment = {**self.environment(), "DEMO_CONSTRUCTED": str(ran)}
        for replace in (f"cp -f {other} {{0}}.new && mv {{0}}.new {{0}}", "touch {0}"):
            with self.subTest(replace=replace):
                placed = self.place(gloo, "gloo")
                command = f"{replace.format(placed)}; exec {RANK}"
                result = self.dtrun("--plugin-dir", self.plugins, "-n", "1", "--", "sh", "-c", command, env=environment)
                self.assertNotEqual(result.code, 0, str(result))
                self.assertRegex(result.err, rf"backend plugin '{placed}'.* build-id [0-9a-f]+, size \d+, changed [\d.]+, .* build-id ")
                self.assertFalse(ran.exists(), "an initialiser of a file that was not examined ran in a rank")
        subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", other], env=environment, check=True)
        self.assertTrue(ran.exists(), "the initialiser of the other file does nothing, so that this test sees nothing")

    def test_pinned(self):
        gloo = PLUGINS / "libdtrun_backend_gloo.so"
        right = hashlib.sha256(gloo.read_bytes()).hexdigest()
        self.assert_ok(self.dtrun("--set", f"backend.sha256={right.upper()}", "-n", "2", "--", RANK))
        wrong = "0" * 64
        result = self.dtrun("--set", f"backend.sha256={wrong}", "-n", "2", "--", RANK)
        self.assert_user_error(result, f"sha256 {right}", f"sha256 {wrong}")
        result = self.dtrun("--set", f"launcher.sha256={wrong}", "-n", "2", "--", RANK)
        self.assert_user_error(result, f"sha256 {wrong}", "launcher.sha256")
        result = self.dtrun("--set", f"backend.sha256={right[1:]}", "--", "true")
        self.assert_user_error(result, "backend.sha256", "64 hexadecimal digits")

    def test_a_launcher_that_finds_hosts_sees_the_table_of_its_name(self):
        shutil.copy(WRONG / "libdtrun_launcher_bad.so", self.plugins)
        config = self.folder / "job.toml"
        ask = ["--plugin-dir", self.plugins, "plan", "--config", config]
        good = '[job]\ncommand = ["true"]\n[cluster]\nfrom = "bad"\n[launcher.bad]\nfirst_host = "login7"\n'
        config.write_text(good)
        environment = {**self.environment(), "FAULT": "well"}
        result = self.dtrun(*ask, env=environment)
        self.assert_ok(result)
        self.assertIn("login7", result.out)
        result = self.dtrun(*ask, "--set", "launcher.bad.first_host=login8", env=environment)
        self.assertIn("login8", result.out)
        for wrong, texts in ((good.replace("first_host", "first_hots"), ["job.toml:6:1: unknown option 'launcher.bad.first_hots'",
                                                                         "did you mean 'first_host'"]),
                             (good.replace("launcher.bad", "launcher.bda"), ["unknown table 'launcher.bda'", "[launcher.bad]"])):
            config.write_text(wrong)
            self.assert_user_error(self.dtrun(*ask, env=environment), *texts)

    def test_a_launcher_takes_a_variable_away(self):
        shutil.copy(WRONG / "libdtrun_launcher_bad.so", self.plugins)
        launch = ["--plugin-dir", self.plugins, "--set", "launcher.name=bad"]
        for fault, shown in (("well", True), ("unset", False)):
            result = self.dtrun(*launch, "--", "env", fault, env={**self.environment(), "GOOD": "inherited"})
            self.assert_ok(result)
            self.assertEqual("GOOD=" in result.out, shown, result.out)
        self.assertIn("unset  GOOD", self.dtrun("plan", *launch, "--", "env", "unset").out)

    def test_owned_by_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("giving files away needs root")
        file = self.place(PLUGINS / "libdtrun_backend_gloo.so", "gloo")
        os.chown(file, 12345, 12345)
        self.check("gloo", str(file), "12345")


if __name__ == "__main__":
    main()
