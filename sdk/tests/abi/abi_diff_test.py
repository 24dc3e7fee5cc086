"""The types of the ABI and of dtrun.h against baseline.xml, by libabigail's abidiff: what assertions on members cannot see,
such as a type behind a typedef or a parameter of a parameter.

    abi_diff_test.py HEADERS CC           fails on any difference
    abi_diff_test.py HEADERS CC --write   makes baseline.xml anew

Skipped (77) where abidiff is not installed or the machine is not an x86_64, of which the baseline is.
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
HEADERS, CC = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
BASELINE = HERE / "baseline.xml"

# What abidiff has to find, each in a header of its own.
CHANGES = {
    "an appended member": ("abi/backend.h", "*/\n} dtrun_support_query;",
                           "*/\n  int32_t added[2];\n} dtrun_support_query;"),
    "a type behind a typedef": ("abi/base.h", "typedef int32_t dtrun_status;", "typedef int64_t dtrun_status;"),
    "a parameter of a member": ("abi/launcher.h", "(*process)(void* context, const dtrun_process* process,",
                                "(*process)(void* context, dtrun_process* process,"),
    "an array's length": ("abi/error.h", "DTRUN_ERROR_DOMAIN_BYTES = 16", "DTRUN_ERROR_DOMAIN_BYTES = 24"),
    "a function of dtrun.h": ("dtrun.h", "dtrun_dtype_size(int32_t dtype)", "dtrun_dtype_size(uint32_t dtype)"),
    "the plugin's entry": ("abi/plugin.h", "typedef dtrun_status (*dtrun_plugin_entry)(",
                           "typedef void (*dtrun_plugin_entry)("),
}


def run(*command, **more):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


def build_probe(headers, folder):
    declared = re.findall(r"^DTRUN_API [^;(]*?\b(dtrun_\w+)\(", (headers / "dtrun/dtrun.h").read_text(), re.MULTILINE)
    (folder / "probe_functions.inc").write_text("".join(f"PROBE_FUNCTION({name})\n" for name in declared))
    built = run(CC, "-std=gnu11", "-g", "-fPIC", "-shared", f"-I{headers}", f"-I{HERE.parent}", f"-I{folder}",
                "probe.c", "-o", folder / "probe.so", cwd=HERE)
    if built.returncode != 0:
        raise AssertionError(built.stdout)
    return folder / "probe.so"


def write():
    with tempfile.TemporaryDirectory() as folder:
        made = run("abidw", "--no-show-locs", "--no-comp-dir-path", "--no-corpus-path", "--no-parameter-names",
                   "--type-id-style", "hash", build_probe(HEADERS, pathlib.Path(folder)))
    if made.returncode != 0:
        sys.exit(made.stdout)
    BASELINE.write_text(made.stdout)


class AbiDiff(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def differences(self, headers):
        return run("abidiff", "--harmless", BASELINE, build_probe(headers, self.folder))

    def test_the_headers_have_the_types_of_the_baseline(self):
        found = self.differences(HEADERS)
        self.assertEqual(found.returncode, 0, f"{found.stdout}\nA change of the ABI: docs/development.md, 'Changes to the plugin ABI', "
                                              "says what it takes and how to renew sdk/tests/abi/baseline.xml.")

    def test_a_change_is_found(self):
        for name, (header, old, new) in CHANGES.items():
            with self.subTest(name=name):
                self.setUp()
                shutil.copytree(HEADERS, self.folder / "include")
                file = self.folder / "include/dtrun" / header
                text = file.read_text()
                self.assertEqual(text.count(old), 1, f"{header}: {old}")
                file.write_text(text.replace(old, new))
                found = self.differences(self.folder / "include")
                self.assertTrue(found.returncode & 4, found.stdout)


if __name__ == "__main__":
    for reason in [f"{tool} is missing: `tools/setup test` installs abigail-tools" for tool in ("abidiff", "abidw") if not shutil.which(tool)]:
        print(f"skipped, because {reason}")
        sys.exit(77)
    if platform.machine() != "x86_64":
        print("skipped, because the baseline is of an x86_64")
        sys.exit(77)
    if sys.argv[3:] == ["--write"]:
        write()
    else:
        unittest.main(argv=sys.argv[:1])
