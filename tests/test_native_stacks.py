"""Native stacks of ranks that hang: the line of a program in C is named, and a tool that fails harms no rank."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from support.job import JobTest, main, until, until_gone

NATIVE = r"""
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void rest(void) {
  struct timespec t = {1000, 0};
  nanosleep(&t, 0);  // here
}
int main(void) {
  const int rank = atoi(getenv("RANK"));
  if (rank == 1) rest();
  if (rank == 2) poll(0, 0, -1);
  while (access(getenv("GO"), F_OK) != 0) usleep(10000);
  fprintf(stderr, "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 4000ms for recv operation to complete\n");
  return 1;
}
"""


class NativePrograms(JobTest):
    def hang(self, *flags):
        compiler = shutil.which("cc")
        tool = shutil.which("eu-stack") or shutil.which("gdb")
        if compiler is None or tool is None:
            self.skipTest("there is no C compiler here" if tool else "neither eu-stack nor gdb is here")
        source = self.folder / "hang.c"
        source.write_text(NATIVE)
        program = self.folder / "hang"
        subprocess.run([compiler, *flags, "-o", program, source], check=True)
        probe = subprocess.Popen(["sleep", "1000"])
        seen = subprocess.run([tool, "-p", str(probe.pid), *(["-batch"] if tool.endswith("gdb") else [])],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        probe.kill()
        probe.wait()
        if "not permitted" in seen.stderr + seen.stdout or "Permission denied" in seen.stderr:
            self.skipTest("ptrace is not allowed here")
        # Ranks that are about to be ended are not held for long: on a busy machine the tool may need another try.
        for attempt in range(8):
            go = self.folder / f"go{attempt}"
            job = self.start_ranks(3, program, sets=["backend.name=none", f"job.name=try{attempt}"], env=self.environment(GO=str(go)))
            until(lambda: all(self.sleeps(program, rank) for rank in (1, 2)), "ranks 1 and 2 to sleep")
            go.touch()
            result = job.finish()
            stacks = next(self.folder.glob(f"runs/try{attempt}/2*/stacks.txt")).read_text()
            if "took too long" not in stacks:
                break
        return result, stacks

    @staticmethod
    def sleeps(program, rank):
        """Whether that rank has reached its place."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                mine = (folder / "exe").readlink() == program
                if mine and f"\0RANK={rank}\0".encode() in (folder / "environ").read_bytes():
                    return "nanosleep" in (folder / "wchan").read_text() or (folder / "stat").read_text().split()[2] == "S"
            except OSError:
                pass
        return False

    def test_the_line_of_a_program_in_c_is_named(self):
        result, stacks = self.hang("-g", "-O0")
        line = NATIVE.split("// here")[0].count("\n") + 1
        self.assertRegex(result.err, rf"dtrun: job .*rank 1 .*nanosleep at hang\.c:{line}", str(result) + stacks)
        self.assert_verdict(result, exit_class="hang")
        self.assertRegex(stacks, r"native, by (eu-stack|gdb):\n(.*\n)*.*\brest\b")

    def test_its_function_where_it_was_built_without_debug_information(self):
        result, stacks = self.hang("-O0")
        self.assertRegex(result.err, r"dtrun: job .*rank 1 .*nanosleep \(.* rest\)", str(result) + stacks)


class ToolsThatFail(JobTest):
    """What stands in for eu-stack stops the rank that it looks at, and does not let it go on."""

    STALL = ["backend.name=none", "watch.stall=1s", "watch.on_stall=fail"]

    def tool(self, end):
        folder = self.folder / "tools"
        folder.mkdir(exist_ok=True)
        file = folder / "eu-stack"
        file.write_text(f"#!/bin/sh\nfor pid; do :; done\nkill -STOP $pid\n: > '{self.folder}/looked'\n{end}\n")
        file.chmod(0o755)
        return self.environment(PATH=f"{folder}:{os.environ['PATH']}")

    def test_a_rank_that_a_killed_tool_has_stopped_is_not_accused_of_it(self):
        for end, said in (("kill -KILL $$", "eu-stack was killed by signal 9"), ("exec sleep 1000", "eu-stack took too long")):
            with self.subTest(end=end):
                name = f"job.name={said[-1]}"
                result = self.ranks(2, "sleep", "1000", sets=[*self.STALL, name], env=self.tool(end))
                self.assertIn("no progress", result.err, str(result))
                self.assertNotIn("SIGSTOP", result.err, str(result))
                logs = next(self.folder.glob(f"runs/{said[-1]}/2*"))
                self.assertIn(said, (logs / "stacks.txt").read_text())
                verdict = json.loads((logs / "verdict.json").read_text())
                self.assertEqual(verdict["exit_class"], "hang", str(result))

    def test_a_tool_ends_with_the_process_of_dtrun_that_is_killed(self):
        for killed in ("agent", "guard"):
            with self.subTest(killed=killed):
                (self.folder / "looked").unlink(missing_ok=True)
                job = self.start_ranks(2, "sleep", "1000", sets=self.STALL, env=self.tool("sleep 1000 & exec sleep 1000"))
                until(lambda: (self.folder / "looked").exists(), "a look")
                pid = job.pid
                if killed == "agent":
                    pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
                os.kill(pid, signal.SIGKILL)
                job.finish()
                self.assertEqual(until_gone(self.mark), [])


if __name__ == "__main__":
    main()
