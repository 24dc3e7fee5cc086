"""A running job on several hosts, seen and ended from the host where it was started."""

import json
import os
import signal
import sys
from pathlib import Path

from support.cluster import ClusterTest, open_lab
from support.job import BUILD, SOURCE, main, needs_stacks, until
from support.lab import Lab

LAB = None
SLEEPS = """import os, time
print("ready", flush=True)
def other():
    time.sleep(1000)
if os.environ["RANK"] == "3":
    other()
time.sleep(1000)
"""


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def setUpModule():
    global LAB
    LAB = open_lab(Lab)


class LiveJobOnHosts(ClusterTest):
    hosts = ["node0", "node1"]

    def start_job(self):
        job = self.start_cluster(sys.executable, self.write(SLEEPS, "train.py"), hosts=self.hosts)
        for rank in range(4):
            job.wait_for_line(rank, "ready")
        return job, job.run_dir()

    def at_first(self, *words):
        return self.start_on(0, *words).finish()

    @needs_stacks
    def test_stacks_of_all_hosts_are_one_answer(self):
        job, folder = self.start_job()
        text = until(lambda: self.told(folder), "the places")
        self.assertIn("ranks 0-2 on node0, node1 in time.sleep at train.py:7", text)
        self.assertIn("rank 3 on node1 in time.sleep at train.py:4", text)
        self.assert_ok(self.at_first("stop", folder))
        self.assertEqual(job.finish().code, 128 + signal.SIGTERM)

    def test_metrics_of_ranks_on_other_hosts_are_in_the_run_folder(self):
        text = ("import dtrun, time\ndtrun.metric('loss', 0.25, 7)\nprint('ready', flush=True)\ntime.sleep(1000)\n")
        more = f'[job.env]\nPYTHONPATH = "{SOURCE}/python"\nDTRUN_LIBRARY = "{BUILD}/lib/libdtrun.so.1"\n'
        job = self.start_cluster(sys.executable, "-B", self.write(text, "train.py"), hosts=self.hosts, more=more)
        folder = until(job.run_dir, "a run directory")

        def points(name):
            file = folder / "metrics.jsonl"
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            return {point["rank"]: point for point in map(json.loads, lines) if point["name"] == name}

        until(lambda: len(points("loss")) == 4 and len(points("dtrun_rank_memory_bytes")) == 4, "the numbers of all ranks")
        self.assertEqual(points("loss")[3]["step"], 7)
        self.assertGreater(points("dtrun_rank_memory_bytes")[3]["value"], 1 << 20)
        self.assert_ok(self.at_first("stop", folder))
        job.finish()

    def told(self, folder):
        text = self.at_first("stacks", folder).out
        return text if "train.py:4" in text and "ranks 0-2" in text else None

    def test_a_host_that_does_not_answer_is_named_and_the_others_are_shown(self):
        job, folder = self.start_job()
        ranks = json.loads(self.at_first("stacks", folder, "--json").out)["ranks"]
        pid = next(rank["pid"] for rank in ranks if rank["host"] == "node1")
        agent = parent(pid)
        guard = parent(agent)  # it would wake the agent
        for one in (guard, agent):
            os.kill(one, signal.SIGSTOP)
        try:
            result = self.at_first("stacks", folder)
        finally:
            for one in (agent, guard):
                os.kill(one, signal.SIGCONT)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("rank 0", result.out)
        self.golden(result.err, "ranks 2, 3")
        self.assert_ok(self.at_first("stop", folder))
        job.finish()


if __name__ == "__main__":
    main()
