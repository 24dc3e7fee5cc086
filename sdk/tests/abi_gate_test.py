"""The gate before the frozen headers: each kind of change that breaks a plugin fails to compile, or is missed in a list.

    abi_gate_test.py HEADERS TESTS CC CXX
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HEADERS, TESTS, CC, CXX = (pathlib.Path(word) for word in sys.argv[1:5])

BREAKS = {
    "a signature": ("host.h", "void (*on_start)(const dtrun_host* host, const char* name)",
                    "void (*on_start)(const dtrun_host* host, char* name)"),
    "a result": ("backend.h", "void (*comm_destroy)", "dtrun_status (*comm_destroy)"),
    "a sign": ("op.h", "uint32_t tag;", "int32_t tag;"),
    "a pointer's const": ("launcher.h", "const char* const* argv; /* NULL", "const char** argv; /* NULL"),
    "a value": ("types.h", "DTRUN_AVG = 5", "DTRUN_AVG = 6"),
    "a bit": ("backend.h", "DTRUN_CAP_ANY_SOURCE = 4", "DTRUN_CAP_ANY_SOURCE = 32"),
    "a mask": ("base.h", "0xffff0000u", "0xff000000u"),
    "a service": ("host.h", 'KV_SERVICE "dtrun.kv/1"', 'KV_SERVICE "dtrun.kv/2"'),
    "the entry": ("plugin.h", '"dtrun_plugin_entry_v1"', '"dtrun_plugin_entry_v9"'),
    "an order": ("options.h", "  int32_t type;\n  int32_t scope;", "  int32_t scope;\n  int32_t type;"),
    "a size": ("error.h", "DTRUN_ERROR_MESSAGE_BYTES = 512", "DTRUN_ERROR_MESSAGE_BYTES = 520"),
}
# What compiles, for nothing listed has changed; the list has to.
ADDITIONS = {
    "a member": ("backend.h", "  int32_t local_ranks; /* ranks", "  int32_t added;\n  int32_t local_ranks; /* ranks"),
    "a constant": ("types.h", "DTRUN_SUM = 1,", "DTRUN_SUM = 1,\n  DTRUN_ADDED = 99,"),
    "a removed constant": ("host.h", "DTRUN_LOG_WARN = 3, ", ""),
}


class Gate(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copytree(HEADERS, self.folder / "include")

    def change(self, header, old, new):
        file = self.folder / "include/dtrun/abi" / header
        text = file.read_text()
        self.assertEqual(text.count(old), 1, f"{header}: {old}")
        file.write_text(text.replace(old, new))

    def compiles(self, compiler, source):
        return subprocess.run([compiler, "-fsyntax-only", f"-I{self.folder}/include", TESTS / source],
                              capture_output=True, text=True)

    def is_listed(self):
        return subprocess.run([sys.executable, TESTS / "layout_is_complete.py", self.folder / "include/dtrun/abi",
                               *(TESTS / f"{half}_{part}.inc" for half in ("abi", "device") for part in ("layout", "types"))], capture_output=True, text=True)

    def test_the_headers_as_they_are_pass(self):
        for compiler, source in ((CC, "abi_layout.c"), (CXX, "abi_layout.cc")):
            done = self.compiles(compiler, source)
            self.assertEqual(done.returncode, 0, done.stderr)
        listed = self.is_listed()
        self.assertEqual(listed.returncode, 0, listed.stdout)

    def test_a_break_does_not_compile(self):
        for name, change in BREAKS.items():
            with self.subTest(name=name):
                self.setUp()
                self.change(*change)
                done = self.compiles(CXX, "abi_layout.cc")
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, r"(size|offset|type|value|text) of ")

    def test_what_is_added_or_removed_has_to_be_listed(self):
        for name, change in ADDITIONS.items():
            with self.subTest(name=name):
                self.setUp()
                self.change(*change)
                listed = self.is_listed()
                self.assertEqual(listed.returncode, 1)
                self.assertRegex(listed.stdout, r"is not listed; add its line|no header has it")

    def test_what_a_later_minor_has_added_needs_that_minor(self):
        begin = "typedef struct dtrun_clock_service {"
        self.change("host.h", begin, begin + "\n  DTRUN_SINCE(1) int32_t added;")
        use = self.folder / "use.c"
        for requires, text in (("", "int main(void) { return (int)sizeof(dtrun_clock_service); }"),
                               ("#define DTRUN_ABI_REQUIRED 1\n", "int use(const dtrun_clock_service* clock) { return clock->added; }"),
                               ("", "int use(const dtrun_clock_service* clock) { return clock->added; }"),
                               ("#define DTRUN_ABI_REQUIRED 0\n", "int use(const dtrun_clock_service* clock) { return clock->added; }")):
            use.write_text(f'{requires}#include "dtrun/abi.h"\n{text}\n')
            for language, compiler in (("c", CC), ("c++", CXX)):
                with self.subTest(requires=requires, text=text, language=language):
                    done = subprocess.run([compiler, "-fsyntax-only", "-Werror", "-x", language, f"-I{self.folder}/include", use],
                                          capture_output=True, text=True)
                    allowed = "added" not in text or "REQUIRED 1" in requires
                    self.assertEqual(done.returncode == 0, allowed, done.stderr)
                    if not allowed:
                        self.assertIn("it is of ABI 1.1: define DTRUN_ABI_REQUIRED 1 before the first header", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
