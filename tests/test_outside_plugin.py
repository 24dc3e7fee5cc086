"""What is built outside the tree, from an installation: a program, and a backend.

The backend is a copy of gloo under another name; the same program and config run over it once its file is copied into
the installation and one line, backend.name, is edited.
"""

import re
import shutil
import subprocess

from support.job import BUILD, RANK, SOURCE, JobTest, main, skip


PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(outside LANGUAGES CXX)
find_package(dtrun REQUIRED)
add_executable(rank rank.cc)
target_link_libraries(rank PRIVATE dtrun::dtrun)
"""


class Outside(JobTest):
    def run_tool(self, *command):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def install(self):
        prefix = self.folder / "prefix"
        self.run_tool("cmake", "--install", BUILD, "--prefix", prefix)
        return prefix

    def run_installed(self, prefix, *arguments):
        done = subprocess.run([prefix / "bin/dtrun", *arguments], cwd=self.folder, env=self.environment(),
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_a_program_runs_under_the_installed_dtrun(self):
        prefix = self.install()
        outside = self.folder / "program"
        outside.mkdir()
        (outside / "CMakeLists.txt").write_text(PROJECT)
        shutil.copy(SOURCE / "tests/programs/rank.cc", outside)
        self.run_tool("cmake", "-G", "Ninja", "-S", outside, "-B", outside / "build",
                      f"-DCMAKE_PREFIX_PATH={prefix}", *sanitizer_flags())
        self.run_tool("cmake", "--build", outside / "build")
        done = self.run_installed(prefix, "-v", "--set", "job.processes_per_host=2", "--set", "comm.local=none", "--",
                                  outside / "build/rank")
        self.assertIn("rank 1 of 2 over gloo: sum 3", done.stdout)
        self.assertIn(f"{prefix}/lib/dtrun/plugins", done.stderr)

    def test_a_copy_of_gloo_under_another_name_carries_the_same_job(self):
        prefix = self.install()
        outside = self.folder / "outside"
        shutil.copytree(SOURCE / "plugins" / "gloo", outside)
        self.assertFalse(any("core/" in file.read_text() for file in outside.glob("*.[ch]*")), "uses our sources")
        build = self.folder / "outside-build"
        self.run_tool("cmake", "-G", "Ninja", "-S", outside, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                      "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON", "-DDTRUN_GLOO_PLUGIN_NAME=elsewhere",
                      *sanitizer_flags())
        self.run_tool("cmake", "--build", build)
        made = next(build.rglob("libdtrun_backend_elsewhere.so"))

        config = self.write(f'[job]\nprocesses_per_host = 2\ncommand = ["{RANK}"]\n[backend]\nname = "gloo"\n[comm]\nlocal = "none"\n')
        self.assertIn("over gloo", self.run_installed(prefix, config).stdout)
        # One file copied, one line edited.
        shutil.copy(made, prefix / "lib/dtrun/plugins")
        config.write_text(config.read_text().replace('"gloo"', '"elsewhere"'))
        self.assertIn("rank 1 of 2 over elsewhere: sum 3", self.run_installed(prefix, config).stdout)


def sanitizer_flags():
    """A plugin inside a sanitized process must be built with the same sanitizer."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    found = re.search(r"^DTRUN_SANITIZE:STRING=(.+)$", cache, re.M)
    if not found:
        return []
    return [f"-DCMAKE_CXX_FLAGS=-fsanitize={found[1]}"]


if __name__ == "__main__":
    if not (BUILD / "lib/dtrun/plugins/libdtrun_backend_gloo.so").exists():
        skip("the gloo plugin was not built: libgloo-dev was not found when this build was configured")
    main()
