"""Backends on other backends, by `dtrun.plugins/1`: `over` of core/plugin/testing passes everything on to the one below it."""

import hashlib
import json
import re
import shutil

from support.job import BUILD, RANK, JobTest, main

PLUGINS = BUILD / "lib" / "dtrun" / "plugins"
WRONG = BUILD / "tests" / "plugins"  # built by core/plugin/testing


class Stacks(JobTest):
    def setUp(self):
        super().setUp()
        self.plugins = self.folder / "plugins"
        self.plugins.mkdir(mode=0o755)
        self.over = self.place("over")

    def place(self, name):
        target = self.plugins / f"libdtrun_backend_{name}.so"
        shutil.copy(WRONG / target.name, target)
        target.chmod(0o755)
        return target

    def stack(self, below, *words, command=(RANK,), verb=()):
        return self.dtrun(*verb, "--plugin-dir", self.plugins, "--set", "backend.name=over", "--set", f"backend.over.on={below}",
                          "--set", "comm.local=none", "--set", "backend.timeout=1s", *words, "--", *command)

    def refuse(self, below, *texts):
        self.assert_user_error(self.stack(below, command=("true",)), *texts)

    def test_plan_run_and_explain_show_the_chain(self):
        lo = ("-n", "2", "--set", "backend.gloo.interface=lo")
        plan = self.stack("gloo", *lo, verb=("plan",))
        self.assert_ok(plan)
        for text in ("backend over > gloo\n", "\n  over: passes everything on\n", "\n  interface: lo ", "env    GLOO_SOCKET_IFNAME=lo\n"):
            self.assertIn(text, plan.out)
        facts = json.loads(self.stack("gloo", *lo, "--json", verb=("plan",)).out)["backend"]
        self.assertEqual(facts["name"], "over > gloo")
        result = self.stack("gloo", *lo)
        self.assert_ok(result)
        self.assertIn("rank 1 of 2 over over > gloo: sum 3", result.out)
        explained = self.dtrun("explain", "latest")
        self.assertRegex(explained.out, r"backend +over > gloo\b")
        self.assertIn('because: backend.gloo.interface = "lo" (--set backend.gloo.interface)', explained.out)
        failed = self.stack("gloo", "-n", "2", command=(RANK, "die", "in-allreduce", "1", "9"))
        self.assertRegex(failed.err, r"rank 1\b.*(SIGKILL|signal 9)")

    def test_one_that_hangs_or_ends_a_rank_is_named_and_not_the_one_above(self):
        for name in ("init_exits", "exits_when_loaded", "operation_exits", "shutdown_exits", "destroy_hangs", "init_hangs"):
            with self.subTest(name=name):
                self.place(name)
                result = self.stack(name, "-n", "2")
                self.assertEqual(result.code, 70, str(result))
                self.assertRegex(result.err, rf"dtrun: backend '{name}', ")
                self.assertEqual(self.last_verdict()["plugin"], f"backend '{name}'")

    def test_one_that_crashes_is_named_and_not_the_one_above(self):
        for name in ("operation_crashes", "thread_aborts"):
            with self.subTest(name=name):
                self.place(name)
                result = self.stack(name, "-n", "2")
                self.assertEqual(self.last_verdict()["plugin"], f"backend '{name}'", str(result))
                self.assertIn(f"a fault of backend '{name}'", result.err)

    def test_an_operation_that_hangs_in_one_shows_the_chain(self):
        self.place("operation_hangs")
        result = self.stack("operation_hangs", "-n", "2")
        self.assertEqual(result.code, 70, str(result))
        self.assertEqual(self.last_verdict()["plugin"], "backend 'over > operation_hangs'")

    def test_one_that_fails_is_named(self):
        self.place("launch_fails")
        self.refuse("launch_fails", "backend 'launch_fails': vendor library refused")
        result = self.stack("gloo", "--set", "backend.gloo.interface=nosuch0")
        self.assert_user_error(result, "backend 'gloo': ", "set backend.gloo.interface to ")
        self.place("init_refuses")
        result = self.stack("init_refuses", "-n", "2")
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.err + result.out, r"'init_refuses': there is no licence")

    def test_one_that_cannot_be_had_is_a_clear_answer(self):
        self.refuse("golo", "there is no backend plugin 'golo'", "did you mean 'gloo'?")
        self.refuse("slurm", "there is a launcher of that name")
        self.refuse(PLUGINS / "libdtrun_launcher_slurm.so", "does not have the file name of a backend plugin")
        self.refuse("over", "'over' would stand on itself: over > over")
        other = self.folder / "libdtrun_backend_over.so"
        shutil.copy(self.over, other)
        self.refuse(other, "would stand on itself: over > over", "each can be there once")
        self.place("other_minor")
        self.refuse("other_minor", "libdtrun_backend_other_minor.so", "this dtrun has ABI ")
        self.place("entry_crashes")
        self.refuse("entry_crashes", "libdtrun_backend_entry_crashes.so", "SIGSEGV")
        demo = self.place("demo")
        demo.chmod(0o777)
        self.refuse("demo", str(demo), "chmod")

    def test_options_of_the_one_below_are_checked_in_its_own_table(self):
        for wrong, text in (("interfac=lo", "unknown option 'backend.gloo.interfac'"), ("interface=", "backend.gloo.interface")):
            result = self.stack("gloo", "--set", f"backend.gloo.{wrong}")
            self.assert_user_error(result, text)
        config = self.write('[job]\ncommand = ["true"]\n[backend]\nname = "over"\n[backend.over]\non = "demo"\n[backend.demo]\nretries = 12\n')
        self.place("demo")
        result = self.dtrun("--plugin-dir", self.plugins, "plan", config)
        self.assert_user_error(result, ":8:11: backend.demo.retries: expected an integer", "at most 9")

    def test_a_wrapper_is_described_with_what_it_wraps(self):
        flags = ("--plugin-dir", self.plugins)
        row = next(row for row in json.loads(self.dtrun("plugins", "list", "--json", *flags).out)["plugins"] if row["name"] == "over")
        self.assertEqual(row["wraps_by"], "backend.options.on")
        self.assertRegex(self.dtrun("plugins", "list", *flags).out, r"\n     wraps .*backend\.options\.on")
        alone = self.dtrun("plugins", "describe", "over", *flags)
        self.assertIn("options below: --set backend.options.on=NAME", alone.out)
        described = self.dtrun("plugins", "describe", "over", *flags, "--set", "backend.options.on=gloo")
        self.assert_ok(described)
        self.assertIn("backend.options.on names: over > gloo\n", described.out)
        self.assertIn("\n  backend.gloo.interface\n", described.out)
        facts = json.loads(self.dtrun("plugins", "describe", "over", "--json", *flags, "--set", "backend.over.on=gloo").out)
        self.assertEqual((facts["stack"], facts["here"]["over"]), ("over > gloo", "passes everything on"))
        self.assertIn("backend.gloo.interface", [option["key"] for option in facts["options_below"]])
        missing = self.dtrun("plugins", "describe", "over", *flags, "--set", "backend.options.on=nosuch")
        self.assertRegex(missing.out, "not usable here: .*'nosuch'")

    def test_pins_are_of_every_file(self):
        gloo = PLUGINS / "libdtrun_backend_gloo.so"
        sums = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (self.over, gloo)]
        self.assert_ok(self.stack("gloo", "-n", "2", "--set", "backend.sha256=" + ",".join(sums)))
        result = self.stack("gloo", "-n", "2", "--set", f"backend.sha256={sums[0]}")
        self.assert_user_error(result, str(gloo), f"sha256 {sums[1]}", f"sha256 {sums[0]}")

    def test_a_rank_loads_the_file_that_answered(self):
        below = self.place("shutdown_exits")
        result = self.stack("shutdown_exits", "-n", "1", command=("sh", "-c", f"touch {below}; exec {RANK}"))
        self.assertNotEqual(result.code, 0, str(result))
        self.assertRegex(re.sub(r"\s+", " ", result.err + result.out), rf"'{below}'.*it was replaced since")


if __name__ == "__main__":
    main()
