"""Ways to hang with torch's gloo: the verdict names the rank that others waited for, and where it stood.

And what must not be named: ranks of healthy jobs, and ranks that only waited. Cases that are nightly are replayed from recorded logs by
core/verdict/replay_test.cc (logs/README.md).
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from support.cluster import ClusterTest, open_lab
from support.job import READS_STACKS, SOURCE, JobTest, main, needs_stacks, nightly, skip, until

WAYS = SOURCE / "tests/programs/ways_to_hang.py"
LIMIT_S = 4  # of torch's waits

# What is said of rank 1, where its stack is read; the line is found by its text.
PLACES = {
    "sleep": r"rank 1 was in time\.sleep at {}",
    "loop": r"rank 1 was at {}|rank 1 was .*while True",
    "lock": r"rank 1 was in lock\.acquire at {}",
    "fifo": r"rank 1 was in open at {}",
    "pipe": r"rank 1 was in os\.read at {} \(read of descriptor \d+ \(a pipe\)\)",
    "socket": r"rank 1 was in recv at {} \(recv of descriptor \d+ \(a socket\)\)",
    "child": r"rank 1 was in subprocess\.run at {}",
    "queue": r"rank 1 was in queue\.Queue\.get at {}",
    "worker": r"rank 1 was in \S*__next__ at {} \(waits for its data loader; a worker is in time\.sleep at ways_to_hang\.py:\d+\)",
    "flock": r"rank 1 was in fcntl\.flock at {}",
}
LINES = {
    "sleep": 'time.sleep(10000)\n    elif way == "loop"',
    "loop": 'pass\n    elif way == "stop"',
    "lock": 'lock.acquire()\n    elif way == "fifo"',
    "fifo": "open(place",
    "pipe": "os.read",
    "socket": "ends[0].recv",
    "child": "subprocess.run",
    "queue": "queue.Queue",
    "worker": "next(iter",
    "flock": "fcntl.flock(until",
}


def line_of(way):
    text = WAYS.read_text()
    return text[: text.index(LINES[way])].count("\n") + 1


def setUpModule():
    if importlib.util.find_spec("torch") is None:
        skip("there is no torch here (python3-torch)")
    open_lab()


class Hangs(JobTest):
    def environment(self, **more):
        """With an eu-stack that fails at once: gdb reads torch for seconds, and Python's stacks are what is asked for."""
        tools = self.folder / "tools"
        tools.mkdir(exist_ok=True)
        (tools / "eu-stack").write_text("#!/bin/sh\nexit 1\n")
        (tools / "eu-stack").chmod(0o755)
        return super().environment(PATH=f"{tools}:{os.environ['PATH']}", **more)

    def hang(self, way, ranks=3, sets=(), limit_s=LIMIT_S, native=False):
        environment = self.environment(DIR=str(self.folder))
        if native:
            environment["PATH"] = os.environ["PATH"]
        result = self.ranks(ranks, sys.executable, WAYS, way, str(limit_s), sets=["backend.name=none", *sets], env=environment)
        file = next(self.folder.glob("runs/*/2*/verdict.json"))
        return result, json.loads(file.read_text()), file.parent

    @needs_stacks
    def test_the_rank_that_stands_still_is_named_with_its_place(self):
        self.stand_still("sleep", "worker")

    @nightly
    @needs_stacks
    def test_other_ways_to_stand_still(self):
        self.stand_still("loop", "lock", "pipe", "socket", "child", "queue", "fifo", "flock")

    def stand_still(self, *ways):
        for way in ways:
            said = PLACES[way]
            with self.subTest(way=way):
                for left in self.folder.glob("runs"):
                    left.rename(self.folder / f"runs-before-{way}")
                # One of the ways with the native stack too, and with others among whom there can be a majority.
                result, verdict, logs = self.hang(way, ranks=3 if way == "sleep" else 2, native=way == "sleep")
                self.assertEqual(result.code, 1, str(result))
                self.assertRegex(result.err, said.format(f"{WAYS.name}:{line_of(way)}".replace(".", r"\.")))
                self.assertEqual(verdict["blamed"]["ranks"], [1], str(result))
                self.assertEqual(verdict["exit_class"], "hang", str(result))
                self.assertIn("rank 1 ", (logs / "stacks.txt").read_text())
                self.assertRegex(result.err, r" all_reduce at ways_to_hang\.py:\d+\n")
                self.assertRegex((logs / "stacks.txt").read_text(), r'File ".*ways_to_hang.py", line \d+, in differ')

    @nightly
    @needs_stacks
    def test_of_two_ranks_it_is_the_one_without_the_text_of_a_timeout(self):
        result, verdict, _ = self.hang("sleep", ranks=2)
        self.assertEqual(verdict["blamed"]["ranks"], [1], str(result))

    @needs_stacks
    def test_a_thread_that_keeps_pythons_lock_is_named(self):
        result, verdict, _ = self.hang("gil")
        self.assertRegex(result.err, r"thread \d+ .*Python's lock.* sleep at ways_to_hang\.py:\d+")
        self.assertEqual(verdict["blamed"]["ranks"], [1], str(result))

    @nightly
    def test_a_stopped_rank_is_named(self):
        result, verdict, _ = self.hang("stop")
        self.golden_lines(result.err, "rank 1 ", "19 (SIGSTOP)")
        self.assertEqual(verdict["first_failed_rank"], 1)

    @nightly
    def test_a_rank_that_left_early_is_named(self):
        for way in ("left", "skip"):
            with self.subTest(way=way):
                result, verdict, _ = self.hang(way)
                self.golden_lines(result.err, "dtrun: job ", "rank 1 ", "code 0")

    @nightly
    def test_a_rank_in_another_collective_is_named(self):
        result, verdict, _ = self.hang("order")
        self.assertRegex(result.err, r"dtrun: job .*rank 1 .*barrier at ways_to_hang\.py:\d+; .*all_reduce at", str(result))

    @needs_stacks
    def test_two_ranks_in_different_collectives_hang_by_no_ranks_fault(self):
        result, verdict, _ = self.hang("order", ranks=2)
        self.assertRegex(result.err, r"rank 0 in all_reduce at ways_to_hang\.py:\d+; rank 1 in barrier at ways_to_hang\.py:\d+\n")
        self.assertIsNone(verdict["blamed"], str(result))
        self.assertEqual(verdict["exit_class"], "hang", str(result))

    @needs_stacks
    def test_a_stall_that_fails_names_the_rank_that_does_not_wait(self):
        sets = ["watch.stall=1s", "watch.on_stall=fail"]
        result, verdict, _ = self.hang("fifo", ranks=2, sets=sets, limit_s=1000)
        place = rf"rank 1 was in open at ways_to_hang\.py:{line_of('fifo')}; the others waited in all_reduce at"
        self.assertRegex(result.err, r"no progress for \S+ s: " + place, str(result))
        self.assertEqual(verdict["blamed"]["ranks"], [1], str(result))
        self.assertEqual(verdict["exit_class"], "hang", str(result))

    @needs_stacks
    def test_ranks_that_sleep_in_the_backward_of_ddp_wait(self):
        script = self.write(
            "import os, time, torch, torch.distributed as d\n"
            "d.init_process_group('gloo')\n"
            "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(20, 20))\n"
            "for step in range(4):\n"
            "    if step == 3 and d.get_rank() == 1: time.sleep(1000)\n"
            "    model(torch.randn(4, 20)).sum().backward()\n",
            "train.py")
        result = self.ranks(3, sys.executable, script, sets=["watch.stall=1s", "watch.on_stall=fail"])
        self.assertRegex(result.err, r"no progress for \S+ s: rank 1 was in time\.sleep at train\.py:5; the others waited in \S*backward at train\.py:6")
        self.assert_verdict(result, exit_class="hang")

    @nightly
    @needs_stacks
    def test_ranks_that_wait_for_a_lock_of_another_are_not_blamed(self):
        limit_s = 3 * LIMIT_S  # a busy machine needs seconds for a look at the stacks
        script = self.write(
            "import datetime, fcntl, os, time, torch, torch.distributed as d\n"
            f"d.init_process_group('gloo', timeout=datetime.timedelta(seconds={limit_s})); t = torch.ones(9)\n"
            "lock = open(os.environ['DIR'] + '/lock', 'w')\n"
            "if d.get_rank() == 0: fcntl.flock(lock, fcntl.LOCK_EX)\n"
            "d.barrier()\n"
            "if d.get_rank() > 0:\n"
            "    fcntl.flock(lock, fcntl.LOCK_EX)\n"
            "    time.sleep(1000)\n"
            "d.all_reduce(t)\n",
            "held.py",
        )
        # Of three, the one that gets the lock when rank 0 ends may hold it against the other by the last look.
        for ranks, waited in ((2, "rank 1"), (3, "(ranks 1, 2|rank 1|rank 2)")):
            with self.subTest(ranks=ranks):
                for left in self.folder.glob("runs"):
                    left.rename(self.folder / f"runs-before-{ranks}")
                environment = self.environment(DIR=str(self.folder))
                sets = ["backend.name=none", "watch.stall=2s"]  # often enough to be seen before rank 0 ends
                result = self.ranks(ranks, sys.executable, script, sets=sets, env=environment)
                self.assertRegex(result.err, rf"\n  {waited} .*lock.* rank 0 ", str(result))
                self.assert_verdict(result, exit_class="hang", blamed=None)

    @nightly
    def test_of_another_shape_no_rank_is_accused(self):
        result, verdict, _ = self.hang("shape")
        self.assertNotEqual(result.code, 0)
        self.assertIn("different sizes", result.err, str(result))
        self.assertIsNone(verdict["blamed"], str(result))

    @nightly
    def test_an_error_that_a_slow_rank_has_printed_counts(self):
        script = (
            "import torch, torch.distributed as d, sys, time, traceback; d.init_process_group('gloo'); t = torch.ones(9)\n"
            "for i in range(9):\n"
            "    if i == 5 and d.get_rank() == 2:\n"
            "        try: raise ValueError('the true cause')\n"
            "        except ValueError: traceback.print_exc(); d.destroy_process_group(); time.sleep(1000)\n"
            "    d.all_reduce(t)\n"
        )
        result = self.ranks(3, sys.executable, "-c", script, sets=["backend.name=none"])
        self.assertRegex(result.err, r"rank 2 failed at \S+:\d+: ValueError: ", str(result))
        self.assertEqual(self.last_verdict()["exit_class"], "user-error")

    @needs_stacks
    def test_a_rank_that_left_its_group_and_lives_is_named(self):
        script = self.write(
            "import time, torch, torch.distributed as d; d.init_process_group('gloo'); t = torch.ones(9); d.all_reduce(t)\n"
            "if d.get_rank() == 1: d.destroy_process_group(); time.sleep(1000)\n"
            "d.all_reduce(t); d.all_reduce(t)\n",
            "gone.py",
        )
        result = self.ranks(3, sys.executable, script, sets=["backend.name=none"])
        self.assertEqual(self.last_verdict()["blamed"]["ranks"], [1], str(result))
        self.assertIn("in time.sleep at gone.py:2", result.err)

    @nightly
    def test_of_two_bad_ranks_the_one_with_an_error_is_blamed_and_the_other_mentioned(self):
        script = self.write(
            "import datetime, sys, time, torch, torch.distributed as d, traceback\n"
            f"d.init_process_group('gloo', timeout=datetime.timedelta(seconds={LIMIT_S})); t = torch.ones(9); d.all_reduce(t)\n"
            "if d.get_rank() == 1: time.sleep(1000)\n"
            "if d.get_rank() == 2:\n"
            "    try: raise ValueError('the true cause')\n"
            "    except ValueError: traceback.print_exc(); sys.stderr.flush(); time.sleep(1000)\n"
            "d.all_reduce(t)\n",
            "two.py",
        )
        result = self.ranks(3, sys.executable, script, sets=["backend.name=none"])
        self.assertRegex(result.err, r"rank 2 failed at \S+:\d+: ValueError: ", str(result))
        if READS_STACKS:
            self.assertRegex(result.err, r"when rank \d failed: .*rank 1 in time\.sleep at two\.py:3")

    @nightly
    @needs_stacks
    def test_an_error_that_a_rank_has_caught_does_not_count(self):
        script = self.write(
            "import datetime, logging, sys, time, torch, torch.distributed as d\n"
            f"d.init_process_group('gloo', timeout=datetime.timedelta(seconds={LIMIT_S})); t = torch.ones(9); d.all_reduce(t)\n"
            "if d.get_rank() == 1:\n"
            "    try: raise ConnectionError('the upload')\n"
            "    except ConnectionError: logging.exception('upload failed, going on')\n"
            "if d.get_rank() == 2: time.sleep(1000)\n"
            "d.all_reduce(t)\n",
            "caught.py",
        )
        result = self.ranks(3, sys.executable, script, sets=["backend.name=none"])
        self.golden_lines(result.err, "dtrun: job ", "rank 2 ", "time.sleep at caught.py:6", "all_reduce")
        self.assert_verdict(result, exit_class="hang")

    @nightly
    @needs_stacks
    def test_a_rank_that_hangs_silently_after_an_error_that_it_caught_is_named_with_its_place(self):
        script = self.write(
            "import datetime, logging, sys, time, torch, torch.distributed as d\n"
            f"d.init_process_group('gloo', timeout=datetime.timedelta(seconds={LIMIT_S}))\n"
            "if d.get_rank() == 1:\n"
            "    try: raise ConnectionError('the upload')\n"
            "    except ConnectionError: logging.exception('upload failed, going on')\n"
            "for i in range(4):\n"
            "    if d.get_rank() == 1 and i == 3: time.sleep(1000)\n"
            "    d.all_reduce(torch.ones(9))\n",
            "silent.py",
        )
        result = self.ranks(2, sys.executable, script, sets=["backend.name=none"])
        self.golden_lines(result.err, "dtrun: job ", "rank 1 ", "time.sleep at silent.py:7", "all_reduce")
        self.assert_verdict(result, exit_class="hang")

    @nightly
    def test_of_two_ranks_the_one_that_left_is_named(self):
        result, verdict, _ = self.hang("left", ranks=2)
        self.assertEqual(verdict["blamed"]["ranks"], [1], str(result))
        self.assertRegex(result.err, "dtrun: job .*rank 1 .*code 0", str(result))

    @nightly
    def test_ranks_that_fail_alike_are_said_to(self):
        script = (
            "import os, sys, time\n"
            "open(os.environ['DIR'] + '/' + os.environ['RANK'], 'w').close()\n"
            "while len(os.listdir(os.environ['DIR'])) < 3: time.sleep(0.01)\n"
            "try: open('/no/data-' + os.environ['RANK'])\n"
            "except OSError:\n"
            "    import traceback; traceback.print_exc(); sys.stderr.flush()\n"
            "    open(os.environ['DIR'] + '/said-' + os.environ['RANK'], 'w').close()\n"
            "    while len(os.listdir(os.environ['DIR'])) < 6: time.sleep(0.01)\n"
            "    raise SystemExit(1)\n"
        )
        place = self.folder / "marks"
        place.mkdir()
        result = self.ranks(3, sys.executable, "-c", script, env=self.environment(DIR=str(place)))
        self.assertRegex(result.err, "dtrun: job .* FileNotFoundError: ")
        self.assertIn("  all 3 ranks ", result.err)

    def test_healthy_jobs_are_not_accused(self):
        result, _, _ = self.hang("-", sets=["job.isolated_ranks=fail", "watch.stall=30s"])
        self.assert_ok(result)
        self.assertNotIn("no progress", result.err, str(result))


class SeveralHosts(ClusterTest):
    @needs_stacks
    def test_the_rank_on_another_host_is_named(self):
        script = (
            "import datetime, time, torch, torch.distributed as d\n"
            f"d.init_process_group('gloo', timeout=datetime.timedelta(seconds={LIMIT_S})); t = torch.ones(9)\n"
            "for i in range(9):\n"
            "    if i == 3 and d.get_rank() == 1: time.sleep(10000)\n"
            "    d.all_reduce(t)\n"
        )
        file = Path(self.folder) / "sleeps.py"
        file.write_text(script)
        result = self.run_cluster(sys.executable, str(file), ranks=1, more='[backend]\nname = "none"\n')
        self.assertRegex(result.err, "dtrun: job .*rank 1 .*time\\.sleep at sleeps\\.py:4", str(result))


if __name__ == "__main__":
    main()
