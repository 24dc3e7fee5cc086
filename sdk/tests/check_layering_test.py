"""The layering check finds what it is there for. check_layering_test.py PATH_OF_THE_CHECK"""

import pathlib
import subprocess
import sys
import tempfile
import unittest


class CheckLayering(unittest.TestCase):
    def run_on(self, path, line):
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root) / path
            file.parent.mkdir(parents=True)
            file.write_text(f"// text\n{line}\n")
            result = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
            return result.returncode, result.stdout

    def test_an_empty_tree_passes(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(subprocess.run([sys.executable, CHECK, root]).returncode, 0)

    def test_wrong_directions_fail_with_file_and_line(self):
        for path, include in [
            ("core/a/b.cc", '"plugins/gloo/x.h"'),
            ("core/b.h", '"tools/dtrun/x.h"'),
            ("plugins/gloo/x.cc", '"core/base/error.h"'),
            ("plugins/gloo/x.cc", '"../../core/base/error.h"'),
            ("launchers/a/x.cc", "<core/base/error.h>"),
            ("sdk/include/dtrun/x.hpp", '"core/base/error.h"'),
        ]:
            code, text = self.run_on(path, f"#include {include}")
            self.assertEqual(code, 1, (path, include))
            self.assertIn(f"{path}:2:", text)

    def test_right_directions_pass(self):
        for path, include in [
            ("core/a/b.cc", '"core/base/error.h"'),
            ("core/a/b.cc", '"dtrun/abi.h"'),
            ("tools/x.cc", '"core/base/error.h"'),
            ("plugins/gloo/x.cc", '"plugins/gloo/y.h"'),
            ("plugins/gloo/x_test.cc", '"core/base/error.h"'),
        ]:
            self.assertEqual(self.run_on(path, f"#include {include}")[0], 0, (path, include))


if __name__ == "__main__":
    CHECK = sys.argv.pop(1)
    unittest.main()
