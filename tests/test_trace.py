"""One timeline of a run: the ranks' calls, what the launcher did, and torch's traces, in one file that Perfetto opens."""

import json
import os
import signal
import sys

from support.job import BUILD, SOURCE, JobTest, main, until
from test_python import PACKAGE

# Gradients are reduced while the backward pass goes on, as DistributedDataParallel does.
TRAIN = """import sys
import numpy, dtrun
dtrun.init()
world = dtrun.world()
part = world.split(0, key=world.rank)
for step in range(5):
    works = [part.allreduce(numpy.ones(size, numpy.float32), wait=False) for size in (1 << 10, 1 << 14)]
    for work in works:
        work.wait()
    world.broadcast(numpy.zeros(4, numpy.float32), root=1)
print("trained", flush=True)
if len(sys.argv) > 1:
    world.barrier()
    sys.stdin.read() if world.rank == 0 else __import__("time").sleep(1000)
dtrun.finalize()
"""
CALLS = 5 * 3
GLOO = ("backend.name=gloo", "comm.local=none")
TRACED = (*GLOO, "trace.enabled=true")


def check(events):
    """Each event has what its phase needs, and those of a row are in order and properly nested."""
    rows, names = {}, {}
    for event in events:
        assert isinstance(event["name"], str) and isinstance(event["ph"], str) and len(event["ph"]) == 1, event
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
        assert isinstance(event["ts"], (int, float)), event
        if event["ph"] == "M":
            names[event["name"], event["pid"], event["tid"]] = event["args"]
            continue
        assert event["ph"] in "Xi", event
        row = rows.setdefault((event["pid"], event["tid"]), [])
        assert not row or event["ts"] >= row[-1]["ts"], (row[-1], event)
        row.append(event)
        if event["ph"] == "X":
            assert event["dur"] >= 0, event
    for (process, thread), row in rows.items():
        assert ("process_name", process, 0) in names and ("thread_name", process, thread) in names, (process, thread)
        open_until = []
        for event in (event for event in row if event["ph"] == "X"):
            end = event["ts"] + event["dur"]
            while open_until and open_until[-1] <= event["ts"] + 1e-3:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3, event
            open_until.append(end)
    return rows


class TraceTest(JobTest):
    def train(self, *words, sets=TRACED):
        return self.start_ranks(2, sys.executable, self.write(TRAIN, "train.py"), *words, sets=sets, env=self.environment(**PACKAGE))

    def trace(self, *words, job="train"):
        out = self.folder / "trace.json"
        result = self.dtrun("trace", job, "--out", out, *words)
        self.assert_ok(result)
        text = json.loads(out.read_text(encoding="utf-8"))
        check(text["traceEvents"])
        return text, result

    def named(self, text, name):
        return [event for event in text["traceEvents"] if event["name"] == name and event["ph"] != "M"]

    def processes(self, text):
        return [event["args"]["name"] for event in text["traceEvents"] if event["name"] == "process_name"]

    def test_calls_of_the_ranks_and_what_the_launcher_did_are_on_one_time(self):
        self.assert_ok(self.train().finish())
        text, result = self.trace()
        self.assertEqual(result.err, "")
        self.assertEqual(text["otherData"]["missing"], [])
        calls = [event for event in text["traceEvents"] if event.get("cat") == "collective"]
        self.assertEqual(len(calls), 2 * CALLS)
        self.assertEqual(len(self.named(text, "wait for allreduce")), 2 * 5 * 2)
        large = [call for call in calls if call["args"]["bytes"] == 4 << 14]
        self.assertEqual(len(large), 2 * 5)
        for call in large:
            self.assertEqual(call["args"]["type"], "float32")
            self.assertAlmostEqual(call["args"]["busbw_GB_s"], (4 << 14) / call["dur"] / 1e3, delta=2e-6 + 1e-3 * call["args"]["busbw_GB_s"])
            self.assertIn(call["args"]["last_rank"], (0, 1))
        self.assertEqual({call["args"]["root"] for call in self.named(text, "broadcast")}, {1})
        generation, = self.named(text, "generation 0")
        for call in calls:
            self.assertGreater(call["ts"], generation["ts"])
            self.assertLess(call["ts"] + call["dur"], generation["ts"] + generation["dur"])
        self.assertEqual(len(self.named(text, "joined")), 2)
        self.assertEqual(self.named(text, "verdict")[0]["args"]["exit_code"], 0)
        for rank in (0, 1):
            self.assertTrue(any(f"rank {rank} on " in name for name in self.processes(text)))

    def test_a_killed_rank_says_that_its_trace_is_not_whole(self):
        job = self.train("wait")
        for rank in (0, 1):
            job.wait_for_line(rank, "trained")
        folder = job.run_dir()
        # The writer carries calls to the file ten times a second: a live trace may lack the last.
        until(lambda: len(self.named(self.trace()[0], "broadcast")) == 2 * 5, "the ranks' calls")
        pid, = [event["pid"] for event in map(json.loads, (folder / "events.log").read_text().splitlines())
                if event["kind"] == "started" and event["rank"] == 1]
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(job.finish().code, 128 + signal.SIGKILL)
        text, result = self.trace()
        self.assertIn("rank-1.trace", result.err)
        self.assertIn(os.fspath(folder / "rank-1.trace"), "\n".join(text["otherData"]["missing"]))
        self.assertTrue(self.named(text, "trace is incomplete"))
        self.assertGreaterEqual(len(self.named(text, "broadcast")), 2 * 5)

    def test_without_traces_the_launcher_is_told_and_how_to_get_more(self):
        self.assert_ok(self.train(sets=GLOO).finish())
        text, result = self.trace()
        self.assertIn("trace.enabled", result.err)
        self.assertTrue(self.named(text, "generation 0"))
        self.assertFalse(list(self.folder.glob("runs/*/2*/*.trace")))

    def test_restarts_are_generations(self):
        script = self.write("import os, sys; sys.exit(os.environ['DTRUN_GENERATION'] == '0')", "train.py")
        self.assert_ok(self.ranks(2, sys.executable, script, sets=("restart.max=1",)))
        text, _ = self.trace()
        self.assertTrue(self.named(text, "generation 0"))
        self.assertTrue(self.named(text, "restart: hosts, network, preparation"))
        self.assertTrue(self.named(text, "generation 1"))

    def test_a_limit_cuts_and_says_so(self):
        script = self.write("import dtrun\ndtrun.init()\nfor _ in range(3000):\n    dtrun.world().barrier()\ndtrun.finalize()\n", "train.py")
        self.assert_ok(self.ranks(2, sys.executable, script, sets=("backend.name=gloo", "trace.enabled=true", "trace.size=64KiB"),
                                  env=self.environment(**PACKAGE)))
        text, result = self.trace()
        self.assertIn("trace.size", result.err)
        calls = len(self.named(text, "barrier"))
        self.assertGreater(calls, 0)
        self.assertLessEqual(calls, 2 * (64 << 10) // 64)

    def test_torch_traces_are_merged_by_rank(self):
        self.assert_ok(self.train().finish())
        text, _ = self.trace()
        call = self.named(text, "broadcast")[0]
        base = 1_700_000_000_000_000_000  # as torch 2 writes: microseconds since some base
        at = (text["baseTimeNanoseconds"] - base) / 1e3 + call["ts"]
        events = [{"ph": "M", "name": "process_name", "ts": at, "pid": 7, "tid": 0, "args": {"name": "python"}},
                  {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 7, "tid": 7, "ts": at, "dur": 5, "args": {"Ev Idx": 1}}]
        folder = self.folder / "profile"
        folder.mkdir()
        for rank in (0, 1):
            (folder / f"{rank}.json").write_text(json.dumps({"distributedInfo": {"rank": rank}, "baseTimeNanoseconds": base, "traceEvents": events}))
        text, _ = self.trace("--torch", folder)
        merged = self.named(text, "aten::linear")
        self.assertEqual(len(merged), 2)
        for event in merged:
            self.assertLess(abs(event["ts"] - call["ts"]), 2)  # a double of microseconds since 1970 is no more exact
        self.assertEqual(sum("torch: python" in name for name in self.processes(text)), 2)

    def test_wrong_words_are_user_errors(self):
        self.assert_user_error(self.dtrun("trace", "nothing", "--out", "t.json"), "nothing")
        self.assert_user_error(self.dtrun("trace"), "--out")
        self.assert_ok(self.ranks(1, "true"))
        self.assert_user_error(self.dtrun("trace", "--out", self.folder / "no" / "t.json"), "t.json")
        self.assert_user_error(self.dtrun("trace", "--out", "t.json.gz"), "gzip")
        self.assert_user_error(self.dtrun("trace", "--out", "t.json", "--torch", self.write("{}", "t.txt")), "t.txt")
        self.assertFalse((self.folder / "t.json").exists())


if __name__ == "__main__":
    main()
