"""The layering check finds what it is there for. check_layering_test.py PATH_OF_THE_CHECK"""

import pathlib
import subprocess
import sys
import tempfile
import unittest


class CheckLayering(unittest.TestCase):
    def run_on(self, path, line, others={}):
        with tempfile.TemporaryDirectory() as root:
            for name, text in others.items():
                (pathlib.Path(root) / name).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(root) / name).write_text(text)
            file = pathlib.Path(root) / path
            file.parent.mkdir(parents=True, exist_ok=True)
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

    def test_in_core_a_folder_sees_those_before_it(self):
        for path, include, code in [
            ("core/base/x.cc", '"core/job/run.h"', 1),
            ("core/base/deep/x.h", '"core/job/run.h"', 1),
            ("core/base/x_test.cc", '"core/job/run.h"', 0),
            ("core/job/x.cc", '"core/base/error.h"', 0),
            ("core/job/x.cc", '"core/job/run.h"', 0),
            ("core/other/x.cc", '"core/base/error.h"', 1),
        ]:
            lists = {"core/CMakeLists.txt": "add_subdirectory(base)\nadd_subdirectory(job)\n"}
            result, text = self.run_on(path, f"#include {include}", lists)
            self.assertEqual(result, code, (path, include))
            self.assertEqual(path in text, bool(code), text)

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
