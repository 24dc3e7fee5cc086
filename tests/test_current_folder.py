"""What another user has put into the current folder is not run by dtrun: neither programs nor modules of Python."""

import os
import subprocess
import sys

from support.job import DTRUN, JobTest, main

# Every helper that dtrun has ever started, and what these start.
PROGRAMS = ("bash dash dtrun dtrun-pmix env eu-stack flux gdb hostname ip ldd mpiexec mpirun nvidia-smi orterun py-spy pyenv python "
            "python3 qconf rsh scontrol sh squeue srun ssh which")  # fmt: skip
MODULES = "abc codecs csv importlib json os sitecustomize textwrap usercustomize"
PATHS = ("", ":", ".", ":/usr/bin:/bin", ".:/usr/bin:/bin", "./:/usr/bin:/bin", "/usr/bin:/bin:", "/usr/bin::/bin")
PYTHON = ("/usr/bin/python3", "-I")  # as a user's command; what that reads is its own affair


class TheCurrentFolder(JobTest):
    def setUp(self):
        super().setUp()
        self.seen = self.folder / "seen"
        self.place = self.folder / "place"  # the stranger's, and the current one
        (self.folder / "own").mkdir()
        self.place.mkdir()
        self.train = self.write("print('a rank runs')\n", "own/train.py")
        for name in PROGRAMS.split():
            self.write(f'#!/bin/sh\necho "$0 $*" >> {self.seen}\n', f"place/{name}").chmod(0o755)
        for name in MODULES.split():
            self.write(f"open({str(self.seen)!r}, 'a').write('{name}.py\\n')\n", f"place/{name}.py")
        self.write(f"echo BASH_ENV >> {self.seen}\n", "place/env.sh")

    def try_each(self, *arguments, **variables):
        """In the stranger's folder, with each PATH; what dtrun ends with is not the point."""
        results = []
        for path in PATHS:
            env = self.environment(PATH=path, **variables)
            # By its path, as a shell would have found it.
            results.append(self.start(*arguments, env=env, preexec_fn=lambda: os.chdir(self.place)).finish())
            seen = self.seen.read_text() if self.seen.exists() else ""
            self.assertEqual(seen, "", f"{DTRUN.name} {arguments} ran it with PATH={path!r}\n{results[-1]}")
            self.assertLess(results[-1].code, 128, str(results[-1]))
        return results

    # Values that a line such as PYTHONPATH=$PYTHONPATH:/opt makes, where the variable was unset.
    leading = {"PYTHONPATH": ":/opt", "LD_LIBRARY_PATH": ":/opt", "BASH_ENV": "env.sh", "ENV": "env.sh", "PYTHONSTARTUP": "csv.py"}

    def test_is_not_run_to_look_for_modules(self):
        for verb in ("plan", "doctor"):
            for wish in (("--set", 'python.modules=["json","csv"]'), ("--torch-backend", "dtrun")):
                for program in (PYTHON[:1], ("python3",)):
                    self.try_each(verb, *wish, "--", *program, self.train, **self.leading)
        for result in self.try_each("--set", 'python.modules=["json","csv"]', "--", *PYTHON, self.train):
            self.assert_ok(result)

    def test_is_not_run_for_a_word_that_the_user_has_not_typed(self):
        script = self.write(f'[job]\ncommand = ["{self.train}"]\n[launcher]\nname = "torchrun"\noptions.entry = "script"\n')
        for verb in (("plan",), ("doctor",), ()):
            for words in (("-n", "1", self.train), (script,)):
                for result in self.try_each(*verb, *words):
                    self.assertNotIn("place/python3", result.out + result.err)

    def test_is_not_run_by_a_launcher(self):
        config = self.write('[job]\ncommand = ["/bin/echo"]\n[launcher]\nname = "mpirun"\noptions.program = "mpiexec"\n')
        for verb in (("config", "check"), ("plan",), ("doctor",), ()):
            self.try_each(*verb, config, **self.leading)
        for verb in (("plan",), ("--set", "cluster.join_timeout=1s")):
            self.try_each(*verb, "--set", "launcher.name=flux", "/bin/echo", FLUX_URI="local:///nosuch", **self.leading)

    def test_is_not_run_to_reach_hosts(self):
        hosts = ("--hosts", "localhost,nosuch.invalid", "--set", "cluster.join_timeout=1s", "--set", "cluster.network=lo")
        for verb in (("plan",), ()):
            self.try_each(*verb, *hosts, "/bin/echo", **self.leading)

    def test_is_not_run_by_what_only_looks(self):
        config = self.write('[job]\ncommand = ["/bin/false"]\n')
        for result in self.try_each("config", "check", config, **self.leading):
            self.assert_ok(result)
        self.try_each(config)
        for words in (("explain", "latest"), ("explain", "Bootstrap : no socket interface found"), ("plugins", "list"), ("plugins", "describe", "gloo")):
            self.try_each(*words, **self.leading)


class TheProgramItself(JobTest):
    def test_is_not_looked_for_there(self):
        seen = self.folder / "seen"
        self.write(f"#!/bin/sh\necho x >> {seen}\n", "dtrun").chmod(0o755)
        package = os.path.join(os.environ["DTRUN_SOURCE"], "python")
        for word in ("import dtrun.functions.process as p; p.find_dtrun()", "import runpy; runpy.run_module('dtrun')"):
            code = f"import os, sys; sys.path.insert(0, {package!r}); os.chdir({str(self.folder)!r}); {word}"
            for path in (":", ".", "./:/nosuch"):
                self.start_python(code, self.environment(PATH=path))
                self.assertFalse(seen.exists(), (word, path))

    def start_python(self, code, env):
        subprocess.run([sys.executable, "-I", "-c", code], env=env, capture_output=True, check=False)


if __name__ == "__main__":
    main()
