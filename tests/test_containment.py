"""A job in a control group of its own: ended as a whole, and gone with the job."""

import os
import signal
import sys
import unittest
from pathlib import Path

from support.job import JobTest, main, processes_with, until


def own_group():
    """The folder of the test's own cgroup v2, or None."""
    groups = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if groups and after.startswith("cgroup2 "):
            top, point = before.split()[3:5]
            if groups[0].startswith(top):
                return Path(point) / groups[0][len(top):].lstrip("/")
    return None


GROUP = own_group()
MAY = GROUP is not None and os.access(GROUP, os.W_OK) and os.access(GROUP / "cgroup.procs", os.W_OK)

# Forks as fast as it can, each process in a session of its own.
CHAINS = """
import os, sys
for _ in range(20):
    if os.fork() == 0:
        while True:
            if os.getpid() != os.getsid(0):
                os.setsid()
            if os.fork() != 0:
                os._exit(0)
print("up", flush=True)
os.read(0, 1)
"""


def groups_with(text):
    return [entry.name for entry in GROUP.iterdir() if entry.name.startswith("dtrun-") and text in entry.name]


@unittest.skipUnless(MAY, "no control group may be made here")
class Containment(JobTest):
    def group_of(self, pid):
        return Path(f"/proc/{pid}/cgroup").read_text().rpartition("0::")[2].splitlines()[0].rpartition("/")[2]

    def need_memory(self):
        if "memory" not in (GROUP / "cgroup.controllers").read_text():
            self.skipTest("the memory controller of cgroup v2 is not available here; tools/vm has one")

    def skip_beside_others(self, result):
        if "is in the same group as dtrun" in result.err:
            self.skipTest(result.err)

    def start_sleepers(self):
        """The job, its agent, and the group of its ranks."""
        job = self.start_ranks(2, "sh", "-c", "setsid sleep 1000 & echo $$; exec sleep 1000")
        until(lambda: all(job.log(rank).endswith("\n") for rank in range(2)), "both ranks")
        [agent] = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        groups = {self.group_of(int(job.log(rank))) for rank in range(2)}
        self.assertEqual(len(groups), 1)
        return job, int(agent), groups.pop()

    def test_ranks_and_what_they_start_are_in_a_group_that_goes_with_the_job(self):
        job, _, group = self.start_sleepers()
        members = {int(pid) for pid in (GROUP / group / "cgroup.procs").read_text().split()}
        ranks = {int(job.log(rank)) for rank in range(2)}
        self.assertTrue(ranks < members, members)
        self.assertEqual(len(members), 4)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().code, 143)
        self.assertFalse((GROUP / group).exists())

    def test_chains_of_forks_end_however_fast_they_are(self):
        reader, writer = os.pipe()
        job = self.start_ranks(1, sys.executable, "-c", CHAINS, stdin=reader, sets=["job.grace=0s"])
        os.close(reader)
        job.wait_for_line(0, "up")
        os.close(writer)
        self.assert_ok(job.finish())
        self.assertEqual(processes_with(self.mark), [])

    def test_it_goes_when_the_agent_is_killed(self):
        job, agent, group = self.start_sleepers()
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(job.finish().code, 137)
        self.assertFalse((GROUP / group).exists())

    def test_it_goes_when_the_guard_is_killed(self):
        job, _, group = self.start_sleepers()
        job.signal(signal.SIGKILL)
        job.finish()
        until(lambda: not (GROUP / group).exists(), "the group's end")

    def test_the_next_job_removes_what_both_left(self):
        job, agent, group = self.start_sleepers()
        job.signal(signal.SIGSTOP)  # so that it hardly acts in between
        os.kill(agent, signal.SIGKILL)
        job.signal(signal.SIGKILL)
        job.finish()
        self.assert_ok(self.ranks(1, "true"))
        self.assertFalse((GROUP / group).exists())
        self.assertEqual(processes_with(self.mark), [])  # also what had left its session

    def test_a_limit_that_cannot_be_kept_is_refused_with_the_reason(self):
        if "memory" in (GROUP / "cgroup.controllers").read_text():
            self.skipTest("memory can be limited here")
        result = self.ranks(1, "true", sets=["job.memory=1GiB"])
        self.assert_user_error(result, "job.memory", "memory controller", "systemd-run")

    def test_a_limit_is_kept_and_the_verdict_says_so(self):
        self.need_memory()
        result = self.ranks(1, sys.executable, "-c", "x = bytearray(200 << 20)", sets=["job.memory=64MiB"])
        self.skip_beside_others(result)
        self.assertEqual(result.code, 137, str(result))
        self.assertIn("out of memory", result.err)
        self.assertIn("job.memory is 64MiB", result.err)
        self.assertEqual(groups_with("launcher"), [])

    def test_a_helper_that_the_limit_ended_is_told_of(self):
        self.need_memory()
        eat = f"{sys.executable} -c 'x = bytearray(200 << 20)'; exit 5"
        result = self.ranks(1, "sh", "-c", eat, sets=["job.memory=64MiB"])
        self.skip_beside_others(result)
        self.assertEqual(result.code, 5, str(result))
        self.assertIn("out of memory", result.err)
        self.assertIn("job.memory is 64MiB", result.err)

    def test_what_goes_on_after_its_ranks_is_named_by_its_program(self):
        reader, writer = os.pipe()
        job = self.start_ranks(1, sys.executable, "-c", CHAINS, stdin=reader, sets=["job.grace=0s"])
        os.close(reader)
        job.wait_for_line(0, "up")
        os.close(writer)
        result = job.finish()
        self.assert_ok(result)
        name = Path(sys.executable).name[:15]
        self.assertRegex(result.err, rf": \d+ process(es)? \(.*{name}")


if __name__ == "__main__":
    main()
