"""`dtrun explain` of a run: what it used and why, how it ended."""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import unittest

from support.job import DTRUN, RANK, Job, JobTest, end, main, until
from support.lab import why_not
from support.site import Site

WARNING = "NCCL WARN Bootstrap : no socket interface found"


class Latest(JobTest):
    def latest(self):
        result = self.dtrun("explain", "latest")
        self.assert_ok(result)
        return result.out.splitlines()[0]

    def test_is_the_newest_of_dtrun_and_of_dtrun_torchrun(self):
        script = self.write("", "train.py")
        self.assert_ok(self.dtrun("--set", "job.name=ours", "--", "true"))
        self.assertIn("job 'ours'", self.latest())
        self.assert_ok(self.dtrun("torchrun", script))
        self.assertIn("job 'train'", self.latest())
        self.assert_ok(self.dtrun("torchrun", "--log-dir", "kept", self.write("", "other.py")))
        self.assertIn("job 'other'", self.latest())
        self.assert_ok(self.dtrun("--set", "job.name=last", "--", "true"))
        self.assertIn("job 'last'", self.latest())
        for folder, job in ("runs", "last"), ("runs/ours", "ours"), ("runs/ours/latest", "ours"):
            out = self.dtrun("explain", folder).out
            self.assertIn(f"job '{job}'", out.splitlines()[0])
            run = (self.folder / "runs" / job / "latest").resolve().relative_to(self.folder.resolve())
            (self.assertNotIn if folder.endswith("latest") else self.assertIn)(f"  run        {run}, the newest\n", out)
        self.assertEqual(self.dtrun("-n", "1", "-H", "no-such-host.invalid", "--set", "job.name=none", "true").code, 2)
        self.assertRegex(self.dtrun("explain", "latest").out, "job 'none'.* not started")
        logs = self.dtrun("logs")
        self.assertEqual(logs.code, 1)
        self.assertIn("no-such-host.invalid", logs.err)
        (self.folder / "none").touch()  # a file of the job's name
        self.assertIn("job 'none'", self.dtrun("explain", "none").out)
        self.assertNotIn("job 'none'", self.dtrun("explain", "./none").out)

    def test_a_folder_that_cannot_be_written_keeps_no_runs(self):
        if reason := why_not():
            self.skipTest(f"because {reason}")
        place = self.folder / "read-only"
        place.mkdir()
        mount = f"mount -t tmpfs -o ro tmpfs {place} && cd {place}"
        command = f"{mount} && {DTRUN} --set job.name=here -- true && {DTRUN} explain latest"
        environment = self.environment(HOME=str(self.folder), XDG_STATE_HOME="")
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c", command], env=environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.golden_lines(done.stderr, "warning", f"'{place}/runs", f"'{self.folder}/.local/state/dtrun/runs/here/")
        self.assertIn("job 'here'", done.stdout.splitlines()[0])
        asked = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c",
                                f"{mount} && {DTRUN} --set logs.dir=logs -- true"], env=environment, capture_output=True, text=True,
                               check=False)
        self.assertEqual(asked.returncode, 2, asked.stderr)  # the user named a folder, and gets no other
        self.golden(asked.stderr, "logs.dir")

    def test_is_of_this_folder_and_of_this_user(self):
        script = self.write("", "train.py")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        self.assert_ok(self.dtrun("torchrun", script))
        done = subprocess.run([DTRUN, "explain", "latest"], cwd=elsewhere, env=self.environment(), capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 2, done.stdout)
        if os.geteuid() == 0:
            for logs in self.folder.glob("torchelastic_*"):
                os.chown(logs, 65534, 65534)
            self.golden_error(self.dtrun("explain", "latest"), "in this folder")


class ExplainRun(JobTest):
    def test_a_failed_job(self):
        config = self.write('[job]\ncommand = ["sh", "-c", "echo \'%s\'; exit 3"]\n' % WARNING)
        self.assertEqual(self.dtrun("--config", config).code, 3)
        result = self.dtrun("explain", "latest")
        self.assert_ok(result)
        for text in ("failed after", "backend    gloo", 'backend.name = "gloo" (default)', "interface ",
                     "known failure: NCCL "):
            self.assertIn(text, result.out)
        for once in ("job 'job'", "known failure: ", "  next: ", " after "):  # the verdict has said it
            self.assertEqual(result.out.count(once), 1, result.out)
        story = json.loads(self.dtrun("explain", "latest", "--json").out)
        self.assertEqual(story["findings"][0]["rank"], 0)

    def topics(self):
        return {choice["topic"]: choice for choice in json.loads(self.dtrun("explain", "latest", "--json").out)["choices"]}

    def test_nothing_is_told_of_a_backend_that_no_rank_used(self):
        self.assert_ok(self.dtrun("--set", "job.processes_per_host=2", "--", "true"))
        topics = self.topics()
        self.golden_lines(topics["backend"]["reason"], "dtrun_init")
        for topic in ("transport", "peers", "algorithm"):
            self.assertNotIn(topic, topics)
        self.assertIsNone(topics["p2p"]["value"])

    def test_the_number_of_ranks_comes_from_the_option_that_was_given(self):
        self.assert_ok(self.dtrun("-n", "2", "true"))
        self.assertEqual(self.topics()["ranks"]["reason"], "job.ranks = 2 (-n)")
        self.assert_ok(self.dtrun("--set", "job.processes_per_host=2", "--hosts", "localhost:2", "true"))
        self.assertRegex(self.topics()["ranks"]["reason"], r"^job.processes_per_host = 2 \(--set .*; cluster.hosts = .*localhost:2")

    def test_on_one_host_no_option_chooses_between_networks(self):
        result = self.dtrun("--set", "network.interface=eth0", "--", "true")
        self.assert_ok(result)
        self.golden_lines(result.err, "warning    --set network.interface")
        self.golden(self.topics()["interface"]["reason"])
        self.assert_ok(self.dtrun("-np", "2", "--network-interface", "lo", "true"))

    def test_the_name_of_a_job_is_its_run(self):
        self.assert_ok(self.dtrun("--set", "job.name=train", "--", "true"))
        for words in (["train"], ["runs/train/latest"], ["latest"], []):
            result = self.dtrun("explain", *words)
            self.assert_ok(result)
            self.assertIn("job 'train'", result.out, words)

    def test_a_job_on_one_host_uses_no_interface(self):
        self.assert_ok(self.dtrun("--", "true"))
        file = next(self.folder.glob("runs/*/2*/plan.json"))
        plan = json.loads(file.read_text())
        del plan["backend"]["facts"]["interface"]  # of a backend that reports none
        file.write_text(json.dumps(plan))
        interface = self.topics()["interface"]
        self.assertEqual(interface["reason"], "")
        self.golden(interface["value"])

    def test_every_variable_that_names_an_interface_is_told(self):
        self.assert_ok(self.dtrun("--set", "job.env.PRTE_MCA_prte_if_include=lo", "--", "true"))
        self.assertIn("ranks see PRTE_MCA_prte_if_include=lo", self.topics()["interface"]["reason"])

    def test_the_algorithm_is_what_the_backend_says_of_itself(self):
        self.assert_ok(self.ranks(2, RANK, sets=["comm.local=none"]))
        topics = self.topics()
        self.assertEqual(topics["transport"]["value"], "gloo alone")
        self.golden(topics["algorithm"]["value"])
        self.assert_ok(self.ranks(2, RANK))
        self.golden(self.topics()["algorithm"]["value"])

    def test_nothing_is_told_of_a_backend_that_it_has_not_told(self):
        self.assert_ok(self.ranks(2, RANK))
        file = next(self.folder.glob("runs/*/2*/plan.json"))
        plan = json.loads(file.read_text())
        plan["backend"] = {"name": "strange", "facts": {}}
        for host in plan["hosts"]:
            host["facts"] = {"by p2p": "turbo STRANGE_PATHS"}
        plan["processes"][0]["env"]["STRANGE_PATHS"] = "few"
        file.write_text(json.dumps(plan))
        config = json.loads((file.parent / "config.json").read_text())
        config["backend.options.turbo"] = {"value": True, "origin": "--set"}
        config["backend.options.p2p"] = {"value": "on", "origin": "--set"}
        (file.parent / "config.json").write_text(json.dumps(config))
        p2p = self.topics()["p2p"]
        self.assertIsNone(p2p["value"])
        self.assertEqual(p2p["reason"], "backend.options.turbo = true (--set); ranks see STRANGE_PATHS=few")

    def test_a_record_that_became_a_pipe_or_a_device_is_not_read(self):
        job = self.start_ranks(1, "true")
        self.assertEqual(job.finish().code, 0)
        record = job.run_dir() / "network.txt"
        os.mkfifo(record)
        self.golden_error(self.dtrun("explain", job.run_dir()), f"'{record}'")
        record.unlink()
        record.symlink_to("/dev/zero")
        self.golden_error(self.dtrun("explain", job.run_dir()), f"'{record}'")
        record.unlink()
        for name in ("events.log", "verdict.json", "plan.json"):
            record = job.run_dir() / name
            kept = record.rename(self.folder / name)
            os.mkfifo(record)
            result = self.dtrun("explain", job.run_dir())
            self.assertEqual(result.code, 2)
            self.assertIn(f"'{record}' is a pipe", result.err)
            self.assertNotIn("not a run directory", result.err)
            record.unlink()
            kept.rename(record)

    def test_changed_records_reach_no_terminal(self):
        job = self.start_ranks(1, "sh", "-c", "exit 3")
        self.assertEqual(job.finish().code, 3)
        events = job.run_dir() / "events.log"
        events.write_text(events.read_text().replace('"job":"job"', r'"job":"a\u001b[2Jb\u009bc"'))
        result = self.dtrun("explain", job.run_dir())
        self.assertIn("failed after", result.out)
        self.assertFalse([c for c in re.sub(r"\x1b\[(0|31)?m", "", result.out) if c != "\n" and (c < " " or "\x7f" <= c < "\xa0")])
        events.write_text("nothing of dtrun's\n")  # the verdict is then that of verdict.json
        file = job.run_dir() / "verdict.json"
        verdict = json.loads(file.read_text())
        verdict["job"] = "a\x1b[2Jb"
        verdict["text"] = "one\x1b]0;EVIL\x07 two\n\x1b[31mred\nthree\r\x9b2J"
        file.write_text(json.dumps(verdict))
        result = self.dtrun("explain", job.run_dir())
        self.assert_ok(result)
        self.assertIn("one two\n", result.out)
        self.assertIn("\nthree\n", result.out)
        self.assertNotIn("EVIL", result.out)
        plain = re.sub(r"\x1b\[(0|31)?m", "", result.out)
        self.assertFalse([c for c in plain if c != "\n" and (c < " " or "\x7f" <= c < "\xa0")], repr(result.out))

    def test_the_verdict_is_made_from_the_events_wherever_the_folder_is(self):
        job = self.start_ranks(2, "sh", "-c", "echo hello; exit 3")
        self.assertEqual(job.finish().code, 3)
        folder = job.run_dir()
        told = json.loads((folder / "verdict.json").read_text())["text"]
        (folder / "verdict.json").unlink()
        self.assertEqual(json.loads(self.dtrun("explain", folder, "--json").out)["verdict"], told)
        kept = folder.rename(self.folder / "kept")
        moved = json.loads(self.dtrun("explain", "kept", "--json").out)["verdict"]
        self.assertEqual(moved, told.replace(str(folder), str(kept)))

    def test_a_cut_record_does_not_contradict_the_verdict(self):
        error = "RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.12]:55116"
        job = self.start_ranks(1, "sh", "-c", f"echo '{error}'; exit 3")
        self.assertEqual(job.finish().code, 3)
        events, verdict = job.run_dir() / "events.log", json.loads((job.run_dir() / "verdict.json").read_text())
        self.assertEqual(verdict["exit_class"], "network")
        lines = events.read_text().splitlines(keepends=True)
        kinds = [json.loads(line)["kind"] for line in lines]
        for kept in (lines[:kinds.index("failed-first") + 1], lines[:1], lines[:kinds.index("recognised")],
                     [*lines[:-1], lines[-1][:9]]):
            events.write_text("".join(kept))
            result = self.dtrun("explain", job.run_dir())
            self.assert_ok(result)
            self.assertTrue(result.out.startswith(verdict["text"]), result.out)
            self.golden_lines(result.out, "  record ")
        events.write_text("".join(lines[:kinds.index("failed-first") + 1]))
        killed = {"job": "job", "result": "agent killed", "exit_class": "launcher", "exit_code": 137,
                  "error": "the agent was killed by SIGKILL"}
        (job.run_dir() / "verdict.json").write_text(json.dumps(killed))
        self.golden_lines(self.dtrun("explain", job.run_dir()).out, "last output of ")
        events.write_text("".join(lines[:kinds.index("began") + 1]))
        self.assertIn("killed by SIGKILL", self.dtrun("explain", job.run_dir()).out)

    def test_a_damaged_file_leaves_out_only_its_own_part(self):
        job = self.start_ranks(1, "sh", "-c", "exit 3")
        self.assertEqual(job.finish().code, 3)
        ways = {"cut": lambda file: file.write_text("{"), "a pipe": os.mkfifo, "a folder": os.mkdir, "gone": lambda file: None,
                "a loop": lambda file: file.symlink_to(file), "strange": lambda file: file.write_text('{"hosts": 3, "job.name": 3}')}
        for name in ("plan.json", "config.json", "verdict.json", "events.log"):
            for way, make in ways.items():
                record = job.run_dir() / name
                kept = record.rename(self.folder / name)
                make(record)
                with self.subTest(name=name, way=way):
                    result = self.dtrun("explain", job.run_dir())
                    self.assertTrue(result.out.startswith("dtrun: job 'job' failed after "), result.out + result.err)
                    self.assertNotIn("not a run directory", result.err)
                    told = (way in ("cut", "strange", "gone") and name == "events.log" or way == "strange" and name == "config.json"
                            or way == "gone" and name in ("verdict.json", "plan.json"))
                    self.assertEqual(result.code, 0 if told else 2, str(result))
                    if not told:
                        self.assertIn(f"{record}'", result.err)
                        self.assertIn("; ", result.err)  # the next step
                os.rmdir(record) if way == "a folder" else record.unlink(missing_ok=True)
                kept.rename(record)

    def test_the_blamed_rank_and_its_place(self):
        script = self.write("import sys, time, os\nrank = os.environ['RANK']\nif rank == '1':\n    time.sleep(1000)\n"
                            "time.sleep(1)\nsys.exit('RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:81] '\n"
                            "         'Timed out waiting 8000ms for recv operation to complete')\n", "train.py")
        self.assertEqual(self.ranks(2, "/usr/bin/python3", script).code, 1)
        result = self.dtrun("explain", "latest")
        self.assert_ok(result)
        verdict = json.loads(self.dtrun("explain", "latest", "--json").out)["verdict"]
        self.assertIn(verdict, result.out)
        self.assertIn("failed after", verdict)
        self.assertRegex(verdict, r"rank 1.* in .*(time.sleep at train.py:4|clock_nanosleep)")

    def test_after_an_interruption_no_advice_names_the_failure_of_another_rank(self):
        script = self.write("import signal, sys, time\n"
                            "signal.signal(signal.SIGTERM, lambda *_: sys.exit('[Errno 104] Connection reset by peer'))\n"
                            "print('up', flush=True)\nwhile True:\n    time.sleep(1)\n", "train.py")
        job = self.start_ranks(2, sys.executable, script)
        for rank in range(2):
            job.wait_for_line(rank, "up")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().code, 143)
        story = json.loads(self.dtrun("explain", "latest", "--json").out)
        self.golden_lines(story["verdict"], "SIGTERM")
        self.assertEqual(story["findings"], [])

    def test_a_restarted_job_runs(self):
        job = self.start_ranks(1, "sh", "-c", f"if mkdir {self.folder}/failed; then exit 3; fi; echo up; sleep 1000",
                               sets=["restart.max=1", 'restart.on=["user-error"]'])
        until(lambda: any(file.read_text() == "up\n" for file in job.folder.glob("runs/job/*/generation-1/rank-0.out")),
              "the second generation to run")
        state = json.loads(self.dtrun("explain", job.run_dir(), "--json").out)["state"]
        self.assertTrue(state.startswith("running"), state)
        self.assertIn("in generation 1", state)
        job.signal(signal.SIGTERM)
        job.finish()

    def test_a_running_job(self):
        job = self.start_ranks(2, "sh", "-c", "echo up; sleep 1000")
        job.wait_for_line(0, "up")
        result = self.dtrun("explain", job.run_dir())
        self.assert_ok(result)
        self.golden(result.out.splitlines()[0], "'job'")
        self.golden_lines(result.out, "dtrun_init")
        self.assertIn("ranks      2 (", result.out)
        job.signal(signal.SIGTERM)
        job.finish()


@unittest.skipIf(why_not(), f"no laboratory of hosts: {why_not()}")
class ExplainHosts(JobTest):
    """Every word of a job on two hosts: interface, transport, algorithm, peer access, each with its reason."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="dtrun-site-")
        self.addCleanup(folder.cleanup)
        self.site = Site(folder.name, "10.5.0.{}", 2)
        self.addCleanup(self.site.close)

    def explain(self, backend, interfaces):
        for i, name in enumerate(interfaces):
            self.site.wire(i, name, "red", f"10.5.0.{i + 1}/24")
        self.site.lay()
        key = self.write(secrets.token_hex(32), "key")
        key.chmod(0o600)
        config = self.write(
            f'[job]\ncommand = ["{RANK}"]\nprocesses_per_host = 2\n[backend]\nname = "{backend}"\n'
            f'[cluster]\nhosts = {json.dumps(self.site.names)}\nconnect = "manual"\nroot = "10.5.0.1:29400"\n'
            f'key_file = "{key}"\njoin_timeout = "60s"\n[logs]\ndir = "{self.folder}/{backend}"\n')
        jobs = []
        for i in range(2):
            process = subprocess.Popen([*self.site.enter(i, self.folder), str(DTRUN), "--config", str(config), "--host-index",
                                        str(i)], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
            self.addCleanup(end, process)
            jobs.append(Job(process, self.folder))
        self.assert_ok([job.finish() for job in jobs][0])
        result = self.dtrun("explain", str(self.folder / backend))
        self.assert_ok(result)
        return result.out

    def test_shared_memory_and_gloo(self):
        out = self.explain("gloo", ["eth0", "ens3"])
        self.assertIn("\n  interface  node0 eth0 10.5.0.1, node1 ens3 10.5.0.2\n", out)
        self.golden_lines(out, "because: ", 'network.interface = "auto" (default)')
        self.golden_lines(out, "peers ", "ranks 0, 1 of node0", "gloo", "eth0 10.5.0.1")
        self.golden_lines(out, "peers ", "ranks 2, 3 of node1", "gloo", "ens3 10.5.0.2")
        self.assertIn('\n             because: comm.local = "shm" (default); eth0 chosen, ', out)
        self.golden(re.search(r"\n  algorithm (.*\n)+?  p2p .*\n.*\n", out)[0])

    def test_ucx_says_why_no_rdma(self):
        out = self.explain("ucx", ["eth0", "eth0"])
        self.golden_lines(out, "peers ", "ucx", "eth0 10.5.0.1")
        self.assertIn("; no RDMA: ", out)
        self.assertIn('backend.options.p2p = "auto" (default)', out)


if __name__ == "__main__":
    main()
