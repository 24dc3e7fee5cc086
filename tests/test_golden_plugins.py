"""Plugins that were compiled long ago, in today's dtrun: sdk/tests/golden/ABI/*.so, and what `make` there would make today.

A plugin loads in its own major, in every minor that is not older than what it requires; those of another major have to be
refused. Each folder also has the sources of its plugins.
"""

import json
import platform
import re
import shutil
import subprocess
import sys

from support.job import BUILD, RANK, SOURCE, JobTest, main, skip

GOLDEN = SOURCE / "sdk/tests/golden"
sys.path.insert(0, str(GOLDEN))

from appendix import append  # noqa: E402

BASE = SOURCE / "sdk/include/dtrun/abi/base.h"
ABI = ".".join(re.search(rf"^#define DTRUN_ABI_{part} (\d+)u$", BASE.read_text(), re.M)[1] for part in ("MAJOR", "MINOR"))
KINDS = ("backend", "launcher")
SIZES = (0, 64)  # bytes that the host's structs are longer


def loads(abi):
    """Whether today's dtrun loads plugins of `abi`, without its third number."""
    (major, minor), (our_major, our_minor) = (map(int, text.split(".")) for text in (abi, ABI))
    return major == our_major and minor <= our_minor


class GoldenTest(JobTest):
    def drive(self, plugin, delta, driver=BUILD / "tests/golden_driver"):
        return subprocess.run([driver, plugin, str(delta)], capture_output=True, text=True, timeout=60)

    def compile(self, *flags, headers=SOURCE / "sdk/include"):
        """The plugins of today's sources."""
        folder = self.folder / "made"
        folder.mkdir()
        for kind in KINDS:
            subprocess.run(["cc", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{headers}", *flags, GOLDEN / f"{kind}.c",
                            "-o", folder / f"libdtrun_{kind}_golden.so"], check=True)
        return folder

    def assert_works(self, folder):
        job = self.ranks(2, RANK, sets=["backend.name=golden", "launcher.name=golden", "comm.local=none"],
                         flags=["--plugin-dir", folder])
        self.assert_ok(job)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 over golden: sum 3", job.out)

    def assert_refused(self, folder, abi):
        for kind in KINDS:
            job = self.ranks(2, RANK, sets=[f"{kind}.name=golden", "comm.local=none"], flags=["--plugin-dir", folder])
            self.assertNotEqual(job.code, 0)
            self.assertIn(f"ABI {abi.split('.')[0]}", job.err)
            self.assertIn(f"ABI {ABI}", job.err)


class Golden(GoldenTest):
    def test_those_of_each_abi_work_or_are_refused(self):
        folders = [folder for folder in GOLDEN.iterdir() if re.fullmatch(r"\d+\.\d+", folder.name)]
        self.assertIn(ABI, [folder.name for folder in folders], "sdk/tests/golden/make makes the plugins of this ABI")
        for folder in folders:
            with self.subTest(folder.name):
                self.assert_works(folder) if loads(folder.name) else self.assert_refused(folder, folder.name)

    def test_a_plugin_that_requires_a_later_minor_is_refused(self):
        major, minor = map(int, ABI.split("."))
        other = minor + 1
        shutil.copytree(SOURCE / "sdk/include", self.folder / "include")
        base = self.folder / "include/dtrun/abi/base.h"
        base.write_text(base.read_text().replace(f"MINOR {minor}u", f"MINOR {other}u"))
        self.assert_refused(self.compile(f"-DDTRUN_ABI_REQUIRED={other}", headers=self.folder / "include"), f"{major}.{other}")

    def test_they_are_described(self):
        for kind in KINDS:
            told = self.dtrun("plugins", "describe", "golden", "--kind", kind, "--plugin-dir", GOLDEN / ABI)
            self.assert_ok(told)
            self.golden_lines(told.out, f"{kind} golden 1.0.0")

    def test_structs_of_other_sizes(self):
        for folder in (GOLDEN / ABI, self.compile()):
            for kind in KINDS:
                for delta in SIZES:
                    with self.subTest(folder=folder, kind=kind, delta=delta):
                        done = self.drive(folder / f"libdtrun_{kind}_golden.so", delta)
                        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_plugin_that_trusts_sizes_is_found(self):
        folder = self.compile("-DGOLDEN_TRUSTS_SIZES")
        for kind in KINDS:
            plugin = folder / f"libdtrun_{kind}_golden.so"
            self.assertEqual(self.drive(plugin, 0).returncode, 0)
        self.assertNotEqual(self.drive(folder / "libdtrun_backend_golden.so", 64).returncode, 0, "wrote behind its own")


class ALaterMinor(GoldenTest):
    """What docs/abi.md says is appended is appended to a copy of the headers: each side is tried old and new."""

    def setUp(self):
        super().setUp()
        self.headers = self.folder / "later"
        append(SOURCE / "sdk/include", self.headers)
        self.driver = self.folder / "later_driver"
        subprocess.run(["cc", "-std=gnu11", f"-I{self.headers}", GOLDEN / "golden_driver.c", "-o", self.driver, "-ldl"], check=True)

    def assert_drives(self, folder, driver, deltas):
        for kind in KINDS:
            for delta in deltas:
                with self.subTest(kind=kind, delta=delta):
                    done = self.drive(folder / f"libdtrun_{kind}_golden.so", delta, driver)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_an_old_plugin_in_a_new_host(self):
        self.assert_drives(GOLDEN / ABI, self.driver, SIZES)

    def test_a_new_plugin_in_an_old_host(self):
        made = self.compile(headers=self.headers)
        self.assert_drives(made, BUILD / "tests/golden_driver", (0,))
        self.assert_works(made)

    def test_a_new_plugin_in_a_new_host(self):
        self.assert_drives(self.compile(headers=self.headers), self.driver, SIZES)

    def test_the_host_of_0_9_finds_no_entry_in_plugins_of_today(self):
        done = self.drive(GOLDEN / ABI / "libdtrun_backend_golden.so", 0, GOLDEN / "0.9/golden_driver")
        self.assertEqual(done.returncode, 1)
        self.assertIn("symbol != NULL", done.stderr)
        self.assertEqual(self.drive(GOLDEN / "0.9/libdtrun_backend_golden.so", 0, GOLDEN / "0.9/golden_driver").returncode, 0)


class AnotherDraftOfDevices(GoldenTest):
    """Plugins that were compiled with headers of another DTRUN_DEVICE_DRAFT: rule V13."""

    def setUp(self):
        super().setUp()
        self.theirs = self.folder / "other_draft"
        shutil.copytree(SOURCE / "sdk/include", self.theirs)
        file = self.theirs / "dtrun/abi/device.h"
        self.draft = int(re.search(r"DTRUN_DEVICE_DRAFT (\d+)u", file.read_text())[1])
        file.write_text(re.sub(r"(DTRUN_DEVICE_DRAFT) \d+u", rf"\1 {self.draft + 1}u", file.read_text()))

    def build(self, source, name, headers):
        folder = self.folder / f"with_{headers.name}"
        folder.mkdir(exist_ok=True)
        subprocess.run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{headers}",
                        f"-I{GOLDEN}", source, "-o", folder / f"libdtrun_{name}.so", "-lpthread"], check=True)
        return folder

    def test_a_backend_moves_host_memory_and_has_no_device_kinds(self):
        text = (GOLDEN / "backend.c").read_text()
        says_nothing = """static dtrun_status launch_info(dtrun_instance* self, const dtrun_launch_query* query,
            const dtrun_launch_sink* sink, dtrun_error* err) { (void)self, (void)query, (void)sink, (void)err; return DTRUN_OK; }
            """
        for old, new in (("dtrun_status dtrun_plugin_entry_v1(", says_nothing + "dtrun_status dtrun_plugin_entry_v1("),
                         ("backend.query_caps =", "backend.launch_info = launch_info;\n  backend.query_caps ="),
                         ("1u << DTRUN_DEVICE_HOST", "1u << DTRUN_DEVICE_HOST | 1u << DTRUN_DEVICE_CUDA"),
                         ("table.init = init;", "table.init = init;\n  table.device_draft = DTRUN_DEVICE_DRAFT;")):
            self.assertEqual(text.count(old), 1)
            text = text.replace(old, new)
        source = self.write('#include "dtrun/abi/device.h"\n' + text, "backend.c")
        for headers, kinds in ((SOURCE / "sdk/include", "cuda"), (self.theirs, None)):
            with self.subTest(headers=headers.name):
                folder = self.build(source, "backend_golden", headers)
                described = self.dtrun("plugins", "describe", "golden", "--kind", "backend", "--plugin-dir", folder, "--json")
                self.assert_ok(described)
                self.assertEqual(json.loads(described.out)["here"].get("device_kinds"), kinds)
                job = self.ranks(2, RANK, sets=["backend.name=golden", "comm.local=none"], flags=["--plugin-dir", folder])
                self.assert_ok(job)
                self.assertIn("rank 1 of 2 over golden: sum 3", job.out)

    def test_a_device_plugin_is_refused_with_both_numbers(self):
        source = SOURCE / "sdk/conformance/broken/device.c"
        for headers, refused in ((SOURCE / "sdk/include", False), (self.theirs, True)):
            with self.subTest(headers=headers.name):
                folder = self.build(source, "device_sound", headers)
                described = self.dtrun("plugins", "describe", "sound", "--kind", "device", "--plugin-dir", folder)
                self.assertEqual(described.code != 0, refused, str(described))
                if refused:
                    for number in (self.draft + 1, self.draft):
                        self.assertIn(f"draft {number}", described.out + described.err)


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        skip("the golden plugins are compiled for x86_64")
    if shutil.which("cc") is None:
        skip("no C compiler is installed")
    main()
