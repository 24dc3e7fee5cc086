"""A native rank that crashes: the verdict's first line has the function and the line of the program's own code."""

import contextlib
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from support.job import BUILD, SOURCE, JobTest, main

CRASHES = r"""
#include <stdlib.h>
#include <string.h>
%(include)s
struct model { double *weights; };
static void step(struct model *model, int rank, int ways) {
  char from[8] = {0};
  if (rank != 1) return;
  if (ways == 0) model->weights[0] = 1;  /* here: direct */
  if (ways == 1) memcpy(model->weights, from, strlen(getenv("RANK")) * 8);  /* here: in a library */
  if (ways == 2) abort();  /* here: abort */
}
int main(int argc, char **argv) {
  struct model model = {0};
  %(begin)s
  step(&model, atoi(getenv("RANK")), atoi(argv[1]));
  %(end)s
  return 0;
}
"""
SIGNALS = {0: r"11 \(SIGSEGV[,)]", 1: r"11 \(SIGSEGV[,)]", 2: r"6 \(SIGABRT[,)]"}
PLAIN = {"include": "", "begin": "", "end": ""}
API = {"include": "#include <dtrun/dtrun.h>", "begin": "if (dtrun_init(NULL) != DTRUN_OK) return 9;", "end": "dtrun_finalize();"}
MPI = {"include": "#include <mpi.h>", "begin": "MPI_Init(&argc, &argv);", "end": "MPI_Barrier(MPI_COMM_WORLD); MPI_Finalize();"}
LIBDTRUN = [f"-I{SOURCE}/sdk/include", f"-L{BUILD}/lib", "-ldtrun", f"-Wl,-rpath,{BUILD}/lib"]

reads_lines = unittest.skipUnless(shutil.which("eu-addr2line") or shutil.which("addr2line"), "neither eu-addr2line nor addr2line is here")


class KernelLog:
    """The faults that the kernel logs from now on; x86 kernels do, at most 10 in 5 s."""

    def __init__(self):
        try:
            self.records = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.records, 0, os.SEEK_END)
        except OSError as error:
            raise unittest.SkipTest(f"the kernel's log cannot be read here: {error}") from None

    def has(self, pid):
        text = ""
        with contextlib.suppress(BlockingIOError):
            while True:
                text += os.read(self.records, 8192).decode(errors="replace")
        os.close(self.records)
        return f"[{pid}]: segfault" in text


class NativeCrashes(JobTest):
    def build(self, parts, *flags, compiler="cc"):
        if shutil.which(compiler) is None:
            self.skipTest(f"there is no {compiler} here")
        source = self.folder / "train.c"
        source.write_text(CRASHES % parts)
        subprocess.run([compiler, "-g", "-O0", "-o", self.folder / "train", source, *flags], check=True)
        return self.folder / "train"

    def expect(self, result, way, place):
        """The first line has `place`, with the line of the program."""
        mark = {0: "here: direct", 1: "here: in a library", 2: "here: abort"}[way]
        line = next(i for i, text in enumerate((self.folder / "train.c").read_text().splitlines(), 1) if mark in text)
        self.assertRegex(result.err, rf"rank 1 was killed by signal {SIGNALS[way]}[^\n]*, {place} at train\.c:{line}\b")

    @reads_lines
    def test_that_uses_libdtrun_prints_its_stack(self):
        program = self.build(API, *LIBDTRUN)
        for way, place in {0: "in step", 1: "in step", 2: "in step"}.items():
            with self.subTest(way=way):
                result = self.ranks(2, program, way)
                self.assertRegex(result.err + result.out, rf"process \d+ got signal {6 if way == 2 else 11}; {'SIGABRT' if way == 2 else 'SIGSEGV'} in its thread \d+:")
                self.expect(result, way, place)

    @reads_lines
    @unittest.skipUnless((BUILD / "tests" / "open_mpi_program").exists(), "Open MPI was not found")
    def test_of_open_mpi_has_the_stack_that_its_library_prints(self):
        program = self.build(MPI, compiler="mpicc.openmpi" if shutil.which("mpicc.openmpi") else "mpicc")
        result = self.ranks(2, program, 0, sets=["backend.name=none"])
        self.expect(result, 0, "in step")

    @unittest.skipUnless(shutil.which("eu-stack") or shutil.which("gdb"), "neither eu-stack nor gdb is here")
    @unittest.skipIf(Path("/proc/sys/kernel/core_pattern").read_text().startswith(("|", "/")), "core files do not go to the working folder here")
    def test_that_leaves_a_core_file(self):
        program = self.build(PLAIN)
        for way, place in {0: "in step", 2: "in step"}.items():
            with self.subTest(way=way):
                result = self.ranks(2, "sh", "-c", f"ulimit -c unlimited; exec {program} {way}", sets=["backend.name=none"])
                if "core dumped" not in result.err:
                    self.skipTest("the limit of core files is 0 here")
                self.expect(result, way, place)

    @reads_lines
    def test_without_either_is_in_the_log_of_the_kernel(self):
        program = self.build(PLAIN)
        for _ in range(3):
            log = KernelLog()
            result = self.ranks(2, program, 0, sets=["backend.name=none"])
            if log.has(re.search(r"pid (\d+)", result.err)[1]):
                return self.expect(result, 0, "in step")
        self.skipTest("the kernel does not log this process's fault")

    def test_without_any_is_told_without_a_place(self):
        result = self.ranks(2, self.build(PLAIN), 2, sets=["backend.name=none"])
        self.assertRegex(result.err, rf"rank 1 was killed by signal {SIGNALS[2]}")
        self.assertNotIn("train.c", result.err)


if __name__ == "__main__":
    main()
