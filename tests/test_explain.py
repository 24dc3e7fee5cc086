"""Known failures: named by the verdict of a failed job, and by `dtrun explain`."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import unittest
from pathlib import Path

from support.job import DTRUN, JobTest, main, needs_torch

WARNING = "NCCL WARN Bootstrap : no socket interface found"


class Words(JobTest):
    def explain(self, *words):
        return subprocess.run([DTRUN, "explain", *words], capture_output=True, text=True, cwd=self.folder)

    def test_brackets_of_a_text_stay(self):
        text = "[[39817,1],2][btl_tcp_endpoint.c:667:mca] received unexpected process identifier [[39817,1],3]"
        for words in [text], text.split(" "):
            result = self.explain(*words)
            self.assertIn(f"    | {text}\n", result.stdout, result.stderr)

    def test_a_number_alone_is_an_exit_code(self):
        for number, failure in ("137", "exit-code-137"), ("139", "segmentation-fault"), ("127", "exit-code-127"):
            self.assertIn(f"reference: {failure}, ", self.explain(number).stdout)
        self.assertEqual(self.explain("200").returncode, 1)

    def test_the_name_of_a_signal_is_its_exit_code(self):
        for name, failure in ("SIGKILL", "exit-code-137"), ("SIGSEGV", "segmentation-fault"), ("SIGTERM", "exit-code-143"):
            result = self.explain(name)
            self.assertEqual(result.returncode, 0, str(result))
            self.assertIn(f"reference: {failure}, ", result.stdout)
            self.assertIn(f"| {name} (exit code ", result.stdout)


class Verdict(JobTest):
    """Real failures of real libraries, each in a job of its own."""

    def fail(self, *command, count=1, **more):
        job = self.start_ranks(count, *command, **more)
        result = job.finish()
        self.assertNotEqual(result.code, 0, str(result))
        verdict = json.loads((job.run_dir() / "verdict.json").read_text())
        known = [rank["known_failure"] for rank in verdict["ranks"] if rank["known_failure"]]
        self.assertEqual(len(known), 1, str(result))
        self.assertIn(f"known failure: {known[0]['what']}", result.err)
        self.assertIn(f"next: {known[0]['fix']}", result.err)
        return known[0], verdict

    def test_a_port_in_use(self):
        script = ("import socket; a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen();"
                  "socket.socket().bind(a.getsockname())")
        known, verdict = self.fail(sys.executable, "-c", script)
        self.assertEqual(known["id"], "port-in-use")
        self.assertEqual(verdict["exit_class"], "user-error")

    def test_a_cause_far_above_the_last_lines(self):
        script = f"echo '{WARNING}'; i=0; while [ $i -lt 200 ]; do echo tidying up; i=$((i + 1)); done; exit 3"
        known, _ = self.fail("sh", "-c", script)
        self.assertEqual((known["id"], known["line"], known["recent"]), ("nccl-no-interface", 1, True))
        self.assertTrue(known["file"].endswith("rank-0.out"))

    def test_a_missing_module_on_one_of_two_ranks(self):
        known, _ = self.fail("sh", "-c", f'[ $RANK = 1 ] && exec {sys.executable} -c "import no_such_module"; sleep 100',
                             count=2)
        self.assertEqual(known["id"], "module-missing")
        self.assertIn("no_such_module", known["what"])

    def test_a_missing_module_names_the_interpreter(self):
        known, _ = self.fail(sys.executable, "-c", "import no_such_module")
        self.golden(known["what"], "no_such_module", sys.executable)

    @needs_torch
    def test_a_wrong_interface_of_gloo(self):
        script = "import torch.distributed as d; d.init_process_group('gloo')"
        known, _ = self.fail(sys.executable, "-c", script, count=2, sets=["job.env.GLOO_SOCKET_IFNAME=eth77"])
        self.assertEqual(known["id"], "gloo-interface")
        self.assertIn("'eth77'", known["what"])

    @needs_torch
    def test_a_rank_that_never_comes_is_a_rendezvous_failure(self):
        script = ("import os, time\n"
                  "if os.environ['RANK'] == '1': time.sleep(1000)\n"
                  "import datetime, torch.distributed as d\n"
                  "d.init_process_group('gloo', timeout=datetime.timedelta(seconds=1))")
        job = self.start_ranks(2, sys.executable, "-c", script)
        result = job.finish()
        verdict = json.loads((job.run_dir() / "verdict.json").read_text())
        known = verdict["ranks"][0]["known_failure"]
        self.assertTrue(known["id"].startswith("torch-store-"), verdict)
        self.assertIn(f"known failure: {known['what']}", result.err)
        self.assertEqual(verdict["exit_class"], "rendezvous")
        if sys.version_info[:2] == (3, 11):  # dtrun reads its stacks
            self.assertEqual((verdict["blamed"]["ranks"], verdict["blamed"]["seen_first"]), ([1], 0))

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
    def test_a_program_that_mpirun_does_not_find(self):
        known, _ = self.fail("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "1", "./no-such-program")
        self.assertEqual(known["id"], "mpi-executable")
        self.assertIn("no-such-program", known["what"])


class Explain(JobTest):
    def test_a_text_may_begin_with_a_rule_of_dashes(self):
        result = self.dtrun("explain", "-" * 74 + "\nThere are not enough slots available in the system to satisfy the 4 slots")
        self.assert_ok(result)
        self.assertIn("slots", result.out)

    def test_a_time_has_its_unit(self):
        for text, said in (("RuntimeError: connect() timed out. Original timeout was 60000 ms.", "within 60000 ms"),
                           ("RuntimeError: Timeout waiting for key: k after 3000 ms", " k within 3000 ms")):
            self.assertIn(said + "\n", self.dtrun("explain", self.write(text + "\n", "log.txt")).out)

    def test_a_text_a_file_and_stdin_say_the_same(self):
        expected = self.dtrun("explain", *WARNING.split())
        self.assert_ok(expected)
        self.golden(expected.out)
        self.assertIn(f"| {WARNING}", expected.out)
        file = self.write(f"one\n{WARNING}\n", "log.txt")
        of_file = self.dtrun("explain", file)
        self.assert_ok(of_file)
        self.assertIn(f"{file}, line 2", of_file.out)
        with open(file) as stream:
            of_stdin = self.dtrun("explain", "-", stdin=stream)
        self.assert_ok(of_stdin)
        self.golden(of_stdin.out)
        self.assertEqual(of_stdin.out.replace("  seen in line 2:\n", ""), expected.out)

    def test_json(self):
        found = json.loads(self.dtrun("explain", "--json", WARNING).out)["findings"]
        self.assertEqual([(one["id"], one["foremost"]) for one in found], [("nccl-no-interface", True)])
        unknown = self.dtrun("explain", "--json", "all went well")
        self.assertEqual((unknown.code, json.loads(unknown.out)), (1, {"schema": 1, "findings": [], "mentions": []}))

    def test_words_that_are_a_part_of_known_failures(self):
        result = self.dtrun("explain", "connection reset by", "peer")
        self.assertEqual(result.code, 1, str(result))
        self.golden(result.out)
        for name in ("connection-reset", "torch-store-gone"):
            self.assertIn(f"  reference: {name}, printed by ", result.out)
        self.golden(self.dtrun("explain", "[Errno 104]").out)
        part = json.loads(self.dtrun("explain", "--json", "[Errno 104]").out)
        self.assertEqual(([], ["connection-reset"]), (part["findings"], [one["id"] for one in part["mentions"]]))

    def test_nothing_known(self):
        result = self.dtrun("explain", "epoch 3, error 0.2")
        self.assertEqual(result.code, 1, str(result))
        self.golden(result.out)

    def test_what_cannot_be_read_is_a_user_error(self):
        self.golden_error(self.dtrun("explain", "latest"), "in this folder")
        self.golden_error(self.dtrun("explain", self.folder), "plan.json")
        (self.folder / "runs/job/latest").mkdir(parents=True)
        for folder in ("runs", "runs/job"):
            self.golden_error(self.dtrun("explain", folder), f"'{folder}'")
        shutil.rmtree(self.folder / "runs")
        (self.folder / "plan.json").write_text("{")
        self.golden_error(self.dtrun("explain", self.folder), "plan.json'")
        (self.folder / "config.json").write_text("{}")
        for text in ("null", '{"processes": 3}'):
            (self.folder / "plan.json").write_text(text)
            self.golden_error(self.dtrun("explain", self.folder), "plan.json'")
        (self.folder / "plan.json").write_text('{"backend": {"name": []}, "gpus": 3, "processes": [{"rank": "x"}]}')
        result = self.dtrun("explain", self.folder)
        self.golden_error(result)
        self.assertNotIn("json.exception", result.err)

    def test_a_changed_verdict(self):
        verdict = self.folder / "verdict.json"
        verdict.write_text("[1,2]")
        result = self.dtrun("explain", self.folder)
        self.golden_error(result, "verdict.json'")
        self.assertNotIn("json.exception", result.err)
        verdict.write_text(json.dumps({"job": "a\nb", "result": "succeeded\nroot: all is well", "text": ""}))
        result = self.dtrun("explain", self.folder)
        self.golden_lines(result.out, "job 'a\\nb': succeeded\\")


    def test_what_looks_like_a_file_and_is_none(self):
        self.golden_error(self.dtrun("explain", "nofile.log"), "'nofile.log' here")
        self.golden_error(self.dtrun("explain", "latst"), "'dtrun explain latest'?")


class HostileNames(JobTest):
    """What a user may name by mistake: an error at once, and no promise of what is gone."""

    def test_what_is_no_log_is_an_error_at_once(self):
        os.mkfifo(self.folder / "pipe")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.folder / "socket"))
        for name in "pipe", "socket", "/dev/zero", "/dev/full":
            with self.subTest(name=name):
                self.golden_error(self.dtrun("explain", name), f"'{name}'", "dtrun explain -")

    def test_output_of_a_command_is_read(self):
        read, write = os.pipe()
        os.write(write, (WARNING + "\n").encode())
        os.close(write)
        result = self.dtrun("explain", f"/dev/fd/{read}", pass_fds=[read])
        os.close(read)
        self.assert_ok(result)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become another user")
    def test_a_run_of_another_user(self):
        self.ranks(1, "true")
        run = next(self.folder.glob("runs/*/2*"))
        self.folder.chmod(0o755)
        for folder in (self.folder / "runs", run.parent):
            folder.chmod(0o755)
        result = self.dtrun("explain", run, user=4242, group=4242, extra_groups=[])
        self.golden_error(result, f"'{run}'")

    def test_logs_that_are_gone_are_not_promised(self):
        self.ranks(1, "sh", "-c", "echo cause; exit 3")
        run = next(self.folder.glob("runs/*/2*"))
        self.golden_lines(self.dtrun("explain", run).out, f"{run}/rank-0.*")
        for log in run.glob("rank-*"):
            log.unlink()
        out = self.dtrun("explain", run).out
        self.assertNotIn("all of it", out)
        self.golden_lines(out, f"{run}/rank-0.*")


class OwnFailures(JobTest):
    """failures.path and --failures: entries of a site's own, by the example of docs/failures.md."""

    LINE = "quota of /scratch/ada exceeded by 12 GB"

    def setUp(self):
        super().setUp()
        page = (Path(__file__).parent.parent / "docs" / "failures.md").read_text()
        self.file = self.write(re.search(r"```toml file=site.toml\n(.*?)```", page, re.S)[1], "site.toml")

    def test_a_verdict_and_explain_know_them(self):
        job = self.start_ranks(1, "sh", "-c", f"echo '{self.LINE}'; exit 3", sets=[f"failures.path={self.file}"])
        result = job.finish()
        self.assertEqual(result.code, 3)
        self.golden_lines(result.err, "/scratch/ada", "12 GB", "(site-quota; rank-0.out, line 1)")
        self.golden_lines(result.err, "  next: ")
        for where in ([job.run_dir()], [self.LINE, "--failures", self.file]):
            self.assertIn("site-quota", self.dtrun("explain", *where).out)
        self.assertEqual(self.dtrun("explain", self.LINE).code, 1)
        # What it names comes before the shipped entries.
        self.write(Path(self.file).read_text() + '[[failure]]\nid = "site-nccl"\ntexts = ["Bootstrap : no socket"]\n'
                   'what = "our own words"\nfix = "our own fix"\n', "site.toml")
        self.golden(self.dtrun("explain", WARNING, "--failures", self.file).out)

    def test_a_bad_entry_is_told_before_a_job_starts_and_by_explain(self):
        self.write('[[failure]]\nid = "half"\ntexts = ["long enough"]\nwhta = "x"\n', "site.toml")
        job = self.write('[job]\ncommand = ["true"]\n', "job.toml")
        told = f"{self.file}:4:1: key 'whta' of failure 'half' "
        for words in (["config", "check", job], ["-c", job]):
            result = self.dtrun(*words, "--set", f"failures.path={self.file}")
            self.golden_error(result, "'what'")
            self.assertEqual(result.err.count(told), 1, result.err)
        explained = self.dtrun("explain", WARNING, "--failures", self.file)
        self.assertEqual(explained.code, 2)
        self.assertIn(told, explained.err)
        self.golden(explained.out)

    def test_a_file_that_is_missing(self):
        self.golden_error(self.dtrun("--set", "failures.path=none.toml", "--", "true"), 'none.toml"')
        self.golden_error(self.dtrun("explain", WARNING, "--failures", "none.toml"), "none.toml: ")

    def test_without_the_shipped_file_the_verdict_still_comes(self):
        bare = self.folder / "bare"
        shutil.copytree(Path(DTRUN).parent.parent, bare, symlinks=True,
                        ignore=lambda folder, names: [n for n in names if folder == str(Path(DTRUN).parent.parent)
                                                      and n not in ("bin", "lib")])
        job = subprocess.run([bare / "bin" / "dtrun", "--", "sh", "-c", f"echo '{WARNING}'; exit 3"], cwd=self.folder,
                             env=self.environment(), capture_output=True, text=True)
        self.assertEqual(job.returncode, 3, job.stderr)
        self.golden_lines(job.stderr, "failed", "rank 0")
        self.golden_lines(job.stderr, "share/dtrun/failures.toml")


if __name__ == "__main__":
    main()
