"""cmake --install into a folder: what it has, and that it runs from there."""

import os
import re
import shutil
import subprocess
import unittest

from support.hardening import elf_files, weaknesses
from support.job import BUILD, SOURCE, JobTest, main

RELEASE = re.search(r"^CMAKE_BUILD_TYPE:STRING=Release$\n(?s:.*)^DTRUN_SANITIZE:STRING=$", (BUILD / "CMakeCache.txt").read_text(), re.M)
SHARED = ("man/man1/dtrun.1", "man/man1/dtrun-plan.1", "man/man1/dtrun-conformance.1",
          "bash-completion/completions/dtrun", "zsh/site-functions/_dtrun",
          "fish/vendor_completions.d/dtrun.fish", "doc/dtrun/LICENSE", "doc/dtrun/docs/install.md",
          "doc/dtrun/configs/quickstart.toml", "dtrun/failures.toml")


class Install(JobTest):
    def setUp(self):
        super().setUp()
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.folder / "first"], check=True, capture_output=True)
        self.prefix = (self.folder / "first").rename(self.folder / "moved")

    def run_here(self, command, **more):
        environment = self.environment(PATH=f"{self.prefix / 'bin'}:{os.environ['PATH']}", **more)
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def test_pages_completions_license_and_examples(self):
        for name in SHARED:
            self.assertTrue((self.prefix / "share" / name).exists(), name)

    def test_a_moved_folder_runs(self):
        self.assertEqual(self.run_here("dtrun -q -n 2 echo hello").count("hello\n"), 2)
        plugins = self.run_here("dtrun plugins list")
        self.assertIn(str(self.prefix / "lib/dtrun/plugins"), plugins)
        for kind, name in ("backend", "gloo"), ("device", "cuda"), ("launcher", "torchrun"):
            self.assertRegex(plugins, rf"(?m)^{kind} +{name} +\d+\.")

    def test_no_library_of_the_current_folder_is_loaded(self):
        for prefix in (BUILD, self.prefix):
            files = [*(prefix / "bin").glob("dtrun*"), *(prefix / "lib/dtrun").glob("dtrun-*"),
                     *(prefix / "lib/dtrun/plugins").glob("libdtrun_*.so")]
            told = subprocess.run(["readelf", "-d", *files], check=True, capture_output=True, text=True).stdout
            places = {place for path in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", told) for place in path.split(":")}
            self.assertLessEqual(places, {"$ORIGIN", "$ORIGIN/../lib"}, prefix)
            for name in re.findall(r"NEEDED.*\[(.*)\]", told):
                (self.folder / name).write_text("no library")
            self.assertEqual(self.run_here(f"{prefix}/bin/dtrun -q --set backend.name=gloo -n 2 echo hello").count("hello\n"), 2)

    @unittest.skipUnless(RELEASE, "this build is not what is delivered")
    def test_what_is_installed_is_hardened(self):
        files = elf_files(self.prefix.rglob("*"))
        self.assertLessEqual({"dtrun", "dtrun-probe", "libdtrun_backend_gloo.so", "libdtrun_launcher_torchrun.so"}, {file.name for file in files})
        self.assertEqual({file.name: weak for file in files if (weak := weaknesses(file))}, {})

    def test_a_program_that_is_not_hardened_is_found_out(self):
        if shutil.which("cc") is None:
            self.skipTest("there is no C compiler")
        source = self.write("#include <stdio.h>\nint main(void) { char line[64]; return fgets(line, sizeof line, stdin) == NULL; }\n", "weak.c")
        flags = ("-g", "-fno-stack-protector", "-fcf-protection=none", "-no-pie", "-Wl,-z,norelro,-z,lazy,-z,execstack")
        subprocess.run(["cc", *flags, source, "-o", self.folder / "weak"], check=True, capture_output=True)
        self.assertIn(self.folder / "weak", elf_files([self.folder / "weak"]))
        found = set(weaknesses(self.folder / "weak"))
        self.assertLessEqual({"relocations that stay writable", "an executable stack", "no stack protector", "symbols or debug information"}, found)
        self.assertGreaterEqual(len(found), 6, found)

    def test_python_finds_the_library_beside_it(self):
        place = self.prefix / "lib/python3/dist-packages"
        program = "import dtrun; w = dtrun.init(); print(w.size, dtrun.__file__)"
        self.assertEqual(self.run_here(f"python3 -B -c '{program}'", PYTHONPATH=str(place)), f"1 {place}/dtrun/__init__.py\n")

    def test_the_shim_finds_a_package_that_is_not_on_the_path(self):
        program = "import horovod; print(horovod.__version__)"
        self.assertEqual(self.run_here(f"dtrun -q --set python.horovod=shim /usr/bin/python3 -B -c '{program}'"), "0.28.1+dtrun\n")

    def test_torch_finds_the_backend(self):
        program = ("from importlib.metadata import entry_points, version\n"
                   "print(version('dtrun'), [point.value for point in entry_points(group='torch.backends') if point.name == 'dtrun'])")
        place = self.prefix / "lib/python3/dist-packages"
        found = self.run_here(f'python3 -B -c "{program}"', PYTHONPATH=str(place))
        self.assertEqual(found, f"{self.run_here('dtrun --version').split()[1]} ['dtrun.torch:_autoload']\n")

    def test_torch_backend_says_where_the_package_is(self):
        self.write("", "train.py")
        place = self.prefix / "lib/python3/dist-packages"
        environment = self.environment()
        environment.pop("PYTHONPATH", None)
        done = subprocess.run([self.prefix / "bin/dtrun", "--torch-backend", "dtrun", "/usr/bin/python3", "-S", "train.py"],
                              cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        self.assertIn(f"set PYTHONPATH={place}, ", done.stderr)

    def test_the_training_example_has_its_config_its_source_and_its_page(self):
        if not (BUILD / "bin/dtrun-train").exists():
            self.skipTest("because libtorch was not found when this build was configured")
        share = self.prefix / "share"
        self.assertIn("2 ranks", self.run_here(f"dtrun plan {share}/doc/dtrun/configs/quickstart.toml"))
        for name in "main.cc", "trainer.h", "CMakeLists.txt":
            self.assertTrue((share / "dtrun/examples/dtrun-train" / name).exists(), name)
        self.assertIn("--epochs N", (share / "man/man1/dtrun-train.1").read_text().replace("\\-", "-"))

    def test_the_conformance_tool_tries_an_installed_plugin(self):
        plugin = self.prefix / "lib/dtrun/plugins/libdtrun_launcher_per_process.so"
        self.assertIn(" 0 failed", self.run_here(f"dtrun-conformance --plugin {plugin}"))

    def test_the_conformance_tool_counts_no_memory_of_another_malloc(self):
        if shutil.which("cc") is None:
            self.skipTest("there is no C compiler")
        self.write("#include <stddef.h>\nvoid* __libc_malloc(size_t);\nvoid* malloc(size_t n) { return __libc_malloc(n); }\n", "other.c")
        other = self.folder / "other.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", self.folder / "other.c", "-o", other], check=True)
        plugin = self.prefix / "lib/dtrun/plugins/libdtrun_backend_gloo.so"
        said = self.run_here(f"dtrun-conformance --plugin {plugin} --only NeedsNoMoreMemory", LD_PRELOAD=str(other))
        self.assertRegex(said, r"\b0 passed, 0 failed, 4 skipped")

    def test_a_program_in_c(self):
        """That of docs/install.md, by its own commands."""
        if shutil.which("pkg-config") is None:
            self.skipTest("because pkg-config is not installed")
        page = (SOURCE / "docs/install.md").read_text()
        self.write(re.search(r"(?ms)^```c file=sum.c\n(.*?)^```$", page)[1], "sum.c")
        compiling, running = re.search(r"(?ms)^```sh packages\n(.*?)^```$", page)[1].strip().splitlines()
        self.run_here(f"{compiling} -Wl,-rpath,{self.prefix}/lib", PKG_CONFIG_PATH=str(self.prefix / "lib/pkgconfig"))
        self.assertIn("rank 1 of 2: ", self.run_here(running))


if __name__ == "__main__":
    main()
