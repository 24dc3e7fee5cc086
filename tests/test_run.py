"""What a successful run looks like, and that the plan is what is started."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from support.job import JobTest, main, until

# Not any python3 of PATH: some are wrappers that change the environment.
SHOW = [sys.executable, "-c", "import json,os,sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))"]


class Run(JobTest):
    def shown(self, result, rank):
        prefix = f"[{rank}] "
        lines = [line for line in result.out.splitlines() if line.startswith(prefix)]
        return json.loads(lines[0][len(prefix):])

    def test_every_rank_sees_its_place(self):
        result = self.ranks(3, *SHOW)
        self.assert_ok(result)
        ports = set()
        for rank in range(3):
            _, env, _ = self.shown(result, rank)
            self.assertEqual(env["RANK"], str(rank))
            self.assertEqual(env["LOCAL_RANK"], str(rank))
            self.assertEqual(env["WORLD_SIZE"], "3")
            self.assertEqual(env["LOCAL_WORLD_SIZE"], "3")
            self.assertEqual(env["NODE_RANK"], "0")
            self.assertEqual(env["MASTER_ADDR"], "127.0.0.1")
            ports.add(env["MASTER_PORT"])
        self.assertEqual(len(ports), 1)

    def test_placeholders_expand_per_rank_and_can_be_escaped(self):
        config = self.write(
            '[job]\nprocesses_per_host = 2\nenv = { OUT = "part-${RANK}" }\n'
            f"command = {json.dumps(SHOW + ['--r=${RANK}/${WORLD_SIZE}', '$${HOME}'])}\n"
        )
        result = self.dtrun("--config", config)
        self.assert_ok(result)
        argv, env, _ = self.shown(result, 1)
        self.assertEqual(argv, ["--r=1/2", "${HOME}"])
        self.assertEqual(env["OUT"], "part-1")

    def test_the_header_names_what_was_chosen(self):
        result = self.ranks(2, "true", flags=["-v"], sets=["comm.local=none"])
        self.assert_ok(result)
        for text in ("2 ranks on 1 host", "launcher per-process", "gloo", "Gloo", "interface", "logs"):
            self.assertIn(text, result.err)
        self.assertIn("succeeded", result.err.splitlines()[-1])

    def test_a_backend_that_one_host_does_not_use_has_no_interface_in_header_and_plan(self):
        for text in (self.ranks(2, "true", flags=["-v"]).err, self.dtrun("plan", "-n", "2", "true").out):
            self.golden_lines(text, "local", "shared memory", "gloo")
            for fact in "wire", "algorithm", "interface":
                self.assertNotRegex(text, rf"(?m)^  {fact}\b")

    def test_a_program_without_libdtrun_hears_of_the_default_backend_in_one_line(self):
        result = self.ranks(2, "true")
        self.assert_ok(result)
        self.golden_lines(result.err, "  backend    gloo, ")
        self.assertNotIn("interface", result.err)

    def test_a_limit_of_a_host_above_all_ranks_is_told(self):
        result = self.dtrun("-n", "2", "--nproc_per_node", "4", "true")
        self.assert_ok(result)
        self.golden_lines(result.err, "-n 2", "--processes-per-host 4")
        self.assertNotIn("--processes-per-host", self.dtrun("-n", "2", "--processes-per-host", "2", "true").err)

    def test_threads_default_to_cores_per_rank_and_say_so(self):
        result = self.ranks(2, *SHOW, flags=["-v"])
        cores = json.loads(self.dtrun("plan", "--json", "--", "true").out)["hosts"][0]["cores"]
        self.assertEqual(self.shown(result, 0)[1]["OMP_NUM_THREADS"], str(max(1, cores // 2)))
        self.assertEqual(result.err.count("OMP_NUM_THREADS"), 1, result.err)
        self.assertRegex(result.err, r"note +OMP_NUM_THREADS=.*job\.env")
        own = self.ranks(2, *SHOW, flags=["-v"], env=self.environment(OMP_NUM_THREADS="7"))
        self.assertEqual(self.shown(own, 0)[1]["OMP_NUM_THREADS"], "7")
        self.assertNotIn("OMP_NUM_THREADS", own.err)

    def test_what_runs_is_the_plan_to_the_byte(self):
        config = self.write(
            '[job]\nprocesses_per_host = 2\nenv = { A = "${RANK}" }\n' f"command = {json.dumps(SHOW + ['${RANK}', 'ü'])}\n"
        )
        planned = self.dtrun("plan", "--json", "--config", config)
        self.assert_ok(planned)
        job = self.start("--config", config)
        result = job.finish()
        self.assert_ok(result)
        self.assertEqual((job.run_dir() / "plan.json").read_text(), planned.out)

        tokens = json.loads((job.run_dir() / "runtime.json").read_text())
        plan = json.loads(planned.out)
        for process in plan["processes"]:
            argv, env, cwd = self.shown(result, process["rank"])
            expected = dict(self.environment())
            for name, value in process["env"].items():
                for token, text in tokens.items():
                    value = value.replace(f"⟦{token}⟧", text)
                expected[name] = value
            key = env.pop("DTRUN_JOB_KEY")  # never written anywhere
            self.assertRegex(key, "^[0-9a-f]{64}$")
            self.assertEqual(expected.pop("DTRUN_JOB_KEY"), "⟦job_key⟧")
            for noise in ("LC_CTYPE",):  # python may add it to its own environment
                env.pop(noise, None), expected.pop(noise, None)
            self.assertEqual(env, expected)
            self.assertEqual(argv, process["argv"][3:])
            self.assertEqual(cwd, process["cwd"])

    def test_the_job_key_is_in_no_record(self):
        job = self.start("--", "sh", "-c", "echo $DTRUN_JOB_KEY > key")
        self.assert_ok(job.finish())
        key = (self.folder / "key").read_text().strip()
        self.assertRegex(key, "^[0-9a-f]{64}$")
        for file in job.run_dir().iterdir():
            self.assertNotIn(key, file.read_text(), file.name)

    def test_a_job_on_one_host_loads_no_library_that_only_several_need(self):
        job = self.start_ranks(1, "sh", "-c", "echo up; exec sleep 1000")
        job.wait_for_line(0, "up")
        [agent] = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        for pid in (job.pid, agent):
            maps = Path(f"/proc/{pid}/maps").read_text()
            self.assertIn("libstdc++", maps)
            for library in ("libssl", "libcrypto", "libnl-3", "libnl-route"):
                self.assertNotIn(f"/{library}", maps)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().code, 143)

    def test_an_interruption_between_two_starts_tells_the_time_of_the_whole_job(self):
        begin = time.monotonic()
        job = self.start_ranks(1, "sh", "-c", "exit 3", sets=["restart.max=2", "restart.backoff=1h"])
        until(lambda: " in 1h" in job.process.stderr.readline(), "the end of the first start")
        ended = time.monotonic() - begin
        until(lambda: time.monotonic() - begin > ended + 2, "a time that is not the start's")
        job.signal(signal.SIGTERM)
        result = job.finish()
        self.assertEqual(result.code, 143, str(result))
        told = re.search(r"interrupted by SIGTERM after ([0-9.]+) s", result.err)
        self.assertGreater(float(told[1]), 2, result.err)
        self.assertIn(f"logs: {job.run_dir().relative_to(self.folder)}\n", result.err)

    def test_stdin_goes_to_rank_0_only(self):
        job = self.start_ranks(2, "sh", "-c", 'echo "rank $RANK read: $(cat)"', stdin=subprocess.PIPE)
        out, err = job.process.communicate("hello\n", timeout=60)
        self.assertIn("[0] rank 0 read: hello\n", out)
        self.assertIn("[1] rank 1 read: \n", out)

    def test_output_is_prefixed_on_its_stream_and_raw_in_the_logs(self):
        job = self.start_ranks(2, "sh", "-c", 'printf "a\\nb"; printf "to err\\n" >&2')
        result = job.finish()
        self.assertIn("[0] a\n", result.out)
        self.assertIn("[1] b\n", result.out)
        self.assertIn("[1] to err\n", result.err)
        self.assertEqual(job.log(1), "a\nb")
        self.assertEqual(job.log(1, "err"), "to err\n")

    def test_a_single_rank_needs_no_prefix(self):
        self.assertEqual(self.ranks(1, "echo", "hello").out, "hello\n")

    def test_any_program_runs(self):
        script = self.write("#!/bin/sh\necho script $1 $RANK\n", "train.sh")
        script.chmod(0o755)
        self.assertIn("script x 0", self.ranks(1, "./train.sh", "x").out)

    def test_a_reader_that_is_gone_does_not_end_the_job(self):
        done = self.folder / "done"
        job = self.start_ranks(1, "sh", "-c", f"read go; seq 1 20000; echo x > {done}", stdin=subprocess.PIPE)
        job.process.stdout.close()
        job.process.stdin.write("go\n")
        job.process.stdin.close()
        err = job.process.stderr.read()
        self.assertEqual(job.process.wait(), 0, err)
        self.assertEqual(err.count("standard output has gone"), 1, err)
        self.assertTrue(done.exists())
        self.assertEqual(job.log(0), "".join(f"{i}\n" for i in range(1, 20001)))
        job.process.stderr.close()

    def test_output_is_complete_and_in_order(self):
        result = self.ranks(1, "seq", "1", "200000")
        self.assertEqual(result.out, "".join(f"{i}\n" for i in range(1, 200001)))

    def test_a_detached_child_is_ended_with_the_job_and_named(self):
        result = self.ranks(1, "sh", "-c", "setsid sleep 1000 & exit 0", sets=["job.grace=1s"])
        self.assert_ok(result)
        self.assertIn("rank 0 left 1 process behind", result.err)

    def test_who_takes_a_held_port_is_named(self):
        rank = ("import os, socket, sys\nprint('port', os.environ['MASTER_PORT'], flush=True)\nsys.stdin.readline()\n"
                "socket.create_server(('0.0.0.0', int(os.environ['MASTER_PORT'])))\n")
        job = self.start_ranks(1, sys.executable, self.write(rank, "rank.py"), stdin=subprocess.PIPE)
        port = int(until(lambda: re.search(r"port (\d+)\n", job.log(0)), "the port")[1])
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.bind(("0.0.0.0", port))
            thief.listen()
            job.process.stdin.write("go\n")
            job.process.stdin.flush()
            result = job.finish()
        self.assertEqual(result.code, 1, str(result))
        self.golden_lines(result.err, f"MASTER_PORT {port}", f"{os.getpid()}")

    def test_jobs_in_parallel_share_no_port_and_no_folder(self):
        jobs = [self.start_ranks(1, "sh", "-c", "echo $MASTER_PORT; read x; exit 0", stdin=subprocess.PIPE) for _ in range(12)]
        ports = [job.process.stdout.readline().strip() for job in jobs]
        self.assertEqual(len(set(ports)), 12, ports)
        for job in jobs:
            self.assert_ok(job.finish())
        self.assertEqual(len(list(self.folder.glob("runs/*/2*"))), 12)


class HostsOfOneMachine(JobTest):
    def test_are_waited_for_on_loopback_only(self):
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        listeners = ("for name in ('tcp', 'tcp6'):\n    for line in open(f'/proc/net/{name}'):\n        words = line.split()\n"
                     f"        if words[3] == '0A' and words[1].endswith(':{port:04X}'): print('listens at', words[1])\n")
        shell = ["sh", "-c", 'exec "$@"']
        for root, expected in (("", f"listens at 0100007F:{port:04X}\n"), ("root = \"localhost\"\n", None)):
            config = self.write(f"[job]\ncommand = [{json.dumps(sys.executable)}, \"-c\", {json.dumps(listeners)}]\n"
                                f"[cluster]\nhosts = [\"localhost\", \"127.0.0.2\"]\noversubscribe = true\nroot_port = {port}\n"
                                f"{root}remote_shell = {json.dumps(shell)}\n[logs]\nprefix = \"none\"\n")
            result = self.dtrun("--config", config)
            self.assert_ok(result)
            self.assertEqual(set(result.out.splitlines(True)) == {expected}, expected is not None, str(result))


if __name__ == "__main__":
    main()
