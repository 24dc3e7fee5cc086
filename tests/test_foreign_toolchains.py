"""Plugins from other compilers and other C++ libraries, built and run with an installed dtrun: C, C++ on the wrapper, Rust.

The C plugins are those of sdk/tests/golden, the one in C++ is in sdk/tests/out_of_tree, the one in Rust an example. What is not installed is skipped by name.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from support.job import BUILD, RANK, SOURCE, JobTest, main

C = {"gcc": ["gcc"], "clang": ["clang"], "tcc": ["tcc"]}
LIBCXX = ["clang++", "-stdlib=libc++"]
CXX = {
    "g++": ["g++"],
    "clang++": ["clang++"],
    "clang++ with libc++": LIBCXX,
    "clang++ with a static libc++": [*LIBCXX, "-nostdlib++"],
    "g++ with the old string ABI": ["g++", "-D_GLIBCXX_USE_CXX11_ABI=0"],
    "g++ with _GLIBCXX_DEBUG": ["g++", "-D_GLIBCXX_DEBUG"],
}
STATIC_LIBCXX = ["-Wl,-Bstatic", "-lc++", "-lc++abi", "-Wl,-Bdynamic", "-lpthread"]
RUST = ["rustc", "--edition=2021", "--crate-type=cdylib", "-Copt-level=s", "-Cpanic=abort", "-Cstrip=symbols"]


def call(*command, **more):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


def missing(command):
    """Why a toolchain cannot be used, or an empty text."""
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not installed"
    if "-stdlib=libc++" in command and call(*LIBCXX, "-fsyntax-only", "-xc++", "-", input="#include <cstddef>\n").returncode != 0:
        return "libc++ is not installed"
    return ""


class Foreign(JobTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="dtrun-test-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.prefix = Path(cls.scratch.name) / "prefix"
        installed = call("cmake", "--install", BUILD, "--prefix", cls.prefix)
        assert installed.returncode == 0, installed.stdout
        cls.include = f"-I{cls.prefix}/include"

    def build(self, toolchain, command, *words):
        """A plugin, in a folder of its own beside others of the same toolchain."""
        folder = self.folder / re.sub(r"\W+", "-", toolchain)
        folder.mkdir(exist_ok=True)
        *flags, source, file = words
        made = call(*command, *flags, source, "-o", folder / file, *(STATIC_LIBCXX if "static" in toolchain else []))
        self.assertEqual(made.returncode, 0, f"{toolchain}:\n{made.stdout}")
        return folder / file

    def assert_works(self, toolchain, plugin, *job):
        """By itself, with structs of any size, and in a job of the installed dtrun."""
        with self.subTest(toolchain, plugin=plugin.name):
            exported = {line.split()[-1] for line in call("nm", "-D", "--defined-only", plugin).stdout.splitlines()}
            linkers = {name for name in exported if re.match("_(?!Z)", name)}  # _init and the like, of tcc
            self.assertEqual(exported - linkers, {"dtrun_plugin_entry_v1"})
            for delta in (0, 64):
                driven = call(BUILD / "tests/golden_driver", plugin, delta, timeout=60)
                self.assertEqual((driven.returncode, driven.stdout), (0, ""))
            done = call(self.prefix / "bin/dtrun", "-n", 2, "--plugin-dir", plugin.parent, *job,
                        env=self.environment(), cwd=self.folder, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout
        return ""

    def each(self, toolchains, build):
        """Builds with all toolchains that are here, two at a time, and reports the others."""
        here = {name: command for name, command in toolchains.items() if not missing(command)}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from zip(here, pool.map(lambda item: build(*item), here.items()))
        for name, command in toolchains.items():
            if name not in here:
                with self.subTest(name):
                    self.skipTest(f"because {missing(command)}")

    def test_c(self):
        def build(name, command):
            flags = ["-std=c11", "-fPIC", "-shared", "-fvisibility=hidden", self.include]
            return [self.build(name, command, *flags, SOURCE / f"sdk/tests/golden/{kind}.c", f"libdtrun_{kind}_golden.so")
                    for kind in ("backend", "launcher")]

        for name, (backend, launcher) in self.each(C, build):
            output = self.assert_works(name, backend, "--set", "backend.name=golden", "--set", "comm.local=none", RANK)
            self.assertIn("rank 1 of 2 over golden: sum 3", output)
            self.assert_works(name, launcher, "--set", "launcher.name=golden", "true")

    def test_cxx_on_the_wrapper(self):
        def build(name, command):
            flags = ["-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,--exclude-libs,ALL", self.include,
                     f"-Wl,--version-script={next(self.prefix.rglob('plugin.map'))}"]
            return self.build(name, command, *flags, SOURCE / "sdk/tests/out_of_tree/launcher.cc", "libdtrun_launcher_in_cxx.so")

        for name, launcher in self.each(CXX, build):
            self.assert_works(name, launcher, "--set", "launcher.name=in-cxx", "true")
            needed = set(re.findall(r"NEEDED.*\[(lib(?:std)?c\+\+)", call("readelf", "-d", launcher).stdout))
            self.assertEqual(needed, set() if "static" in name else {"libc++"} if "libc++" in name else {"libstdc++"})

    def test_rust(self):
        def build(name, command):
            include = ["env", f"DTRUN_INCLUDE={self.prefix}/include"]
            return self.build(name, include + command, self.prefix / "share/dtrun/examples/launcher_rust/plain.rs",
                              "libdtrun_launcher_plain_rust.so")

        for name, launcher in self.each({"rustc": RUST}, build):
            output = self.assert_works(name, launcher, "--set", "launcher.name=plain-rust", "sh", "-c", "echo rank $RANK")
            self.assertRegex(output, r"(?s)rank [01]\n.*rank [01]\n")

    def test_the_wrapper_says_that_it_needs_exceptions(self):
        for compiler in filter(shutil.which, ("g++", "clang++")):
            made = call(compiler, "-std=c++17", "-fno-exceptions", "-fsyntax-only", self.include, "-xc++", "-",
                        input='#include "dtrun/plugin.hpp"\n')
            self.assertNotEqual(made.returncode, 0)
            self.assertRegex(made.stdout, "-fno-exceptions.*dtrun/abi.h")


if __name__ == "__main__":
    main()
