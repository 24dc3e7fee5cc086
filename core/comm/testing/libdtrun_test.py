"""libdtrun needs only the given libraries, and programs ask for the versions of its symbols.

usage: libdtrun_test.py READELF CC LIBRARY HEADERS NEEDED...
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

READELF, CC = sys.argv[1:3]
LIBRARY = pathlib.Path(sys.argv[3])
HEADERS, NEEDED = sys.argv[4], set(sys.argv[5:])

PROGRAM = """
#include <stdio.h>
#include "dtrun/dtrun.h"
int main(void) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  if (dtrun_init(&error) != DTRUN_OK) return 1;
  printf("rank %d of %d\\n", (int)dtrun_rank(), (int)dtrun_world_size());
  dtrun_finalize();
  return 0;
}
"""
# A program of the device draft.
DEVICES = """
#include "dtrun/device.h"
int main(void) { return dtrun_comm_orders_on_host(NULL, DTRUN_DEVICE_CUDA); }
"""


def call(*command, **more):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **more)


class Libdtrun(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def build(self, text, name, *flags):
        (self.folder / f"{name}.c").write_text(text)
        made = call(CC, f"-I{HEADERS}", self.folder / f"{name}.c", "-o", self.folder / name, *flags)
        self.assertEqual(made.returncode, 0, made.stdout)
        return self.folder / name

    def versions(self, program):
        return set(re.findall(r"\bDTRUN_[\w.]+", call(READELF, "-V", "-W", program).stdout))

    def assert_runs(self, program):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DTRUN_")}
        done = call(program, env={**environment, "LD_LIBRARY_PATH": LIBRARY.parent}, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "rank 0 of 1\n"))

    def test_it_needs_no_other_library(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", call(READELF, "-d", LIBRARY).stdout))
        others = {name for name in needed if not name.startswith(("ld-linux", *NEEDED))}
        self.assertEqual(others, set())

    def test_a_program_of_today_asks_for_versions(self):
        program = self.build(PROGRAM, "today", LIBRARY)
        self.assertEqual(self.versions(program), {"DTRUN_1.0"})
        self.assert_runs(program)

    def test_a_program_of_the_device_draft_asks_for_that_draft(self):
        self.assertEqual(self.versions(self.build(DEVICES, "devices", LIBRARY)), {"DTRUN_DEVICE_DRAFT_1"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
