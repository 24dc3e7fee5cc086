"""A job that runs, seen and ended from another terminal: stacks, top, explain and stop."""

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import termios
import unittest

from support.job import DTRUN, RANK, READS_STACKS, JobTest, end, main, needs_stacks, needs_torch, nightly, until

HANG = """import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(4)
def load():
    time.sleep(1000)
dist.all_reduce(t)
print("ready", flush=True)
if dist.get_rank() == 1:
    load()
dist.all_reduce(t)
"""
STRAGGLER = """import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(1000)
dist.all_reduce(t)
print("ready", flush=True)
while True:
    time.sleep(0.3 if dist.get_rank() == 1 else 0.01)
    dist.all_reduce(t)
"""
# "long" steps: on a busy machine the others wait for a slow import too, and an all-reduce takes its time.
STEPS = """import os, sys, time; begin = time.monotonic(); import torch, torch.distributed as dist
dist.init_process_group("gloo"); steps = torch.tensor([max(40, int(4 * (time.monotonic() - begin))) if "long" in sys.argv else 40])
rank = dist.get_rank(); dist.all_reduce(steps, op=dist.ReduceOp.MAX)
t = torch.ones(1000)
def late():
    time.sleep(0.7 if "long" in sys.argv else 0.3)
for step in range(int(steps)):
    if rank == 1:
        late()
    dist.all_reduce(t)
dist.barrier()
sys.exit(3 if rank == 0 and "fail" in sys.argv else 0)
"""
RIVAL = """import os, sys, time, torch, torch.distributed as dist
own, cpu = int(os.environ["RANK"]) == 1, int(sys.argv[1])
os.sched_setaffinity(0, {cpu} if own else os.sched_getaffinity(0) - {cpu})
os.nice(5 if own else 0)
torch.set_num_threads(1)
dist.init_process_group("gloo")
t = torch.ones(1000)
end = time.monotonic() + 10
while True:
    begin = time.thread_time()
    while time.thread_time() < begin + 0.2: pass
    t[0] = time.monotonic() > end
    dist.all_reduce(t)
    if t[0] > 0: break
dist.barrier()
"""
STRANGER = 4242


class LiveJob(JobTest):
    def sleep(self, ranks=2):
        job = self.start_ranks(ranks, "sh", "-c", "echo ready; exec sleep 1000")
        for rank in range(ranks):
            job.wait_for_line(rank, "ready")
        return job

    def torch_job(self, text, ranks=3):
        job = self.start_ranks(ranks, sys.executable, self.write(text, "train.py"))
        for rank in range(ranks):
            job.wait_for_line(rank, "ready")
        return job

    def run_dir(self, job):
        return until(job.run_dir, "a run directory")

    def stop(self, job):
        self.assert_ok(self.dtrun("stop", self.run_dir(job)))
        return job.finish()


@needs_torch
@needs_stacks
class Hang(LiveJob):
    def test_stacks_fold_equal_ranks_and_show_the_one_that_is_elsewhere(self):
        job = self.torch_job(HANG)
        folder = self.run_dir(job)
        places = until(lambda: self.places(folder, "in all_reduce at train.py:10", "in time.sleep at train.py:5"), "the hang")
        self.assertEqual(places, ["in all_reduce at train.py:10", "in time.sleep at train.py:5", "in all_reduce at train.py:10"])
        text = self.dtrun("stacks", folder).out
        self.assertIn("ranks 0, 2 in all_reduce at train.py:10", text)
        self.assertIn("rank 1 in time.sleep at train.py:5", text)
        self.assertIn("line 5, in load", text)
        self.assertEqual(text.count("in all_reduce\n"), 1, text)  # the frame, for both ranks at once
        one = self.dtrun("stacks", folder, "--rank", "1").out
        self.assertNotIn("rank 0", one)
        explained = self.dtrun("explain", folder).out
        self.assertIn("ranks 0, 2 wait for rank 1", explained)
        self.assertNotIn("shared memory", explained)  # torch's own gloo carries its bytes
        result = self.stop(job)
        self.assertEqual(result.code, 128 + signal.SIGTERM, str(result))

    def places(self, folder, *wanted):
        ranks = json.loads(self.dtrun("stacks", folder, "--json").out)["ranks"]
        places = [rank["place"] for rank in ranks]
        return places if set(wanted) == set(places) else None

    @unittest.skipUnless(shutil.which("eu-stack") or shutil.which("gdb"), "there is neither eu-stack nor gdb")
    def test_native_frames_stand_above_the_python_frames_that_called_them(self):
        job = self.torch_job(HANG, ranks=2)
        folder = self.run_dir(job)
        until(lambda: self.places(folder, "in all_reduce at train.py:10", "in time.sleep at train.py:5"), "the hang")
        lines = until(lambda: self.native(folder), "native stacks")  # on a busy machine the tool's time may be over
        native = next(i for i, line in enumerate(lines) if "c10d::" in line)
        python = next(i for i, line in enumerate(lines) if "in all_reduce" in line and "File" in line)
        self.assertLess(native, python, lines)
        self.stop(job)

    def native(self, folder):
        text = self.dtrun("stacks", folder, "--native", "--rank", "0").out
        return text.splitlines() if "c10d::" in text else None


@needs_torch
@needs_stacks
class Straggler(LiveJob):
    def test_top_and_explain_name_it(self):
        job = self.torch_job(STRAGGLER)
        folder = self.run_dir(job)
        seen = until(lambda: self.top(folder), "the straggler")
        ranks = {rank["rank"]: rank for rank in seen["ranks"]}
        self.assertGreater(ranks[1]["delays_others"], ranks[0]["delays_others"])
        self.assertGreater(ranks[0]["waits_for_ranks"], ranks[1]["waits_for_ranks"])
        self.assertEqual(ranks[1]["host"], os.uname().nodename.split(".")[0])
        until(lambda: "rank 1 makes the others wait" in self.dtrun("explain", folder).out, "the straggler")
        table = self.dtrun("top", folder, "--seconds", "1", env=self.environment(COLUMNS="50")).out
        self.assertLessEqual(max(len(line) for line in table.splitlines() if "makes the others wait" not in line), 50, table)
        self.stop(job)

    def top(self, folder):
        seen = json.loads(self.dtrun("top", folder, "--json").out)
        return seen if seen["straggler"] == 1 else None

    def steps(self, *words, sets=()):
        result = self.ranks(3, sys.executable, self.write(STEPS, "train.py"), *words, sets=["backend.name=none", *sets])
        return result, self.last_verdict()

    def test_the_verdict_names_it_and_so_does_explain(self):
        result, verdict = self.steps("long")
        self.assert_ok(result)
        straggler = verdict["straggler"]
        self.assertEqual(straggler["rank"], 1, str(result))
        self.assertIn("in time.sleep at train.py:6", straggler["place"])
        self.assertIn(f" {straggler['percent']} %", straggler["text"])
        self.assertIn(straggler["text"], result.err)
        self.assertIn(straggler["text"], self.dtrun("explain", "latest").out)
        self.assertEqual(json.loads(self.dtrun("explain", "latest", "--json").out)["straggler"], straggler["text"])

    @nightly
    def test_it_is_beside_the_cause_of_a_failure(self):
        result, verdict = self.steps("fail", "long")
        self.assertEqual((result.code, verdict["first_failed_rank"]), (3, 0), str(result))
        self.assertEqual(verdict["straggler"]["rank"], 1, str(result))
        self.assertRegex(result.err, r"rank 0 exited with code 3[^$]*\n  rank 1 made the others wait")

    @nightly
    def test_it_can_be_switched_off(self):
        result, verdict = self.steps(sets=["watch.stragglers=false"])
        self.assert_ok(result)
        self.assertIsNone(verdict["straggler"])

    @nightly
    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "there is one processor")
    def test_the_process_that_keeps_its_processor_busy_is_named(self):
        cpu = max(os.sched_getaffinity(0))
        rivals = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, {cpu})) for _ in range(2)]
        for rival in rivals:
            self.addCleanup(rival.wait)
            self.addCleanup(rival.kill)
        found = [(1, rival.pid) for rival in rivals]
        until(lambda: self.rival(cpu) in found, "the rival", 300)  # load of others on the machine may hide it

    def rival(self, cpu):
        sets = ["backend.name=none", "job.bind=none"]
        self.assert_ok(self.ranks(2, sys.executable, self.write(RIVAL, "train.py"), str(cpu), sets=sets))
        straggler = self.last_verdict()["straggler"]
        return straggler and (straggler["rank"], straggler["busy_with_pid"])


class Native(LiveJob):
    def test_the_recorder_says_which_call_the_ranks_wait_in(self):
        job = self.start_ranks(3, RANK, "skip")
        folder = until(job.run_dir, "a run directory")
        text = until(lambda: self.explained(folder, "ranks 0, 1 wait for rank 2"), "the hang")
        self.assertRegex(text, r"ranks 0, 1 in .*allreduce #10 on 'world'.*; rank 2 .*no collective after #9 on 'world'")
        self.stop(job)

    def explained(self, folder, wanted):
        text = self.dtrun("explain", folder).out
        return text if wanted in text else None


class Key(LiveJob):
    def test_ctrl_t_in_the_jobs_terminal_prints_the_stacks_and_the_job_goes_on(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        before = termios.tcgetattr(slave)
        self.addCleanup(os.close, slave)
        script = self.write("import os, time\nprint('ready', flush=True)\nwhile not os.path.exists('end'): time.sleep(0.05)\n", "wait.py")
        dtrun = subprocess.Popen([str(DTRUN), "-n", "2", sys.executable, str(script)], cwd=self.folder, env=self.environment(),
                                 stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        self.addCleanup(end, dtrun)
        os.set_blocking(master, False)
        self.text = ""
        until(lambda: self.more(master).count("ready") == 2, "the ranks")
        for times in (1, 2):
            os.write(master, b"\x14")
            until(lambda: self.more(master).count("dtrun: where the ranks are:") == times, "the stacks")
            if READS_STACKS:
                until(lambda: self.more(master).count("ranks 0, 1 in time.sleep at wait.py:3") >= times, "the place")
            self.assertIsNone(dtrun.poll())
        (self.folder / "end").touch()
        until(lambda: self.more(master) and dtrun.poll() is not None, "the end")
        self.assertEqual(dtrun.returncode, 0, self.text)
        self.assertEqual(termios.tcgetattr(slave), before)

    def more(self, master):
        try:
            self.text += os.read(master, 65536).decode(errors="replace")
        except BlockingIOError:
            pass
        return self.text.replace("\r\n", "\n")


class Stop(LiveJob):
    def test_it_ends_the_job_and_waits_for_its_end(self):
        job = self.sleep()
        result = self.dtrun("stop", self.run_dir(job))
        self.assert_ok(result)
        self.assertIn("interrupted by SIGTERM", result.out)
        self.assertTrue((self.run_dir(job) / "verdict.json").exists())
        job.finish()

    def test_ranks_of_another_program_are_told_apart_by_their_processes(self):
        job = self.start_ranks(3, "sh", "-c", "echo ready; if [ $RANK = 1 ]; then tail -f /dev/null; else sleep 1000; fi; true")
        for rank in range(3):
            job.wait_for_line(rank, "ready")
        self.run_dir(job)
        text = until(lambda: self.told(job, '"sleep"'), "the places")
        self.assertNotIn("ranks 0-2", text)
        self.assertIn("equal states", text)
        self.assertIn("dtrun stacks --native", self.dtrun("top", self.run_dir(job), "--seconds", "0.1").out)
        self.stop(job)

    def test_an_empty_word_is_no_job(self):
        job = self.sleep(1)
        for verb in ("stop", "stacks", "top", "logs"):
            self.assertEqual(self.dtrun(verb, "").code, 2)
        self.golden_error(self.dtrun("stop", ""), "JOB")
        self.stop(job)

    def test_a_dtrun_that_does_not_answer_is_named(self):
        folder = self.folder / "silent"
        folder.mkdir()
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(folder / "control"))
            silent.listen()
            result = self.dtrun("stop", folder)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn(str(folder), result.err)

    def test_a_name_of_several_jobs_ends_none(self):
        first, second = self.sleep(1), self.sleep(1)
        until(lambda: len(list(self.folder.glob("runs/job/2*/control"))) == 2, "two running jobs")
        result = self.dtrun("stop", "job")
        self.assertEqual(result.code, 2, str(result))
        for folder in self.folder.glob("runs/job/2*"):
            self.assertIn(str(folder), result.err)
            self.assert_ok(self.dtrun("stop", folder))
        first.finish()
        second.finish()

    def test_stacks_of_a_program_that_is_not_python_list_its_threads(self):
        job = self.sleep(1)
        until(lambda: self.told(job, '"sleep", state S'), "the program")
        self.stop(job)

    def told(self, job, word):
        text = self.dtrun("stacks", self.run_dir(job)).out
        return text if word in text else None

    @unittest.skipUnless(shutil.which("eu-stack") or shutil.which("gdb"), "there is neither eu-stack nor gdb")
    def test_a_receive_without_a_send_is_no_straggler(self):
        job = self.start_ranks(2, RANK, "receive")
        folder = self.run_dir(job)

        def explained():
            result = self.dtrun("explain", folder, "--json")
            self.assertTrue(result.out, str(result))
            now = json.loads(result.out)["live"]
            return now if now["quiet_seconds"] > 8 and "recv (called by Main)" in str(now["places"][1:]) else None

        live = until(explained, "the hang")
        self.assertIsNone(live["straggler"])
        self.stop(job)

    def test_a_rank_that_polls_a_message_waits(self):
        job = self.start_ranks(3, RANK, "receive", "polls")
        folder = self.run_dir(job)
        until(lambda: "ranks 1, 2 wait for rank 0" in self.dtrun("explain", folder).out, "the hang")
        places = json.loads(self.dtrun("explain", folder, "--json").out)["live"]["places"]
        self.assertIn("(recv from rank 0 with tag 7 on 'world')", str(places[1]))

        def shares():
            ranks = json.loads(self.dtrun("top", folder, "--json", "--seconds", "2").out)["ranks"]
            return {rank["rank"]: rank for rank in ranks}

        until(lambda: shares()[0]["delays_others"] > 0.5, "the rank that delays the others")
        self.assertEqual(shares()[1]["delays_others"], 0)
        self.stop(job)

    def test_a_grace_of_zero_kills_ranks_that_ignore_sigterm(self):
        job = self.start_ranks(1, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done",
                               sets=["job.grace=1h"])
        job.wait_for_line(0, "ready")
        self.assert_ok(self.dtrun("stop", self.run_dir(job), "--grace", "0s"))
        self.assert_verdict(job.finish(), (0, "SIGKILL"))

    def test_a_job_that_has_ended_and_bad_words_are_errors(self):
        job = self.sleep(1)
        folder = self.run_dir(job)
        self.golden_error(self.dtrun("stacks", folder, "--rank", "9"), "no rank 9")
        self.golden_error(self.dtrun("stop", folder, "--grace", "soon"), "'soon'")
        self.stop(job)
        for verb in ("stacks", "stop", "top"):
            result = self.dtrun(verb, folder)
            self.assertEqual(result.code, 2, str(result))
            self.assertIn(str(folder), result.err)

    def test_a_copied_folder_and_a_killed_dtrun_are_no_running_jobs(self):
        job = self.sleep(1)
        copy = self.folder / "copy"
        subprocess.run(["cp", "-r", self.run_dir(job), copy], check=False, stderr=subprocess.DEVNULL)  # it has a socket
        self.assertEqual(self.dtrun("stacks", copy).code, 2)
        self.stop(job)

    def test_a_job_without_its_run_folder_is_listed_with_the_command_that_ends_it(self):
        job = self.sleep(1)
        shutil.rmtree(self.run_dir(job))
        listed = self.dtrun("ps").out
        self.assertIn("folder removed", listed)
        pid = int(re.search(r"kill (\d+)", listed)[1])
        self.assertIn("folder was removed", self.dtrun("stop").err)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(job.finish().code, 128 + signal.SIGTERM)

    def test_a_stopped_rank_and_one_that_ignores_all_signals_have_stacks(self):
        job = self.start_ranks(1, sys.executable, self.write(
            "import signal, time\n"
            "for n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\n"
            "print('ready', flush=True)\n"
            "time.sleep(1000)\n", "deaf.py"))
        job.wait_for_line(0, "ready")
        folder = self.run_dir(job)
        pid = json.loads(self.dtrun("stacks", folder, "--json").out)["ranks"][0]["pid"]
        os.kill(pid, signal.SIGSTOP)
        until(lambda: "stopped" in self.dtrun("stacks", folder).out, "a stopped rank")
        self.assert_ok(self.dtrun("stop", folder, "--grace", "0s"))
        job.finish()

    def test_another_user_gets_no_answer(self):
        if os.geteuid() != 0:
            self.skipTest("becoming another user needs root")
        self.folder.chmod(0o755)
        job = self.sleep(1)
        folder = self.run_dir(job)
        for each in (folder, *folder.parents):
            if self.folder in each.parents or each == folder:
                each.chmod(0o755)
        (folder / "control").chmod(0o666)  # not even then
        ask = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1] + '/control'); "
               "s.sendall(b'{\"version\":1,\"what\":\"stop\",\"native\":[],\"grace\":null}\\n'); print(s.recv(100))")
        asked = subprocess.run(["/usr/bin/python3", "-c", ask, folder], user=STRANGER, group=STRANGER, cwd="/",
                               capture_output=True, text=True, check=False)
        self.assertNotIn("ending", asked.stdout, asked)
        self.assertIsNone(job.process.poll())
        self.stop(job)


if __name__ == "__main__":
    main()
