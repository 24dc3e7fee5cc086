"""What an author of a plugin types first: dtrun plugins new, check and verify, from an installed SDK."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from support.job import BUILD, SOURCE, JobTest, main, nightly
from support.pages import run_page

PLUGINS = BUILD / "lib/dtrun/plugins"
WRONG = BUILD / "tests/plugins"  # built by core/plugin/testing
KINDS = [("c", "backend"), ("c++", "backend"), ("rust", "backend"), ("c", "launcher"), ("c++", "launcher"), ("rust", "launcher")]


def call(*command, **more):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


class Check(JobTest):
    def verdicts(self, *files, code):
        result = self.dtrun("plugins", "check", "--json", *files)
        self.assertEqual(result.code, code, str(result))
        return json.loads(result.out)["plugins"]

    def refusal(self, file):
        (verdict,) = self.verdicts(file, code=1)
        self.assertEqual(verdict["verdict"], "refused", verdict)
        return verdict["refusal"]

    def test_one_that_is_fit(self):
        launcher, gloo = self.verdicts(PLUGINS / "libdtrun_launcher_slurm.so", PLUGINS / "libdtrun_backend_gloo.so", code=0)
        self.assertEqual((gloo["verdict"], gloo["kind"], gloo["name"], gloo["foreign"], gloo["nodelete"], gloo["problems"]),
                         ("ok", "backend", "gloo", [], True, []))
        self.assertRegex(gloo["exports"][0], r"^dtrun_plugin_entry_v\d$")
        self.assertRegex(gloo["build_id"], "^[0-9a-f]+$")
        self.assertIn("backend.options.interface", [option["key"] for option in gloo["options"]])
        self.assertIn('backend.name = "gloo"', gloo["use"])
        self.assertIn('launcher.name, cluster.from, cluster.connect = "slurm"', launcher["use"])
        for word in (PLUGINS / "libdtrun_backend_gloo.so", "gloo"):
            result = self.dtrun("plugins", "check", word)
            self.assert_ok(result)
            for fact in ("ok: backend gloo", gloo["build_id"], "mode 0", "backend.options.interface"):
                self.assertIn(fact, result.out)

    def test_what_is_no_plugin(self):
        name = "libdtrun_backend_x.so"
        self.assertIn("no such file", self.refusal(self.folder / name))
        self.assertIn("no such file", self.refusal("slrum"))
        (self.folder / name).mkdir()
        self.assertIn("is a folder", self.refusal(self.folder / name))
        for text in ("hello\n", "#" * 1000):
            self.assertIn("not a shared object", self.refusal(self.write(text, "libdtrun_backend_text.so")))
        self.assertIn("not a shared object", self.refusal(self.write("hello\n", "mine.so")))
        made = self.folder / "libmine.so"
        self.assertEqual(call("cc", "-shared", "-fPIC", "-xc", "/dev/null", "-o", made).returncode, 0)
        self.assertIn("libdtrun_backend_NAME.so", self.refusal(made))
        self.assertIn("does not export", self.refusal(WRONG / "libdtrun_backend_no_entry.so"))

    def test_objects_of_other_machines(self):
        whole = (WRONG / "libdtrun_backend_demo.so").read_bytes()
        for at, byte, fact in ((4, 1, "32-bit"), (18, 183, "ELF machine 183")):
            file = self.write(whole[:at] + bytes([byte]) + whole[at + 1 :], "libdtrun_backend_demo.so")
            self.assertIn(fact, self.refusal(file))

    def test_plugins_that_misbehave(self):
        for fault, fact in (("entry_crashes", "SIGSEGV"), ("entry_hangs", "no answer"), ("entry_exits", "exit code"),
                            ("other_name", "calls itself"), ("other_kind", "launcher"), ("null_table", "no table")):
            with self.subTest(fault):
                self.assertIn(fact, self.refusal(WRONG / f"libdtrun_backend_{fault}.so"))

    def built(self, more):
        """The smallest plugin, with more C code, as its author's own command makes it."""
        source = self.write(f'#include "{SOURCE}/core/plugin/testing/demo.c"\n#include <stdio.h>\n{more}\n', "libdtrun_backend_demo.c")
        made = call("cc", "-shared", "-fPIC", "-D_POSIX_C_SOURCE=200809L", '-DDTRUN_TEST_NAME="demo"', "-DDTRUN_TEST_FAULT=0",
                    f"-I{SOURCE}/sdk/include", f"-I{SOURCE}", source, "-o", source.with_suffix(".so"))
        self.assertEqual(made.returncode, 0, made.stdout)
        return source.with_suffix(".so")

    def test_one_that_prints_gets_a_warning(self):
        (verdict,) = self.verdicts(self.built("__attribute__((constructor)) static void speak(void) { puts(\"hello\"); fflush(stdout); }"), code=1)
        self.assertRegex(" ".join(verdict["warnings"]), "standard output.*'hello'")

    def test_one_that_fails_where_it_is_asked(self):
        for fault in ("launch_talks", "launch_crashes"):
            with self.subTest(fault):
                self.refusal(WRONG / f"libdtrun_backend_{fault}.so")

    def test_one_that_others_may_write(self):
        file = Path(shutil.copy(WRONG / "libdtrun_backend_demo.so", self.folder))
        file.chmod(0o777)
        self.assertIn("every user", self.refusal(file))

    def test_foreign_symbols_are_named(self):
        """A plugin that loads, and breaks rules that its file shows."""
        (verdict,) = self.verdicts(self.built("int helper(void) { return 0; }"), code=1)
        self.assertEqual((verdict["verdict"], verdict["foreign"], verdict["nodelete"]), ("unfit", ["helper"], False))
        self.assertRegex(" ".join(verdict["problems"]), r"'helper'.*\(V2\).*\(V12\)")


class Author(JobTest):
    @classmethod
    def setUpClass(cls):
        cls.root = Path(tempfile.mkdtemp(prefix="dtrun-author-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.prefix = cls.root / "prefix"
        for component in ("sdk", "runtime"):
            done = call("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)
            assert done.returncode == 0, done.stdout

    def run_in(self, folder, command):
        environment = self.environment()
        environment["PATH"] = f"{self.prefix}/bin:{environment['PATH']}"
        return call("bash", "-c", command, cwd=folder, env=environment, timeout=600)

    def made(self, language, kind, name="my-own"):
        flags = " --launcher" if kind == "launcher" else ""
        done = self.run_in(self.folder, f"dtrun plugins new {name} --language {language}{flags}")
        self.assertEqual(done.returncode, 0, done.stdout)
        return self.folder / name

    def commands(self, folder):
        """Those of its README, in its folder."""
        return re.findall(r"^    (\S.*)$", (folder / "README.md").read_text(), re.M)

    def follow(self, language, kind, only):
        if language == "rust" and shutil.which("rustc") is None:
            self.skipTest("rustc is not installed")
        folder = self.made(language, kind, f"my-{language.replace('+', 'x')}-{kind}")
        for command in self.commands(folder):
            command = command.replace("--seconds 6", "--seconds 1") + (only if "verify" in command else "")
            done = self.run_in(folder, command)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}")
            if "verify" in command:
                self.assertRegex(done.stdout, r": [1-9]\d* passed, 0 failed")
            if "check" in command:
                self.assertIn(f"ok: {kind} my", done.stdout)

    def test_templates_build_and_run_as_their_pages_say(self):
        for language, kind in (("c", "backend"), ("c++", "launcher")):  # the others in the nightly run
            with self.subTest(language=language, kind=kind):
                self.follow(language, kind, " --only '^(Load|Launcher|Hosts|Connect)'")

    @nightly
    def test_each_template_passes_the_suite(self):
        for language, kind in KINDS:
            with self.subTest(language=language, kind=kind):
                self.follow(language, kind, "")

    def test_names_of_keywords_are_names(self):
        """No name of a plugin is an identifier of the sources."""
        folder = self.made("c++", "backend", "namespace")
        self.assertIn('"namespace"', (folder / "plugin.cc").read_text())
        self.assertNotIn("namespace namespace", (folder / "plugin.cc").read_text())

    def test_the_commands_of_the_page_work(self):
        run_page(self, "docs/plugins.md", SDK=str(self.prefix), PKG_CONFIG_PATH=f"{self.prefix}/lib/pkgconfig")

    def test_what_new_refuses(self):
        def refuse(*words, fact):
            self.golden_error(self.dtrun("plugins", "new", *words), fact)

        refuse("Mine", fact="'mine'")
        refuse("9lives", fact="9lives")
        refuse("auto", fact="auto")
        for words in (("gloo",), ("per-node", "--launcher")):
            result = self.dtrun("plugins", "new", *words)
            self.assert_user_error(result, f"'{words[0]}'", f"my-{words[0]}")
            self.assertEqual(os.listdir(self.folder), [])
        refuse("mine", "--language", "fortran", fact="fortran")
        (self.folder / "mine").mkdir()
        refuse("mine", fact="'mine'")
        refuse("mine", "--output", "no/such/folder", fact="mkdir -p no/such")
        self.assertEqual(os.listdir(self.folder / "mine"), [])

    def test_without_an_sdk(self):
        prefix = self.root / "without"
        shutil.copytree(self.prefix, prefix, symlinks=True)
        shutil.rmtree(prefix / "share/dtrun/examples")
        (prefix / "bin/dtrun-conformance").unlink()
        for words in ("new mine", "verify libdtrun_backend_mine.so"):
            done = call(prefix / "bin/dtrun", "plugins", *words.split(), cwd=self.folder, env=self.environment())
            self.assertEqual(done.returncode, 2)
            self.assertIn("dtrun-sdk", done.stdout)

    def test_verify_passes_its_arguments_on(self):
        gloo = PLUGINS / "libdtrun_backend_gloo.so"
        result = self.dtrun("plugins", "verify", gloo, "--only", "^Load.ExportsOneSymbol$")
        self.assert_ok(result)
        self.assertIn("1 passed, 0 failed", result.out)
        self.assert_user_error(self.dtrun("plugins", "verify", gloo, "--worlds", "3"), "--world")
        self.assertIn("--junit", self.dtrun("plugins", "verify", gloo, "--help").out)
        self.assert_user_error(self.dtrun("plugins", "verify"), "PLUGIN")
        (self.folder / "gloo").mkdir()  # as `plugins new` makes one of the plugin's name
        named = self.dtrun("--plugin-dir", PLUGINS, "plugins", "verify", "gloo", "--only", "^Load.ExportsOneSymbol$")
        self.assertIn("1 passed, 0 failed", named.out)

    def test_a_default_that_cannot_be_used_is_unfit(self):
        result = self.dtrun("plugins", "check", BUILD / "tests/plugins/libdtrun_backend_bad_default.so")
        self.assertEqual(result.code, 1, str(result))
        self.assertRegex(result.out, r"(?s)^unfit: .*'backend.options.retries' is unusable: .*three.*\(O1\)")


if __name__ == "__main__":
    main()
