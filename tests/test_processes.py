"""The processes of a job, and those that they start: reaped, told apart, ended."""

import os
import sys
from pathlib import Path

from support.job import JobTest, main, until

# Forks twice, so that every grandchild becomes an orphan and ends as one.
ORPHANS = """
import os
for i in range(1000):
    pid = os.fork()
    if pid == 0:
        os.fork()
        os._exit(0)
    os.waitpid(pid, 0)
print("made", flush=True)
os.read(0, 1)
"""


def children(pid):
    """Pid and state of each child."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                found.append((int(child), Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]))
            except OSError:
                continue  # reaped meanwhile
    return found


class Processes(JobTest):
    def test_orphans_are_reaped_while_the_job_runs(self):
        reader, writer = os.pipe()
        job = self.start_ranks(1, sys.executable, "-c", ORPHANS, stdin=reader)
        os.close(reader)
        job.wait_for_line(0, "made")
        [(agent, _)] = children(job.pid)
        until(lambda: not [pid for pid, state in children(agent) if state == "Z"], "no zombies")
        self.assertEqual(len(children(agent)), 1)  # the rank
        os.close(writer)
        self.assert_ok(job.finish())


if __name__ == "__main__":
    main()
