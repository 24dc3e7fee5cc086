"""python.modules and backend.torch: a module that a host lacks is named before any rank starts."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

from support.cluster import ClusterTest
from support.job import JobTest, main
from support.lab import Lab, why_not

MODULE = "only_on_two_hosts"
PROGRAM = ("python3", "-c", "print('a rank runs')")


class Here(JobTest):
    def test_modules_that_are_there_change_nothing(self):
        result = self.ranks(2, *PROGRAM, sets=["python.modules=json,os.path"])
        self.assert_ok(result)
        self.assertEqual(result.out.count("a rank runs"), 2)

    def test_one_that_is_missing_is_named_with_its_host_and_interpreter(self):
        for verb in ((), ("plan",)):
            result = self.dtrun(*verb, "--set", "python.modules=json,nosuch", "--", *PROGRAM)
            self.golden_error(result, "--set python.modules: on host '", "python3'", "'nosuch'")
            self.assertNotIn("a rank runs", result.out)

    def test_it_is_looked_for_where_ranks_look(self):
        (self.folder / "own").mkdir()
        self.write("", "own/only_here.py")
        sets = ["python.modules=only_here", f"job.env.PYTHONPATH={self.folder / 'own'}"]
        self.assert_ok(self.ranks(2, *PROGRAM, sets=sets))
        self.assert_user_error(self.ranks(2, *PROGRAM, sets=sets[:1]), "no module 'only_here'")

    def test_a_program_that_is_no_python(self):
        self.golden_error(self.ranks(2, "true", sets=["python.modules=json"]), "/true'", "python.modules")

    def test_torchrun_has_an_interpreter_of_its_own(self):
        self.write("print('a rank runs')", "train.py")
        result = self.ranks(1, "train.py", sets=["launcher.name=torchrun", "launcher.options.entry=script", "python.modules=nosuch"])
        self.golden_error(result, "python3'", "'nosuch'")

    def test_doctor_looks_for_them_too(self):
        told = self.dtrun("doctor", "--json", "--set", "python.modules=json,nosuch", "--", *PROGRAM)
        checks = {check["topic"]: check for check in json.loads(told.out)["hosts"][0]["checks"]}
        self.assertEqual(checks["modules"]["level"], "problem", checks["modules"])
        self.assertIn("no module 'nosuch'", checks["modules"]["what"])
        self.assert_ok(self.dtrun("doctor"))

    def test_backend_torch_needs_the_package_of_dtrun(self):
        for name in ("bare", "own/dtrun"):
            (self.folder / name).mkdir(parents=True)
        self.write(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n', "bare/python3").chmod(0o755)  # finds what Python itself has
        program = (self.folder / "bare/python3", *PROGRAM[1:])
        self.assert_ok(self.ranks(2, *program))
        missing = "'dtrun'"
        self.golden_error(self.ranks(2, *program, flags=["--torch-backend", "dtrun"]), "--torch-backend: backend.torch: on host '", missing)
        self.assert_user_error(self.ranks(2, *program, sets=["backend.torch=dtrun", "python.modules=json"]),
                               "--set backend.torch: on host '", missing)  # fmt: skip
        self.write("", "own/dtrun/__init__.py")
        sets = ["backend.torch=dtrun", f"job.env.PYTHONPATH={self.folder / 'own'}"]
        self.golden_error(self.ranks(2, *PROGRAM, sets=sets), "/python3'", "'torch.backends:dtrun'", ".dist-info")
        (self.folder / "own/dtrun-1.dist-info").mkdir()
        (self.folder / "own/torch-2.dist-info").mkdir()
        self.write("Name: torch\nVersion: 2.4.1\n", "own/torch-2.dist-info/METADATA")
        self.write("[torch.backends]\ndtrun = dtrun.torch:_autoload\n", "own/dtrun-1.dist-info/entry_points.txt")
        self.golden_error(self.ranks(2, *PROGRAM, sets=sets), "python3'", "torch 2.4.1", "2.5", '"dtrun"')
        self.write("Name: torch\nVersion: 2.10.0\n", "own/torch-2.dist-info/METADATA")
        self.assert_ok(self.ranks(2, *PROGRAM, sets=sets))
        self.assert_ok(self.ranks(2, "true", sets=["backend.torch=dtrun"]))  # what it starts is not known
        for more in ({"sets": ["backend.torch=dtrun", "job.env.TORCH_DEVICE_BACKEND_AUTOLOAD=0"]},
                     {"sets": ["backend.torch=dtrun"], "env": self.environment(TORCH_DEVICE_BACKEND_AUTOLOAD="false")}):
            self.golden_error(self.ranks(2, "true", **more), "TORCH_DEVICE_BACKEND_AUTOLOAD")


@unittest.skipIf(why_not(), why_not())
class OnHosts(ClusterTest):
    """/dev/shm is each host's own."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dtrun-lab-")
        cls.addClassCleanup(folder.cleanup)
        cls.lab = Lab(folder.name)
        cls.addClassCleanup(cls.lab.close)

    def give(self, host):
        file = Path("/proc", str(self.lab.holders[host]), "root/dev/shm", MODULE + ".py")
        file.touch()
        self.addCleanup(file.unlink, missing_ok=True)
        return file

    def test_the_host_that_lacks_one_is_named_before_the_start(self):
        files = [self.give(host) for host in (0, 1)]
        more = f'[job.env]\nPYTHONPATH = "/dev/shm"\n[python]\nmodules = ["json", "{MODULE}"]\n'
        result = self.run_cluster(*PROGRAM, more=more)
        self.assertNotEqual(result.code, 0)
        self.golden_lines(result.err, f"'{MODULE}'")
        self.assertNotIn("a rank runs", result.out)
        files.append(self.give(2))
        result = self.run_cluster(*PROGRAM, more=more)
        self.assert_ok(result)
        self.assertEqual(result.out.count("a rank runs"), 6)
        for file in files:
            file.unlink()


if __name__ == "__main__":
    main()
