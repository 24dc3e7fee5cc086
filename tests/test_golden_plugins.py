"""Plugins that were compiled long ago, in today's dtrun: sdk/tests/golden/ABI/*.so, and what `make` there would make today.

While the major of the ABI is 0 a plugin loads only in its own minor, so those of an earlier one have to be refused.
"""

import platform
import re
import shutil
import subprocess

from support.job import BUILD, RANK, SOURCE, JobTest, main, skip

GOLDEN = SOURCE / "sdk/tests/golden"
BASE = SOURCE / "sdk/include/dtrun/abi/base.h"
ABI = ".".join(re.search(rf"^#define DTRUN_ABI_{part} (\d+)u$", BASE.read_text(), re.M)[1] for part in ("MAJOR", "MINOR"))
KINDS = ("backend", "launcher")
SIZES = (-8, 0, 64)  # bytes that the host's structs are longer


def loads(abi):
    """Whether today's dtrun loads plugins of `abi`, without its third number."""
    (major, minor), (our_major, our_minor) = (map(int, text.split(".")) for text in (abi, ABI))
    return major == our_major and (minor == our_minor if major == 0 else minor <= our_minor)


class Golden(JobTest):
    def drive(self, plugin, delta):
        return subprocess.run([BUILD / "tests/golden_driver", plugin, str(delta)], capture_output=True, text=True, timeout=60)

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
            self.assertIn(f"ABI {abi}", job.err)
            self.assertIn(f"ABI {ABI}", job.err)

    def test_those_of_each_abi_work_or_are_refused(self):
        folders = [folder for folder in GOLDEN.iterdir() if re.fullmatch(r"\d+\.\d+", folder.name)]
        self.assertIn(ABI, [folder.name for folder in folders], "sdk/tests/golden/make makes the plugins of this ABI")
        for folder in folders:
            with self.subTest(folder.name):
                self.assert_works(folder) if loads(folder.name) else self.assert_refused(folder, folder.name)

    def test_another_minor_is_refused_while_the_major_is_0(self):
        major, minor = map(int, ABI.split("."))
        self.assertFalse(loads(f"0.{minor - 1}") if major == 0 else loads(f"{major}.{minor + 1}"))
        other = minor - 1 if major == 0 else minor + 1
        shutil.copytree(SOURCE / "sdk/include", self.folder / "include")
        base = self.folder / "include/dtrun/abi/base.h"
        base.write_text(base.read_text().replace(f"MINOR {minor}u", f"MINOR {other}u"))
        self.assert_refused(self.compile("-DDTRUN_ABI_REQUIRED=DTRUN_ABI_MINOR", headers=self.folder / "include"), f"{major}.{other}")

    def test_they_are_described(self):
        for kind in KINDS:
            told = self.dtrun("plugins", "describe", "golden", "--kind", kind, "--plugin-dir", GOLDEN / ABI)
            self.assert_ok(told)
            self.golden_lines(told.out, f"{kind} golden 0.9.0")

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
            self.assertNotEqual(self.drive(plugin, -8).returncode, 0, f"{kind}: read behind the end")
        self.assertNotEqual(self.drive(folder / "libdtrun_backend_golden.so", 64).returncode, 0, "wrote behind its own")


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        skip("the golden plugins are compiled for x86_64")
    if shutil.which("cc") is None:
        skip("no C compiler is installed")
    main()
