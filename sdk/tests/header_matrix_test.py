"""header_matrix.py finds the header that needs another one before it, and the one that is not of its language."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

MATRIX = pathlib.Path(__file__).with_name("header_matrix.py")
GOOD = "#ifndef GOOD\n#define GOOD\n#include <stdint.h>\ntypedef int32_t good_number;\n#endif\n"


class HeaderMatrix(unittest.TestCase):
    def run_on(self, **headers):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in headers.items():
            (folder / name.replace("_", ".")).write_text(text)
        return subprocess.run([sys.executable, MATRIX, folder], capture_output=True, text=True, check=False)

    def assert_found(self, done, words):
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, words)

    def test_good_headers_pass_and_every_combination_has_its_line(self):
        done = self.run_on(good_h=GOOD)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for combination in ("c11 +gcc", "c17 +clang", "c11 +tcc", r"c\+\+20 +clang\+\+ -stdlib=libc\+\+"):
            self.assertRegex(done.stdout, combination + " +(skipped, because|[1-9])")

    def test_a_header_that_needs_another_is_found(self):
        self.assert_found(self.run_on(good_h=GOOD, later_h="typedef good_number later_number;\n"), "later.h alone as c11 with")
        self.assert_found(self.run_on(a_hpp="#pragma once\nclass A;\n", b_hpp="#pragma once\nA* New();\n"),
                          r"b.hpp alone as c\+\+17 with")

    def test_a_header_that_is_not_c_or_warns_or_has_no_guard_is_found(self):
        self.assert_found(self.run_on(good_h=GOOD, other_h="#include <cstdint>\n"), "as c17 with")
        self.assert_found(self.run_on(other_h="static int unused(int a, int b) { return a; }\n"), "Werror|unused")
        self.assert_found(self.run_on(other_h="enum { TWICE = 1 };\n"), "TWICE")


if __name__ == "__main__":
    unittest.main()
