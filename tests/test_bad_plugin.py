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

    def test_a_path_of_another_plugin_is_refused(self):
        self.place(WRONG / "libdtrun_backend_init_exits.so", "init_exits")
        file = self.plugins / "libdtrun_backend_init_exits.so"
        result = self.dtrun("--set", "backend.name=gloo", "--set", f"backend.path={file}", "--", "true")
        self.assert_user_error(result)
        self.assertIn("'init_exits'", result.err)
        self.assertIn("backend.name", result.err)

    def test_a_name_that_is_a_path_is_refused(self):
        self.check("../evil", "'../evil'")

    def test_that_hangs_or_exits_in_a_rank_ends_the_job_and_is_named(self):
        for name in ("init_exits", "exits_when_loaded", "operation_exits", "thread_exits", "shutdown_exits", "destroy_hangs", "init_hangs",
                     "operation_hangs", "support_hangs", "ends_thread", "loading_ends_thread",
                     "shutdown_ends_thread"):
            with self.subTest(name=name):
                self.place(WRONG / f"libdtrun_backend_{name}.so", name)
                result = self.dtrun("--plugin-dir", self.plugins, "--set", f"backend.name={name}", "--set", "backend.timeout=1s",
                                    "--set", "comm.local=none", "-n", "2", "--", RANK)
                self.assertEqual(result.code, 70, str(result))
                self.golden_lines(result.err, f"    | dtrun: backend '{name}', ")
                verdict = self.last_verdict()
                self.assertEqual((verdict["exit_class"], verdict["plugin"]), ("plugin", f"backend '{name}'"), str(result))

    def test_that_crashes_in_a_rank_is_named_and_the_program_is_not_taken_for_it(self):
        for name, mode, signal, blamed, where in (
                ("operation_crashes", "sum", "SIGSEGV", True, r", in an operation, at 0x[0-9a-f]+ of its file"),
                ("thread_aborts", "sum", "SIGABRT", True, r", on a thread of its own, at 0x[0-9a-f]+ of its file"),
                ("thread_overflows", "sum", "SIGSEGV", True, r", on a thread of its own, at 0x[0-9a-f]+ of its file"),
                ("thread_jumps", "sum", "SIGSEGV", True, r", on a thread of its own, at 0x[0-9a-f]+ of its file"),
                ("library_crashes", "sum", "SIGSEGV", True, ", on a thread of its own"),
                ("crashes_when_loaded", "sum", "SIGSEGV", True, ", being loaded"),
                ("operation_hangs", "crash", "SIGSEGV", False, None)):
            with self.subTest(name=name):
                shutil.copy(WRONG / "libbrought.so", self.plugins)
                self.place(WRONG / f"libdtrun_backend_{name}.so", name)
                result = self.dtrun("--plugin-dir", self.plugins, "--set", f"backend.name={name}", "--set", "comm.local=none", "-n", "2",
                                    "--", RANK, mode)
                verdict = self.last_verdict()
                self.assertEqual(verdict["exit_class"], "plugin" if blamed else "signal", str(result))
                self.assertEqual(verdict["plugin"], f"backend '{name}'" if blamed else None)
                self.assertIn(signal, result.err)
                self.assertEqual(f"a fault of backend '{name}'" in result.err, blamed, result.err)
                if blamed:
                    self.assertRegex(result.err, f"reported: backend '{name}'{where}")
                    self.assertIn(f"a fault of backend '{name}'", self.dtrun("explain", max(self.folder.glob("runs/*/2*"))).out)

    def test_that_hangs_in_one_rank_only_is_named(self):
        for name, member in (("operation_hangs_on_one", "in an operation"), ("init_hangs_on_one", "in its init"),
                             ("create_hangs_on_one", "making 'world'")):
            with self.subTest(name=name):
                self.place(WRONG / f"libdtrun_backend_{name}.so", name)
                result = self.dtrun("--plugin-dir", self.plugins, "--set", f"backend.name={name}", "--set", "backend.timeout=2s",
                                    "--set", "comm.local=none", "-n", "3", "--", RANK)
                verdict = self.last_verdict()
                self.assertEqual((verdict["exit_class"], verdict["plugin"]), ("plugin", f"backend '{name}'"), str(result))
                self.assertEqual((verdict["blamed"]["ranks"], verdict["blamed"]["why"]), ([1], "stuck in a plugin"))
                self.assertIn(f"from backend '{name}', {member}: a fault of backend '{name}'", result.err)

    def test_that_fails_against_a_rule_or_in_query_support_is_named(self):
        for name, text, exit_class in (("operation_is_silent", "backend 'operation_is_silent' gave no text with it", "plugin"),
                                       ("operation_gives_nothing", "returned DTRUN_PENDING and gave no request", "plugin"),
                                       ("init_is_silent", "backend 'init_is_silent' gave no text with it", "plugin"),
                                       ("init_gives_nothing", "init returned DTRUN_OK and left *out untouched", "plugin"),
                                       ("support_fails", "in query_support: the table of operations is lost", "user-error")):
            with self.subTest(name=name):
                self.place(WRONG / f"libdtrun_backend_{name}.so", name)
                result = self.dtrun("--plugin-dir", self.plugins, "--set", f"backend.name={name}", "--set", "comm.local=none", "-n", "2",
                                    "--", RANK, "sum")
                self.assertEqual(self.last_verdict()["exit_class"], exit_class, str(result))
                self.assertIn(text, result.err)

    def test_that_throws_is_named(self):
        for name, member, code in (("operation_throws", "in an operation", 3), ("create_throws", "making 'world'", 3),
                                   ("destroy_throws", "ending 'world'", 70)):
            with self.subTest(name=name):
                self.place(WRONG / f"libdtrun_backend_{name}.so", name)
                result = self.dtrun("--plugin-dir", self.plugins, "--set", f"backend.name={name}", "--set", "backend.timeout=2s",
                                    "--set", "comm.local=none", "-n", "2", "--", RANK, "sum")
                verdict = self.last_verdict()
                self.assertEqual((result.code, verdict["exit_class"], verdict["plugin"]), (code, "plugin", f"backend '{name}'"), str(result))
                self.assertRegex(result.err, f"backend '{name}', {member}, threw .*vendor lost the link")

    def test_that_overflows_the_stack_is_named(self):
        self.place(WRONG / "libdtrun_backend_overflows.so", "overflows")
        result = self.dtrun("--plugin-dir", self.plugins, "--set", "backend.name=overflows", "--set", "comm.local=none", "-n", "2", "--",
                            RANK, "sum")
        verdict = self.last_verdict()
        self.assertEqual((verdict["exit_class"], verdict["plugin"]), ("plugin", "backend 'overflows'"), str(result))
        self.assertRegex(result.err, "reported: backend 'overflows', in an operation, at 0x[0-9a-f]+ of its file")

    def test_that_leaves_threads_behind_is_named(self):
        self.place(WRONG / "libdtrun_backend_leaks_thread.so", "leaks_thread")
        result = self.dtrun("--plugin-dir", self.plugins, "--set", "backend.name=leaks_thread", "--set", "comm.local=none", "-n", "2", "--",
                            RANK)
        self.assertRegex(result.err, r"warn comm: backend 'leaks_thread' has left [1-9]\d* of its threads")

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
                      "process-flags", "beyond", "huge-note"):
            with self.subTest(fault=fault):
                result = self.dtrun("--plugin-dir", self.plugins, "--set", "launcher.name=bad", "--", "true", fault)
                self.golden_error(result, "bad")
        self.assert_ok(self.dtrun("--plugin-dir", self.plugins, "--set", "launcher.name=bad", "--", "true", "well"))
        noted = self.dtrun("plan", "--plugin-dir", self.plugins, "--set", "launcher.name=bad", "--", "true", "raw-note")
        self.assertIn("note: \\u001b[2Jnote\n", noted.out)

    def test_a_link_bears_the_name(self):
        shutil.copy(PLUGINS / "libdtrun_backend_gloo.so", self.folder / "any.so")
        (self.plugins / "libdtrun_backend_gloo.so").symlink_to("../any.so")
        self.assert_ok(self.dtrun("--plugin-dir", self.plugins, "-n", "2", "--", RANK))

    def test_that_says_too_much_costs_an_answer(self):
        self.place(WRONG / "libdtrun_backend_launch_talks.so", "launch_talks")
        self.check("launch_talks", "launch_info ", "4096 ")
        self.place(WRONG / "libdtrun_backend_launch_huge.so", "launch_huge")
        self.check("launch_huge", "'launch_huge': launch_info says more than 1 MiB")
        listed = self.dtrun("plugins", "list", "--plugin-dir", self.plugins)
        self.assert_ok(listed)
        self.assertIn("launch_info says more than 1 MiB", listed.out)
        self.assertLess(len(listed.out), 100_000)

    def test_that_speaks_to_a_terminal_is_shown_as_it_is(self):
        self.place(WRONG / "libdtrun_backend_escapes.so", "escapes")
        choice = ("--plugin-dir", self.plugins, "--set", "backend.name=escapes")
        for words in (["plugins", "list", "--plugin-dir", self.plugins], ["plugins", "describe", "escapes", "--plugin-dir", self.plugins],
                      ["plugins", "describe", "escapes", "--json", "--plugin-dir", self.plugins],
                      ["plan", *choice, "--", "true"], ["--set", "comm.local=none", *choice, "-n", "2", "--", RANK]):
            with self.subTest(words=words):
                result = self.dtrun(*map(str, words))
                said = result.out + result.err
                if words[0] != "plan":  # which has no place for a fact of an unknown key
                    self.assertIn("\\u001b[2J\\u001b]0;window\\u0007", said.replace("\\\\", "\\"))
                self.assertEqual([byte for byte in said if ord(byte) < 32 and byte != "\n"], [], said)

    def test_300_of_them_are_listed(self):
        for number in range(300):
            (self.plugins / f"libdtrun_backend_many{number}.so").write_text("hello\n")
        self.place(WRONG / "libdtrun_backend_demo.so", "demo")
        listed = self.dtrun("plugins", "list", "--plugin-dir", self.plugins)
        self.assert_ok(listed)
        self.assertEqual(listed.out.count("not a shared object"), 300)
        self.assertIn("that moves nothing", listed.out)

    def test_two_of_one_name_are_told(self):
        first, second = (self.folder / name for name in ("first", "second"))
        for folder in (first, second):
            folder.mkdir(mode=0o755)
            shutil.copy(WRONG / "libdtrun_backend_demo.so", folder)
        listed = self.dtrun("plugins", "list", "--plugin-dir", first, "--plugin-dir", second)
        self.assert_ok(listed)
        self.assertRegex(listed.out, rf"(?m)^ *{first}/libdtrun_backend_demo.so .*\n(.*\n)? *shadows {second}/libdtrun_backend_demo.so$")

    def test_replaced_while_the_job_runs_ends_it_with_one_verdict(self):
        placed = self.place(PLUGINS / "libdtrun_backend_gloo.so", "gloo")
        other = WRONG / "libdtrun_backend_constructs.so"
        command = f'[ $DTRUN_GENERATION = 0 ] && {{ cp -f {other} {placed}.new; mv {placed}.new {placed}; exit 3; }}; exec {RANK}'
        result = self.dtrun("--plugin-dir", self.plugins, "--set", "restart.max=5", "--set", "restart.backoff=0s", "-n", "1", "--", "sh",
                            "-c", command)
        self.assertNotEqual(result.code, 0, str(result))
        self.assertIn("not restarted: a plugin", result.err)
        self.assertIn(f"backend plugin '{placed}'", result.err)
        self.assertEqual(len(self.last_verdict()["generations"]), 2, str(result))

    def test_a_launchers_options_are_described_by_where_they_are_set(self):
        shutil.copy(WRONG / "libdtrun_launcher_bad.so", self.plugins)
        shown = self.dtrun("plugins", "describe", "bad", "--plugin-dir", self.plugins).out
        self.assertIn("launcher.options.first_host", shown)
        self.assertIn('launcher.options.KEY where launcher.name is "bad"; launcher.bad.KEY where', shown)
        shutil.copy(WRONG / "libdtrun_launcher_finds.so", self.plugins)
        shown = self.dtrun("plugins", "describe", "finds", "--plugin-dir", self.plugins).out
        self.assertIn("launcher.finds.first_host", shown)
        self.assertNotIn("launcher.options", shown)

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
