"""Every plugin of this tree is fit to live beside other libraries, and the audit finds each way of not being so.

    plugin_audit_test.py CMAKE READELF CC CXX PLUGINS [--no-load]

Beyond the audit that dtrun_add_plugin runs after each link, a plugin here may need only libraries that are listed below,
and none of its symbols is undefined. --no-load: the sanitizers' own symbols are in the programs only.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, READELF, CC, CXX, PLUGINS = sys.argv[1:6]
MAY_LOAD = "--no-load" not in sys.argv
AUDIT = pathlib.Path(__file__).resolve().parents[1] / "cmake/audit_plugin.cmake"

SYSTEM = r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so\.\d+|ld-linux-.*"
OWN = {"libdtrun_backend_gloo.so": r"lib(gloo|glp\w)\.so\.\S+"}  # the copy beside it, or Debian's; all else is opened at run time

LOAD = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)"
ENTRY = "int dtrun_plugin_entry_v1(void) { return 0; }\n"
NODELETE = "-Wl,-z,nodelete"


def call(*command):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


class Audit(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def audit(self, plugin):
        """On a copy, since it removes what is unfit; the copy, and what was said."""
        copy = pathlib.Path(shutil.copy(plugin, self.folder / f"copy_{pathlib.Path(plugin).name}"))
        done = call(CMAKE, f"-DREADELF={READELF}", f"-DPLUGIN={copy}", "-P", AUDIT)
        self.assertEqual(copy.exists(), done.returncode == 0)
        return done

    def build(self, text, *flags, compiler=CC, name="plugin.so"):
        source = self.folder / ("source.cc" if compiler == CXX else "source.c")
        source.write_text(text)
        made = call(compiler, "-shared", "-fPIC", source, "-o", self.folder / name, "-Wl,--no-as-needed", *flags)
        self.assertEqual(made.returncode, 0, made.stdout)
        return self.folder / name

    def assert_refused(self, words, text, *flags, **more):
        done = self.audit(self.build(text, *flags, **more))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(words, re.sub(r"\s+", " ", done.stdout))

    def library(self, name):
        return self.build("", f"-Wl,-soname,{name}", name=name)


class InTree(Audit):
    def test_each_plugin(self):
        plugins = sorted(pathlib.Path(PLUGINS).glob("libdtrun_*_*.so"))
        self.assertTrue(plugins, f"no plugin in {PLUGINS}; build first")
        for plugin in plugins:
            with self.subTest(plugin.name):
                done = self.audit(plugin)
                self.assertEqual(done.returncode, 0, done.stdout)
                needed = re.findall(r"\(NEEDED\).*\[(.*)\]", call(READELF, "-d", plugin).stdout)
                allowed = f"{SYSTEM}|{OWN.get(plugin.name, '$.')}"
                self.assertEqual([name for name in needed if not re.fullmatch(allowed, name)], [], "needs more than is listed here")
                if MAY_LOAD:
                    loaded = call(sys.executable, "-c", LOAD, plugin)
                    self.assertEqual(loaded.returncode, 0, loaded.stdout)


class Unfit(Audit):
    def test_what_is_fit_passes(self):
        self.assertEqual(self.audit(self.build(ENTRY, NODELETE)).returncode, 0)
        two_majors = ENTRY + ENTRY.replace("v1", "v2")
        self.assertEqual(self.audit(self.build(two_majors, NODELETE)).returncode, 0)

    def test_exports(self):
        self.assert_refused("it exports '', must", "static int quiet; int* unused(void); ", NODELETE)
        self.assert_refused("it exports 'dtrun_plugin_entry_v2', must export exactly 'dtrun_plugin_entry_v1'",
                            ENTRY.replace("v1", "v2"), NODELETE)
        self.assert_refused("must export exactly", ENTRY + "int helper(void) { return 0; }\n", NODELETE)

    def test_a_plugin_that_can_be_unloaded(self):
        self.assert_refused("it is not marked NODELETE", ENTRY)

    def test_a_symbol_that_is_unique_in_the_process(self):
        text = f'extern "C" {ENTRY} template <class T> struct Of {{ static int value; }};\n' \
               "template <class T> int Of<T>::value = 1;\nint* Use() { return &Of<int>::value; }\n"
        self.assert_refused("is unique in the process; compile with -fno-gnu-unique", text, NODELETE, compiler=CXX)

    def test_libraries(self):
        for name in ("libtorch_cpu.so", "libc10.so", "libdtrun.so.1"):
            self.assert_refused(f"it links '{name}'", ENTRY, NODELETE, self.library(name))
        self.assert_refused("it links 'libc++.so.1' and 'libstdc++.so.6'", ENTRY, NODELETE,
                            self.library("libc++.so.1"), self.library("libstdc++.so.6"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
