"""The examples of the SDK, built from an installed SDK as a stranger would, and run.

Nothing of the source tree is in sight: the sources are those that were installed, copied to an empty folder.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.job import BUILD, DTRUN, RANK, SOURCE, JobTest, main, nightly

GLOO = BUILD / "lib/dtrun/plugins/libdtrun_backend_gloo.so"
STRICT = "-Wall -Wextra -Werror"
PROGRAMS = SOURCE / "tests/programs"
# Cases that take gigabytes of memory are left to the backends of the tree.
WHOLE = "^(?!Sizes|Messages.OfMoreThanTwoGibibytesArrive|.*World[127]$)"
SMOKE = "^(Load|Plugin.(Has|Offers|Says)|Collectives.*World3$|Messages.(OfEverySize|OfOne|Are)|Requests.(Start|Of|Keep)|Failures.NameARank)"


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

    def assert_passes_the_suite(self, plugin, only=WHOLE, options={}):
        """By the tool that the SDK has, in worlds of 3 and 4 ranks."""
        given = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
        out = run(self.sdk / "bin/dtrun-conformance", "--plugin", plugin, *given, "--only", only, env=self.environment())
        passed = re.search(r": (\d+) passed, 0 failed, \d+ skipped$", out.strip())
        self.assertGreater(int(passed[1]), 20 if only == SMOKE else 60, out)

    def test_tcp(self):
        folder = self.build("tcp")
        self.assert_carries_a_job(folder, "tcp")
        self.assert_passes_the_suite(folder / "libdtrun_backend_tcp.so", SMOKE)

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
        source = PROGRAMS / "failing_threads.c"
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
        self.assert_passes_the_suite(folder / "libdtrun_backend_tcp_c.so", SMOKE)

    def counting(self):
        """The program of each language that prints the counters of tcp_c: its command."""
        sources = self.sources / "counters"
        run("cc", "-std=c11", "-pedantic", *STRICT.split(), "-o", self.folder / "counters", sources / "counters.c",
            f"-I{self.sdk}/include", f"-L{BUILD}/lib", "-ldtrun", f"-Wl,-rpath,{BUILD}/lib")
        yield "C", [self.folder / "counters"]
        if not SANITIZER:
            yield "Python", [sys.executable, sources / "counters.py"]
        if shutil.which("rustc") is not None:
            run("rustc", "--edition", "2021", "-Dwarnings", "-L", BUILD / "lib", "-l", "dtrun", "-C", f"link-arg=-Wl,-rpath,{BUILD}/lib",
                "-o", self.folder / "counters-rust", sources / "counters.rs", env=self.environment(DTRUN_INCLUDE=f"{self.sdk}/include"))
            yield "Rust", [self.folder / "counters-rust"]

    def test_programs_reach_the_counters_of_tcp_c(self):
        folders = [self.build(name) for name in ("tcp_c", "delay", "bf16")]
        flags = [word for folder in folders for word in ("--plugin-dir", folder)]
        python = {"PYTHONPATH": str(SOURCE / "python"), "DTRUN_LIBRARY": str(BUILD / "lib/libdtrun.so.1")}
        stacks = {"tcp_c": [], "delay > bf16 > tcp_c": ["backend.delay.over=bf16", "backend.bf16.over=tcp_c"]}
        for language, command in self.counting():
            for stack, options in stacks.items():
                sets = [f"backend.name={stack.split()[0]}", "comm.local=none", *options]
                with self.subTest(language=language, stack=stack):
                    result = self.ranks(2, *command, sets=sets, flags=flags, env=self.environment(**python))
                    self.assert_ok(result)
                    for rank in range(2):
                        self.assertIn(f"rank {rank} over tcp_c: sent 3 messages, 3000 bytes; received 3 messages, 3000 bytes\n", result.out)
            with self.subTest(language=language, backend="one that has none"):
                result = self.ranks(2, *command, sets=["backend.name=gloo", "comm.local=none"], env=self.environment(**python))
                self.assertNotEqual(result.code, 0)
                self.assertIn("no backend that carries 'world' has the extension 'dtrun_examples.counters/1' (asked: 'gloo')", result.err)
            with self.subTest(language=language, backend="shared memory"):
                result = self.ranks(2, *command, sets=["backend.name=tcp_c"], flags=flags, env=self.environment(**python))
                self.assertNotEqual(result.code, 0)
                self.assertRegex(result.err, "'shm' carries it.*comm.local = .none.")
            with self.subTest(language=language, hosts=2):
                # Emulated hosts have no address, without which tcp_c cannot reach another.
                result = self.ranks(4, "env", "DTRUN_ADDRESS=127.0.0.1", *command, sets=["backend.name=tcp_c", "comm.emulate_hosts=2"],
                                    flags=flags, env=self.environment(**python))
                self.assert_ok(result)
                for leader, other in ((0, 1), (2, 3)):
                    self.assertIn(f"rank {leader} over tcp_c: ", result.out)
                    self.assertIn(f"rank {other}: another rank", result.out)

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
        self.assert_passes_the_suite(plugin, WHOLE.replace("Sizes", "Load.ExportsOneSymbol|Load.StaysWhenItIsClosed|Sizes"))

    def test_tcp_in_rust(self):
        if shutil.which("rustc") is None:
            self.skipTest("rustc is not installed")
        version = re.search(r"rustc (\d+)\.(\d+)", run("rustc", "--version"))
        if (int(version[1]), int(version[2])) < (1, 63):
            self.skipTest(f"{version[0]} is too old; the example needs 1.63")
        folder = self.build("tcp_rust")
        self.assert_carries_a_job(folder, "tcp_rust")
        self.assert_passes_the_suite(folder / "libdtrun_backend_tcp_rust.so", SMOKE)

    def test_delay(self):
        tcp = self.build("tcp") / "libdtrun_backend_tcp.so"
        options = f'[backend.options]\nover = "{tcp}"\ndelay = "700ms"'
        delay = self.build("delay")
        start = time.monotonic()
        result = self.job(delay, backend="delay", options=options)
        took = time.monotonic() - start
        self.assert_ok(result)
        self.assertIn("rank 2 of 3 over delay > tcp: sum 6", result.out)
        self.assertGreaterEqual(took, 1.4, "an allreduce and a barrier take at least 700 ms each")
        result = self.job(delay, backend="delay", options=options.replace(str(tcp), str(RANK)))
        self.assertNotEqual(result.code, 0)
        self.assertIn("backend.options.over", result.err)

    def test_wrappers_nest_over_every_backend(self):
        folders = [self.build(name) for name in ("delay", "bf16", "tcp_c")]
        program = self.folder / "sums"
        run("cc", "-o", program, PROGRAMS / "sums.c", f"-I{self.sdk}/include", f"-L{BUILD}/lib", "-ldtrun", f"-Wl,-rpath,{BUILD}/lib")
        for name in ("gloo", "ucx", "tcp_c"):
            with self.subTest(name):
                options = f'[backend.options]\nover = "bf16"\n[backend.bf16]\nover = "{name}"\n'
                result = self.job(*folders, backend="delay", options=options, command=(program,))
                self.assert_ok(result)
                # bfloat16 has 8 significant bits, so that it keeps 256 of 257.
                self.assertEqual(result.out.count(f"delay > bf16 > {name}: floats 768, doubles 771\n"), 3, result.out)
        flags = [word for folder in folders for word in ("--plugin-dir", folder)]
        ask = [*flags, "--config", self.write("[backend]\nname = 'delay'\noptions.over = 'bf16'\n", "stack.toml")]
        by_variable = self.environment(DTRUN_CONFIG_BACKEND_BF16_OVER="gloo")
        listed = self.dtrun("config", "list", "backend.", *ask, "--set", "backend.gloo.interface=lo", env=by_variable)
        self.assertRegex(listed.out, r'(?m)^backend.bf16.over +"gloo" .*\(DTRUN_CONFIG_BACKEND_BF16_OVER\)$')
        self.assertRegex(listed.out, r'(?m)^backend.gloo.interface +"lo" .*\(--set backend.gloo.interface\)$')
        self.assertIn('backend.bf16.over = "gloo" (DTRUN_CONFIG_BACKEND_BF16_OVER)', self.dtrun("plan", *ask, "true", env=by_variable).out)

    def test_a_message_outlives_its_sender(self):
        program = self.folder / "outlived"
        run("cc", "-o", program, PROGRAMS / "outlived.c", f"-I{self.sdk}/include", f"-L{BUILD}/lib", "-ldtrun",
            f"-Wl,-rpath,{BUILD}/lib")
        folders = ["--plugin-dir", self.build("tcp"), "--plugin-dir", self.build("tcp_c")]
        for name, local in (("gloo", "shm"), ("gloo", "none"), ("ucx", "none"), ("tcp", "none"), ("tcp_c", "none")):
            with self.subTest(backend=name, local=local):
                sets = [f"backend.name={name}", f"comm.local={local}", "backend.timeout=20s"]
                result = self.ranks(2, program, self.folder / f"{name}-{local}", sets=sets, flags=folders)
                self.assert_ok(result)
                self.assertEqual(result.out.count("status 0"), 2, str(result))

    @nightly
    def test_what_the_examples_have_sent_waits_for_a_receiver_that_is_8_s_late(self):
        for name in ("tcp", "tcp_c", "tcp_rust"):
            if name == "tcp_rust" and shutil.which("rustc") is None:
                continue
            run(self.sdk / "bin/dtrun-conformance", "--plugin", self.build(name) / f"libdtrun_backend_{name}.so", "--wide",
                "--only", "Messages.(ThatAreCompleteOutlive|ReachARank)", env=self.environment())

    @nightly
    def test_each_passes_the_whole_suite(self):
        for name in ("tcp", "tcp_c", "tcp_rust", "bf16"):
            if name == "tcp_rust" and shutil.which("rustc") is None:
                continue
            with self.subTest(name):
                options = {"over": GLOO} if name == "bf16" else {}
                self.assert_passes_the_suite(self.build(name) / f"libdtrun_backend_{name}.so", options=options)
        self.nested(WHOLE)

    def test_wrappers_pass_a_part_of_the_suite(self):
        self.nested(SMOKE)

    def nested(self, only):
        bf16 = self.build("bf16") / "libdtrun_backend_bf16.so"
        self.assert_passes_the_suite(self.build("delay") / "libdtrun_backend_delay.so", only,
                                     {"over": bf16, "bf16.over": GLOO, "delay": "10us"})

    def test_a_wrong_word_about_the_backend_below_is_a_wrong_command(self):
        bf16 = self.build("bf16") / "libdtrun_backend_bf16.so"
        for fact, *given in (("'gloo'", "over=gloo"), ("/no/libdtrun", "over=/no/libdtrun_backend_x.so"),
                             ("'interfaces'", f"over={GLOO}", "gloo.interfaces=lo")):
            with self.subTest(given):
                sets = [word for one in given for word in ("--set", one)]
                done = subprocess.run([self.sdk / "bin/dtrun-conformance", "--plugin", bf16, *sets], capture_output=True, text=True,
                                      env=self.environment(), timeout=120)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(fact, done.stderr)

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

    def test_launcher_in_c(self):
        folder = self.build("launcher_c")
        inventory = self.sources / "launcher_c/hosts.ini"
        out = run(self.sdk / "bin/dtrun-conformance", "--plugin", folder / "libdtrun_launcher_inventory.so", "--env",
                  f"SITE_INVENTORY={inventory}", env=self.environment())
        self.assertRegex(out, r"ok +Connect\.")
        self.assertRegex(out, r", 0 failed, \d+ skipped$")

        def plan(text, *more):
            file = self.write(text, "hosts.ini")
            return self.dtrun("--plugin-dir", folder, "--set", "cluster.from=inventory", *more, "plan", "--json", "true",
                              env=self.environment(SITE_INVENTORY=str(file)))

        def hosts(result):
            self.assert_ok(result)
            return [(host["name"], host["local_size"]) for host in json.loads(result.out)["hosts"]]

        result = plan("[a]\nnode1 slots=2 # two\n\n[b]\nnode2 slots=3\n")
        self.assertEqual(hosts(result), [("node1", 2), ("node2", 3)])
        self.assertEqual(hosts(plan("[a]\nnode1 slots=2\n[b]\nnode2 slots=3\n", "--set", "launcher.inventory.group=b")), [("node2", 3)])
        self.assertIn("'node1'", plan("node1\nnode1\n").err)
        self.assertIn("slots for 'node1'", plan("node1 slots=0\n").err)

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
