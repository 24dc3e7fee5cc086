"""The examples of the SDK, built from an installed SDK as a stranger would, and run.

Nothing of the source tree is in sight: the sources are those that were installed, copied to an empty folder.
"""

import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from support.job import BUILD, DTRUN, RANK, SOURCE, JobTest, main, nightly

STRICT = "-Wall -Wextra -Werror"
# Cases that take gigabytes of memory are left to the backends of the tree.
GREEDY = ("Sizes", "Messages.OfMoreThanTwoGibibytesArrive")
# Fails the thread number FAIL_THREAD that libdtrun_backend_tcp.so starts, by std::thread.
FAILING_THREADS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static int is_in(const void* address, const char* file) {
  Dl_info info;
  return dladdr(address, &info) != 0 && strstr(info.dli_fname, file) != NULL;
}
int pthread_create(pthread_t* out, const pthread_attr_t* how, void* (*run)(void*), void* state) {
  static int started;
  int (*next)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = dlsym(RTLD_NEXT, "pthread_create");
  /* libstdc++ passes an object; its table of functions is in the file that compiled std::thread. */
  if (is_in((const void*)run, "libstdc++") && is_in(*(void**)state, "libdtrun_backend_tcp") &&
      ++started == atoi(getenv("FAIL_THREAD")))
    return EAGAIN;
  return next(out, how, run, state);
}
"""


def sanitizer():
    """A plugin inside a sanitized process must be built with the same sanitizer."""
    found = re.search(r"^DTRUN_SANITIZE:STRING=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return f"-fsanitize={found[1]}" if found else ""


SANITIZER = sanitizer()


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Examples(JobTest):
    @classmethod
    def setUpClass(cls):
        cls.root = Path(tempfile.mkdtemp(prefix="dtrun-examples-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.sdk = cls.root / "sdk"
        run("cmake", "--install", BUILD, "--prefix", cls.sdk, "--component", "sdk")
        cls.sources = cls.sdk / "share/dtrun/examples"
        cls.built = {}

    @classmethod
    def build(cls, example, compiler=None):
        """The folder of the example's plugin; with a C compiler other than the build's, if given."""
        if (example, compiler) in cls.built:
            return cls.built[example, compiler]
        source = cls.root / "source" / example
        shutil.copytree(cls.sources / example, source, dirs_exist_ok=True)
        build = cls.root / "build" / f"{example}-{compiler}"
        run("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={cls.sdk}", "-DCMAKE_BUILD_TYPE=Release",
            *([f"-DCMAKE_C_COMPILER={compiler}"] if compiler else []),
            f"-DCMAKE_CXX_FLAGS={STRICT} {SANITIZER}", f"-DCMAKE_C_FLAGS=-std=c11 -pedantic {STRICT} {SANITIZER}")
        run("cmake", "--build", build)
        if f"{SOURCE}/" in (build / "build.ninja").read_text():
            raise AssertionError(f"the build of '{example}' names a file of the source tree")
        cls.built[example, compiler] = build
        return build

    def job(self, *plugin_dirs, backend, options="", launcher="", command=(RANK,)):
        words = ", ".join(json.dumps(str(word)) for word in command)
        config = self.write(f'[job]\nprocesses_per_host = 3\ncommand = [{words}]\n[comm]\nlocal = "none"\n'
                            f'[backend]\nname = "{backend}"\n{options}\n{launcher}')
        folders = [word for folder in plugin_dirs for word in ("--plugin-dir", folder)]
        return self.dtrun(*folders, "--config", config)

    def assert_carries_a_job(self, folder, name):
        result = self.job(folder, backend=name)
        self.assert_ok(result)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3 over {name}: sum 6", result.out)
        result = self.job(folder, backend=name, command=(RANK, "ring"))
        self.assert_ok(result)
        self.assertIn(f"rank 0 of 3 over {name}: got 2", result.out)

    def assert_passes_the_suite(self, plugin, *without):
        """By the tool that the SDK has, in worlds of 3 and 4 ranks."""
        names = "|".join(re.escape(name) for name in (*GREEDY, *without))
        out = run(self.sdk / "bin/dtrun-conformance", "--plugin", plugin, "--only", f"^(?!{names}|.*World[127]$)", env=self.environment())
        passed = re.search(r": (\d+) passed, 0 failed, \d+ skipped$", out.strip())
        self.assertGreater(int(passed[1]), 60, out)

    def test_tcp(self):
        folder = self.build("tcp")
        self.assert_carries_a_job(folder, "tcp")
        self.assert_passes_the_suite(folder / "libdtrun_backend_tcp.so")

    def test_tcp_is_no_longer_than_a_useful_backend_may_be(self):
        lines = [line.strip() for file in (self.sources / "tcp").iterdir() if file.suffix in (".cc", ".h")
                 for line in file.read_text().splitlines()]
        code = [line for line in lines if line and not line.startswith("//")]
        self.assertLessEqual(len(code), 300)

    def test_tcp_names_a_rank_that_was_killed(self):
        result = self.job(self.build("tcp"), backend="tcp", command=(RANK, "die", "in-allreduce", "1", "9"))
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.err, r"rank 1\b.*(SIGKILL|signal 9)")

    def test_tcp_without_threads_is_a_failure_with_a_text(self):
        if SANITIZER:
            self.skipTest("a sanitizer has its own pthread_create")
        source = self.write(FAILING_THREADS, "threads.c")
        library = self.folder / "threads.so"
        run("cc", "-shared", "-fPIC", "-o", library, source, "-ldl")
        for number in (1, 2, 3):
            with self.subTest(thread=number):
                variables = f'[job.env]\nLD_PRELOAD = "{library}"\nFAIL_THREAD = "{number}"\n'
                result = self.job(self.build("tcp"), backend="tcp", launcher=variables)
                self.assertNotEqual(result.code, 0)
                self.assertIn("Resource temporarily unavailable", result.err)
                self.assertNotRegex(result.err + result.out, "terminate called|SIGABRT")

    def test_tcp_in_c(self):
        folder = self.build("tcp_c")
        self.assert_carries_a_job(folder, "tcp_c")
        self.assert_passes_the_suite(folder / "libdtrun_backend_tcp_c.so")

    @nightly
    def test_tcp_in_c_with_clang(self):
        if shutil.which("clang") is None:
            self.skipTest("clang is not installed")
        self.assert_carries_a_job(self.build("tcp_c", "clang"), "tcp_c")

    @nightly
    def test_tcp_in_c_with_tcc(self):
        if shutil.which("tcc") is None:
            self.skipTest("tcc is not installed")
        if SANITIZER:
            self.skipTest("tcc has no sanitizers")
        plugin = self.folder / "libdtrun_backend_tcp_c.so"
        said = run("tcc", "-Wall", "-Werror", "-D_GNU_SOURCE", f"-I{self.sdk}/include", "-shared", "-o", plugin,
                   self.sources / "tcp_c/tcp.c", "-lpthread")
        self.assertEqual(said, "")
        self.assert_carries_a_job(self.folder, "tcp_c")
        # tcc's linker hides no symbol and knows no NODELETE.
        self.assert_passes_the_suite(plugin, "Load.ExportsOneSymbol", "Load.StaysWhenItIsClosed")

    def test_tcp_in_rust(self):
        if shutil.which("rustc") is None:
            self.skipTest("rustc is not installed")
        version = re.search(r"rustc (\d+)\.(\d+)", run("rustc", "--version"))
        if (int(version[1]), int(version[2])) < (1, 77):
            self.skipTest(f"{version[0]} is too old; the example needs 1.77")
        folder = self.build("tcp_rust")
        self.assert_carries_a_job(folder, "tcp_rust")
        self.assert_passes_the_suite(folder / "libdtrun_backend_tcp_rust.so")

    def test_delay(self):
        tcp = self.build("tcp") / "libdtrun_backend_tcp.so"
        options = f'[backend.options]\nplugin = "{tcp}"\ndelay = "700ms"'
        delay = self.build("delay")
        start = time.monotonic()
        result = self.job(delay, backend="delay", options=options)
        took = time.monotonic() - start
        self.assert_ok(result)
        self.assertIn("rank 2 of 3 over delay: sum 6", result.out)
        self.assertGreaterEqual(took, 1.4, "an allreduce and a barrier take at least 700 ms each")
        result = self.job(delay, backend="delay", options=options.replace(str(tcp), str(RANK)))
        self.assertNotEqual(result.code, 0)
        self.assertIn("backend.options.plugin", result.err)

    def test_template_launcher(self):
        launcher = ('[launcher]\nname = "template"\n[launcher.options]\n'
                    'command = ["env", "PLACE=${LOCAL_RANK}/${WORLD_SIZE}", "sh", "-c", "echo place $PLACE; exec \\"$0\\"", "{}"]\n')
        folders = (self.build("template_launcher"), self.build("tcp"))
        result = self.job(*folders, backend="tcp", launcher=launcher)
        self.assert_ok(result)
        for rank in range(3):
            self.assertIn(f"place {rank}/3", result.out)
        self.assertIn("rank 2 of 3 over tcp: sum 6", result.out)
        result = self.job(*folders, backend="tcp", launcher=launcher.replace("LOCAL_RANK", "LOCAL_RANG"))
        self.assertIn("no variable 'LOCAL_RANG'", result.err)
        result = self.job(*folders, backend="tcp", launcher=launcher.replace('"{}"', '"true"'))
        self.assertIn("is '{}'", result.err)

    def test_site_hosts(self):
        folder = self.build("site_hosts")
        variable = "MYSITE_NODES=node1:2 node2:2"
        out = run(self.sdk / "bin/dtrun-conformance", "--plugin", folder / "libdtrun_launcher_mysite.so", "--env", variable,
                  env=self.environment())
        for case in ("AreNotFoundWithoutThePlatform", "AreOnePossibleAllocation", "TakeStructsOfAnotherSize"):
            self.assertRegex(out, rf"ok +Hosts\.{case} ")
        self.assertRegex(out, r", 0 failed, \d+ skipped$")

        config = self.write('[job]\ncommand = ["true"]\n[cluster]\nfrom = "mysite"\n')
        ask = ("--plugin-dir", folder, "plan", "--config", config)
        result = self.dtrun(*ask, env=self.environment(MYSITE_NODES="node1:2 node2:2"))
        self.assert_ok(result)
        self.assertRegex(result.out, r"(?s)node1.*node2")
        result = self.dtrun(*ask, env=self.environment(MYSITE_NODES="node1:2 node1:2"))
        self.assertIn("MYSITE_NODES='node1:2 node1:2' has 'node1' twice", result.err)
        self.assertIn("MYSITE_NODES is unset", self.dtrun(*ask).err)

    def test_the_page_quotes_the_files_and_its_commands_work(self):
        text = (SOURCE / "docs/writing-a-backend.md").read_text()
        quoted = re.findall(r"^```\w+ from=(\S+)\n(.*?)^```$", text, re.M | re.S)
        self.assertGreater(len(quoted), 10)
        for file, block in quoted:
            self.assertIn(block, (self.sources / file).read_text(), f"{file} does not have this block")
        environment = self.environment(SDK=str(self.sdk), PROGRAM=str(RANK))
        environment["PATH"] = f"{DTRUN.parent}:{environment['PATH']}"
        environment["CXXFLAGS"] = SANITIZER
        commands = re.search(r"^```sh run\n(.*?)^```$", text, re.M | re.S)[1].splitlines()
        out = [run("bash", "-c", command, cwd=self.folder, env=environment) for command in commands]
        self.assertIn("rank 2 of 3 over tcp: sum 6", out[-1])


if __name__ == "__main__":
    main()
