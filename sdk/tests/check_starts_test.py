"""The check of who starts programs finds what it is there for. check_starts_test.py PATH_OF_THE_CHECK"""

import pathlib
import subprocess
import sys
import tempfile
import unittest


class CheckStarts(unittest.TestCase):
    def run_on(self, path, text):
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            result = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
            return result.returncode, result.stdout

    def test_every_way_to_start_a_program_is_found_with_its_line(self):
        for path, call in [
            ("core/a/b.cc", 'popen("ssh", "r")'), ("core/a/b.cc", '::popen ("ssh", "r")'), ("core/a/b.h", "std::system(text)"),
            ("launchers/a/b.cc", "::posix_spawnp(&pid, name, 0, 0, argv, environ)"), ("plugins/a/b.c", "execlp(name, name, 0)"),
            ("tools/dtrun/b.cc", "::execvpe(name, argv, env)"), ("sdk/include/dtrun/b.hpp", "::fork()"), ("core/b.cc", "vfork()"),
            ("core/b.cc", "::syscall(SYS_clone3, &arguments, size)"), ("core/b.cc", "::clone(run, stack, flags, 0)"),
            ("sdk/helpers/helper.cc", "::execve(f, a, e); ::fork(); ::system(text)"), ("python/dtrun/b.py", "os.execvp(name, words)"),
            ("python/dtrun/b.py", "subprocess.run(words)"), ("python/dtrun/b.py", "from subprocess import run"), ("python/dtrun/b.py", "os.system(text)"),
        ]:  # fmt: skip
            code, text = self.run_on(path, f"\n{call};\n")
            self.assertEqual(code, 1, (path, call))
            self.assertIn(f"{path}:2: calls ", text)
            self.assertEqual(text.count("\n"), 1, text)

    def test_what_only_looks_alike_passes(self):
        for path, line in [
            ("core/a/b.cc", "// popen(x) and fork()"), ("core/a/b.cc", 'Text("execve(): no such file");'), ("core/a/b.cc", "tensor.clone();"),
            ("core/a/b.cc", "tensor->clone();"), ("core/a/b.cc", "FileSystem(x);"), ("core/a/b.cc", "/* fork(\n) */"), ("core/a/b_test.cc", "::fork();"),
            ("core/a/testing/b.cc", "::fork();"), ("tests/b.cc", "::fork();"), ("python/dtrun/b.py", "# os.system(x)"), ("core/node/guard.cc", "::fork();"),
        ]:  # fmt: skip
            self.assertEqual(self.run_on(path, line), (0, ""), (path, line))

    def test_a_place_that_starts_nothing_any_more_is_told(self):
        code, text = self.run_on("core/node/guard.cc", "nothing();")
        self.assertEqual(code, 1)
        self.assertIn("core/node/guard.cc: no longer calls fork", text)


if __name__ == "__main__":
    CHECK = sys.argv.pop(1)
    unittest.main()
