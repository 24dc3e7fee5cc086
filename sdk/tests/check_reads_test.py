"""The check of who reads files finds what it is there for. check_reads_test.py PATH_OF_THE_CHECK"""

import pathlib
import subprocess
import sys
import tempfile
import unittest


class CheckReads(unittest.TestCase):
    def run_on(self, path, text):
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            result = subprocess.run([sys.executable, "-B", CHECK, root], capture_output=True, text=True)
            return result.returncode, result.stdout

    def test_what_may_wait_for_ever_is_found_with_its_line(self):
        for line in ("std::ifstream file(path);", "::fopen(path, mode);", "UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));", "openat(a, b,\n O_RDONLY);",
                     "std::fstream file;", "::open(path, O_RDWR);"):  # fmt: skip
            code, text = self.run_on("core/a/b.cc", f"\n{line}\n")
            self.assertEqual(code, 1, line)
            self.assertIn("core/a/b.cc:2: reads a file by ", text)

    def test_the_rest_passes(self):
        for path, line in [
            ("core/a/b.cc", "::open(path, O_RDONLY | O_NONBLOCK);"), ("core/a/b.cc", "::open(path, O_RDONLY | O_DIRECTORY);"),
            ("core/a/b.cc", "// std::ifstream"), ("core/a/b.cc", "std::ofstream out(path);"), ("core/a/b_test.cc", "std::ifstream file(path);"),
            ("core/base/read_file.cc", "::open(path, O_RDONLY);"), ("core/a/b.cc", "::open(path, O_WRONLY);"),
        ]:  # fmt: skip
            self.assertEqual(self.run_on(path, line), (0, ""), line)

    def test_a_place_that_reads_nothing_any_more_is_told(self):
        self.assertIn("core/base/read_file.cc: no longer reads", self.run_on("core/base/read_file.cc", "nothing();")[1])


if __name__ == "__main__":
    CHECK = sys.argv.pop(1)
    unittest.main()
