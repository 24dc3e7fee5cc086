"""The package of python/dtrun itself: which library it loads, what it declares of it, its types and its import."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from support.job import BUILD, SOURCE, JobTest, main

PACKAGE = SOURCE / "python" / "dtrun"
LIBRARY = BUILD / "lib" / "libdtrun.so.1"


def typed_python():
    """One that has torch and mypy."""
    finds = "import importlib.util as u, sys; sys.exit(not (u.find_spec('mypy') and u.find_spec('torch')))"
    for place in (os.environ.get("DTRUN_TEST_TORCH"), SOURCE / "build/frameworks/bin/python3", sys.executable):
        if place is not None and Path(place).exists() and subprocess.run([place, "-c", finds], check=False).returncode == 0:
            return place
    return None


class Package(JobTest):
    def python(self, code, package=PACKAGE, library=LIBRARY):
        more = {"DTRUN_LIBRARY": str(library)} if library else {}
        environment = self.environment(PYTHONPATH=str(package.parent), PYTHONDONTWRITEBYTECODE="1", **more)
        return subprocess.run([sys.executable, "-c", code], env=environment, cwd=self.folder, capture_output=True, text=True)

    def assert_fails(self, done, *texts):
        self.assertEqual(done.returncode, 1, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr.splitlines()[-1])

    def test_a_plain_python_is_a_world_of_one(self):
        done = self.python("import dtrun\nwith dtrun.init() as w: print(w.size, w.backend, w.allreduce(bytearray(b'a')))")
        self.assertEqual(done.stdout, "1 self bytearray(b'a')\n", done.stderr)

    def test_python_m_dtrun_is_the_program(self):
        environment = self.environment(PYTHONPATH=str(PACKAGE.parent), PATH=f"{BUILD}/bin:{os.environ['PATH']}")
        command = [sys.executable, "-B", "-m", "dtrun", "-q", "-n", "2", "--", "echo", "a b"]
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout.count("a b\n")), (0, 2), done.stderr)
        environment["PATH"] = str(self.folder)
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("program dtrun", done.stderr)

    def test_a_library_of_another_version_is_refused(self):
        package = self.folder / "other" / "dtrun"
        shutil.copytree(PACKAGE, package)
        (package / "_version.py").write_text('__version__ = "9.7.0"\n')
        done = self.python("import dtrun\ndtrun.init()", package)
        mine = re.search(r'"(.+)"', (PACKAGE / "_version.py").read_text())[1]
        self.assert_fails(done, "LibraryError", f"libdtrun {mine}", f"{package}) is 9.7.0", "one release")

    def test_another_library_and_none_are_refused(self):
        self.assert_fails(self.python("import dtrun\ndtrun.init()", library="libm.so.6"), "'libm.so.6' has no dtrun_version")
        done = self.python("import dtrun\ndtrun.init()", library=self.folder / "none.so")
        self.assert_fails(done, "LibraryError", "none.so", "set DTRUN_LIBRARY")
        self.assertEqual(self.python("import dtrun", library=self.folder / "none.so").returncode, 0)  # loaded by init()

    def test_dtrun_says_nothing_about_the_variable_of_the_package(self):
        result = self.ranks(1, "true", env=self.environment(DTRUN_LIBRARY=str(LIBRARY)))
        self.assert_ok(result)
        self.assertNotIn("DTRUN_LIBRARY", result.err)

    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
    def test_structures_are_as_a_compiler_lays_them_out(self):
        program = self.folder / "layout"
        subprocess.run(["cc", "-o", program, "-I", SOURCE / "sdk/include", SOURCE / "tests/programs/python/layout.c"], check=True)
        sys.path.insert(0, str(PACKAGE.parent))
        from dtrun import _library

        types = {"dtrun_error": _library.CError, "dtrun_stream": _library.Stream, "dtrun_extension": _library.Extension, "dtrun_op": _library.Op}
        for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
            name, expected = line.split()
            structure, _, member = name.partition(".")
            found = getattr(types[structure], member).offset if member else ctypes.sizeof(types[structure])
            self.assertEqual(found, int(expected), name)

    def test_types(self):
        """Of the package itself, of its backend for torch and of Horovod's API for torch."""
        python = typed_python()
        if python is None:
            self.skipTest("no Python with torch and mypy was found: set DTRUN_TEST_TORCH")
        done = subprocess.run([python, "-m", "mypy", "--strict", "--cache-dir", self.folder, "-p", "dtrun"],
                              cwd=PACKAGE.parent, capture_output=True, text=True)  # fmt: skip
        self.assertRegex(done.stdout, r"checked [1-9][0-9]* source files")
        without = re.compile("dtrun/(functions|tasks|ray|spark|horovod/(shim/horovod/)?(tensorflow|keras))/")
        errors = [line for line in done.stdout.splitlines() if ": error: " in line and not without.match(line)]
        self.assertEqual(errors, [])

    @unittest.skipIf(sys.version_info < (3, 10), "the interpreter does not know the names of its own modules")
    def test_import_takes_nothing_but_the_standard_library(self):
        done = self.python("import sys; before = set(sys.modules); import dtrun\n"
                           "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
                           "print(*new - sys.stdlib_module_names)")  # fmt: skip
        self.assertEqual(done.stdout, "dtrun\n", done.stderr)

    def test_a_name_that_is_missing_is_an_attribute_error(self):
        self.assert_fails(self.python("import dtrun\ndtrun.nothing"), "AttributeError: module 'dtrun' has no attribute 'nothing'")


if __name__ == "__main__":
    main()
