"""Routes by kind of memory: which backend carries the host's and which a device's, and what header, plan and ranks see of it.

The nccl plugin runs over its fake libraries; slices in CUDA_VISIBLE_DEVICES stand for GPUs, as no file names those."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import unittest
from ctypes.util import find_library
from pathlib import Path

from support.cluster import ClusterTest, open_lab
from support.job import BUILD, JobTest, main
from support.lab import why_not
from test_p2p import FAKES, Faked

NO_NCCL = "/lib/x86_64-linux-gnu/libm.so.6"  # a library, and another one
FAKE = BUILD / "tests" / "fake" / "libdtrun_backend_fake.so"
SHOW = ["sh", "-c", 'echo "$DTRUN_BACKEND $DTRUN_DEVICE_BACKEND $DTRUN_STAGING"; echo "devices $DTRUN_DEVICES"']
NO_GPUS = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
SLICES = {"CUDA_VISIBLE_DEVICES": "MIG-1111,MIG-2222"}


def backend_file(name):
    return next(path for path in BUILD.rglob(f"libdtrun_backend_{name}.so"))


def with_plugin(test):
    """A folder with a device plugin, as far as planning is concerned: it is found by its file's name and loaded by ranks only."""
    folder = test.folder / "device-plugins"
    folder.mkdir(exist_ok=True)
    shutil.copy(backend_file("gloo"), folder / "libdtrun_device_cuda.so")
    return ["--plugin-dir", folder]


class DeviceBackend(Faked):
    def plan_of(self):
        return json.loads(next(self.folder.glob("runs/*/2*/plan.json")).read_text())

    def test_nccl_alone_gets_a_backend_for_host_memory(self):
        result = self.run_with("", "backend.gloo.interface=lo", command=SHOW)
        self.assert_ok(result)
        self.golden_lines(result.err, "  routes     cpu memory: shm")
        self.golden_lines(result.err, "cuda memory: nccl ")
        plan = self.plan_of()
        self.assertIn(plan["backend"]["name"], ("ucx", "gloo"))
        self.assertEqual(plan["device_backend"]["name"], "nccl")
        self.assertEqual([route["memory"] for route in plan["routes"]], ["cpu", "cuda"])
        self.assertEqual(plan["processes"][0]["env"]["DTRUN_LOCAL"], "shm")
        self.assertIn(f"[0] {plan['backend']['name']} nccl auto", result.out)
        told = self.dtrun("explain", "latest").out
        self.golden_lines(told, "route ", "cuda memory: nccl ")

    @unittest.skipIf(find_library("nccl"), "the loader of this machine has an NCCL")
    def test_what_pip_has_installed_for_the_first_python_on_the_path_is_found(self):
        version = Path(sys.executable).resolve().name
        for wheel, file in (("nccl", "libnccl.so.2"), ("cuda_runtime", "libcudart.so.13")):
            folder = self.folder / "venv/lib" / version / "site-packages/nvidia" / wheel / "lib"
            folder.mkdir(parents=True)
            (folder / file).symlink_to(FAKES / file)
        (self.folder / "venv/bin").mkdir()
        (self.folder / "venv/bin/python3").symlink_to(sys.executable)
        environment = {"DTRUN_FAKE_DEVICES": "2", "XDG_CACHE_HOME": str(self.cache)}
        sets = ["backend.name=nccl", "backend.gloo.interface=lo"]
        result = self.ranks(2, *SHOW, sets=sets, env=self.environment(**environment, PATH=f"{self.folder}/venv/bin:{os.environ['PATH']}"))
        self.assert_ok(result)
        self.golden_lines(result.err, "cuda memory")
        result = self.ranks(2, *SHOW, sets=sets, env=self.environment(**environment))
        self.assert_user_error(result, "NCCL", "LD_LIBRARY_PATH", "backend.nccl.library")

    def test_a_library_that_is_no_nccl_is_called_so(self):
        result = self.run_with("", f"backend.nccl.library={NO_NCCL}")
        self.golden_error(result, f"'{NO_NCCL}'", "'ncclGetVersion'; set backend.nccl.library")

    def test_each_kind_of_memory_may_be_named(self):
        sets = ["backend.name=cpu:gloo,cuda:nccl", f"backend.nccl.library={FAKES}/libnccl.so.2",
                f"backend.nccl.cuda_library={FAKES}/libcudart.so.13", "backend.gloo.interface=lo"]
        env = self.environment(DTRUN_FAKE_DEVICES="2", XDG_CACHE_HOME=str(self.cache))
        result = self.ranks(2, *SHOW, sets=sets, env=env)
        self.assert_ok(result)
        self.assertIn("[1] gloo nccl auto\n", result.out)
        env = self.plan_of()["processes"][0]["env"]
        self.assertEqual(json.loads(env["DTRUN_BACKEND_OPTIONS"]) != json.loads(env["DTRUN_DEVICE_BACKEND_OPTIONS"]), True)
        self.assertIn("DTRUN_DEVICE_BACKEND_FILE_ID", env)
        shown = self.dtrun("plan", *(word for one in sets for word in ("--set", one)), "--", "true",
                           env=self.environment(DTRUN_FAKE_DEVICES="2", XDG_CACHE_HOME=str(self.cache)))
        self.assertIn("  cuda memory: nccl ", shown.out)
        self.assertIn("DTRUN_DEVICE_BACKEND_OPTIONS=(backend.options)", shown.out)

    def test_of_a_list_each_kind_takes_the_first_that_moves_it(self):
        result = self.ranks(2, *SHOW, sets=["backend.name=nccl,gloo", f"backend.nccl.library={FAKES}/libnccl.so.2",
                                            f"backend.nccl.cuda_library={FAKES}/libcudart.so.13"],
                            env=self.environment(DTRUN_FAKE_DEVICES="2", XDG_CACHE_HOME=str(self.cache)))
        self.assert_ok(result)
        self.assertIn("[0] gloo nccl auto\n", result.out)

    def test_a_pin_holds_for_every_file(self):
        gloo, nccl = (hashlib.sha256(backend_file(name).read_bytes()).hexdigest() for name in ("gloo", "nccl"))
        self.assert_ok(self.run_with("", f"backend.sha256={gloo},{nccl}", "plugins.path="))
        result = self.run_with("", f"backend.sha256={nccl}")
        self.assert_user_error(result, f"sha256 {nccl}", 'backend.name = "cpu:gloo,cuda:nccl"')

    def test_one_that_finds_no_device_ends_the_job_before_it_starts(self):
        env = self.environment(DTRUN_FAKE_DEVICES="0", XDG_CACHE_HOME=str(self.cache), **NO_GPUS)
        for name in ("nccl", "cpu:gloo,cuda:nccl"):
            for flags in ([], ["-H", "localhost:2"]):
                with self.subTest(name, flags=flags):
                    sets = [f"backend.name={name}", f"backend.nccl.library={FAKES}/libnccl.so.2",
                            f"backend.nccl.cuda_library={FAKES}/libcudart.so.13"]
                    result = self.ranks(2, *SHOW, sets=sets, env=env, flags=flags)
                    self.assert_user_error(result, "--set backend.name: ", "nvidia-smi")
                    self.assertEqual(list(self.folder.glob("runs/*/2*")), [])

    def test_one_that_moves_no_host_memory_is_not_its_backend(self):
        result = self.run_with("", "backend.name=cpu:nccl")
        self.golden_error(result, "backend.name")


class Staging(JobTest):
    def start_with(self, *sets, plugin=True, env=SLICES, command=SHOW):
        return self.ranks(2, *command, sets=sets, env=self.environment(**env), flags=with_plugin(self) if plugin else [])

    def test_a_gpu_host_says_in_a_line_where_its_memory_goes(self):
        result = self.start_with("backend.name=gloo")
        self.assert_ok(result)
        self.golden_lines(result.err, "cuda memory")
        self.assertIn("[0] gloo  auto", result.out)
        self.assertRegex(result.out, r"\[0\] devices cuda=/.*/libdtrun_device_cuda.so#")

    def test_a_list_falls_back_to_it_with_the_reason(self):
        result = self.start_with("backend.name=nccl,gloo", f"backend.nccl.library={NO_NCCL}", env=NO_GPUS)
        self.assert_ok(result)
        self.golden_lines(result.err, "cuda memory")
        self.assertIn("[1] gloo  auto", result.out)

    @unittest.skipUnless((FAKES / "libcudart.so.13").exists(), "the nccl plugin's tests are not built")
    def test_a_library_that_finds_no_device_falls_back_too(self):
        result = self.start_with("backend.name=nccl,gloo", f"backend.nccl.library={FAKES}/libnccl.so.2",
                                 f"backend.nccl.cuda_library={FAKES}/libcudart.so.13", env={**NO_GPUS, "DTRUN_FAKE_DEVICES": "0"})
        self.assert_ok(result)
        self.golden_lines(result.err, "cuda memory")

    def test_off_refuses_what_would_need_it(self):
        result = self.start_with("backend.name=nccl,gloo", f"backend.nccl.library={NO_NCCL}", "backend.staging=off")
        self.golden_error(result, '--set backend.staging: "off"', "nccl", '"auto"')
        result = self.start_with("backend.name=cuda:gloo", "backend.staging=off")
        self.golden_error(result, "backend.staging", "backend.name")
        result = self.start_with("backend.name=gloo", "backend.staging=off")
        self.assert_ok(result)
        self.golden_lines(result.err, "cuda memory", 'backend.staging is "off"')

    def test_a_named_device_may_be_staged(self):
        result = self.start_with("backend.name=cpu:gloo,cuda:gloo", env=NO_GPUS)
        self.assert_ok(result)
        self.golden_lines(result.err, "cuda memory")
        self.assertIn("[0] gloo  auto", result.out)

    @unittest.skipIf(list(BUILD.rglob("libdtrun_device_rocm.so")), "there is a device plugin of that kind")
    def test_a_named_device_without_its_plugin_is_refused(self):
        result = self.start_with("backend.name=rocm:gloo", env=NO_GPUS)
        self.golden_error(result, "'rocm'", "libdtrun_device_rocm.so")

    def test_an_unpinned_device_plugin_is_not_offered(self):
        pin = hashlib.sha256(backend_file("gloo").read_bytes()).hexdigest()
        result = self.start_with("backend.name=gloo", f"backend.sha256={pin}")  # the plugin is a copy of that file
        self.golden_lines(result.err, "cuda memory")
        folder = self.folder / "device-plugins"
        other = folder / "libdtrun_device_cuda.so"
        other.write_bytes(other.read_bytes() + b"x")
        result = self.ranks(2, *SHOW, sets=["backend.name=gloo", f"backend.sha256={pin}"], env=self.environment(**SLICES),
                            flags=["--plugin-dir", folder])
        self.assert_ok(result)
        self.golden_lines(result.err, "backend.sha256", "'cuda'")
        self.assertIn("[0] devices \n", result.out)


class WithoutDevices(JobTest):
    def test_nothing_is_said_and_ranks_know_the_plugin(self):
        for name in ("gloo", "auto"):
            result = self.ranks(2, *SHOW, sets=[f"backend.name={name}"], env=self.environment(**NO_GPUS), flags=with_plugin(self) + ["-v"])
            self.assert_ok(result)
            for rank in range(2):
                self.assertRegex(result.out, rf"\[{rank}\] \w+  auto\n")
                self.assertRegex(result.out, rf"\[{rank}\] devices cuda=/.*/libdtrun_device_cuda.so#")
            self.assertNotIn("routes", result.err)
            self.assertNotIn("cuda memory", result.err)


class Names(JobTest):
    def test_what_is_wrong_says_what_to_write(self):
        for name, fact in (("cud:nccl", "'cuda'"), ("gloo,cuda:nccl", '"cpu:gloo,cuda:nccl"'), ("cuda:nccl,xpu:ucx", "xpu"),
                           ('["cpu:gloo", "nccl"]', '["nccl", "gloo"]'), ("cpu:nccl", '"cpu:gloo,cuda:nccl"'), ("hip:nccl", "cuda:nccl"),
                           ("cpu:golo,cuda:nccl", "'gloo'")):
            with self.subTest(name):
                self.golden_error(self.dtrun("--set", f"backend.name={name}", "--", "true"), "backend.name", fact)
        self.assert_user_error(self.dtrun("--set", "backend.staging=on", "--", "true"), "backend.staging", '"auto"', '"off"')

    @unittest.skipUnless(FAKE.is_file(), "the fake accelerator is not built")
    def test_a_device_that_a_backend_does_not_move_is_refused(self):
        result = self.dtrun("plan", "--plugin-dir", FAKE.parent, "--set", "backend.name=cuda:fake", "--", "true")
        self.golden_error(result, "backend.name", "fake", "cuda")
        result = self.dtrun("plan", "--plugin-dir", FAKE.parent, "--set", "backend.name=fake:fake", "--", "true")
        self.assert_ok(result)
        self.assertIn("fake memory: fake\n", result.out)

    def test_own_gpus_keep_the_words_of_the_list(self):
        show = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]
        result = self.ranks("gpu", *show, sets=["job.gpu_visibility=own"], env=self.environment(**SLICES))
        self.assert_ok(result)
        self.assertEqual(sorted(result.out.splitlines()), ["[0] MIG-1111", "[1] MIG-2222"])
        result = self.ranks(3, *show, sets=["job.gpu_visibility=own"], env=self.environment(**SLICES))
        self.assert_user_error(result, "3 ranks", "2 are visible (MIG-1111,MIG-2222)")


class Doctor(Faked):
    def test_it_says_what_would_carry_which_memory(self):
        config = self.write('[job]\ncommand = ["true"]\n[backend]\nname = "cpu:gloo,cuda:nccl"\n[backend.nccl]\n'
                            f'library = "{FAKES}/libnccl.so.2"\ncuda_library = "{FAKES}/libcudart.so.13"\n')
        env = self.environment(DTRUN_FAKE_DEVICES="2", XDG_CACHE_HOME=str(self.cache))
        result = self.dtrun("doctor", config, env=env)
        self.golden_lines(result.out, "ok ", "routes ")
        broken = self.write(config.read_text().replace(f"{FAKES}/libnccl.so.2", NO_NCCL), "broken.toml")
        result = self.dtrun("doctor", broken, env=env)
        self.assertEqual(result.code, 1, str(result))
        self.assertRegex(result.out, r"problem +backend nccl +")


class ThreeHosts(ClusterTest):
    @classmethod
    def setUpClass(cls):
        if why_not() or not (FAKES / "libcudart.so.13").exists():
            raise unittest.SkipTest(why_not() or "the nccl plugin's tests are not built")
        open_lab()

    def start_with(self, name, *flags):
        config = self.config(SHOW, more=f'[backend]\nname = {name}\n[backend.nccl]\nlibrary = "{FAKES}/libnccl.so.2"\n'
                                        f'cuda_library = "{FAKES}/libcudart.so.13"\n')
        environment = self.environment(DTRUN_FAKE_DEVICES="2", XDG_CACHE_HOME="/proc/none", **NO_GPUS)
        return self.start_on(0, *flags, "--config", config, env=environment).finish()

    def hide_nccl(self, host):
        library = str((FAKES / "libnccl.so.2").resolve())
        enter = self.lab.enter(host)
        subprocess.run([*enter, "mount", "--bind", "/dev/null", library], check=True)
        self.addCleanup(subprocess.run, [*enter, "umount", library], check=True)

    def test_both_backends_are_asked_on_every_host(self):
        for name in ('"cpu:gloo,cuda:nccl"', '"nccl"'):
            with self.subTest(name):
                result = self.start_with(name)
                self.assert_ok(result)
                self.assertRegex(result.err, r"routes +cpu memory: shm\+(gloo|ucx) on eth0")
                self.assertRegex(result.err, r"cuda memory: nccl \(NCCL")
                lines = {line.split(maxsplit=1)[1] for line in result.out.splitlines() if "devices" not in line}
                self.assertRegex(" ".join(lines), r"^(gloo|ucx) nccl auto$")

    def test_one_host_that_cannot_decides_for_all(self):
        self.hide_nccl(1)
        result = self.start_with('["nccl", "gloo"]', *with_plugin(self))
        self.assert_ok(result)
        self.golden_lines(result.err, "cuda memory", "node1")
        result = self.start_with('"cpu:gloo,cuda:nccl"')
        self.assert_user_error(result, "nccl", "on node1: ")


if __name__ == "__main__":
    main()
