"""The user's runs on this host: they are listed and found by name, from any folder."""

import json
import os
import shutil
import subprocess

from support.job import DTRUN, JobTest, free_port, main, until


class Runs(JobTest):
    def jobs(self, *flags):
        result = self.dtrun("ps", "--json", *flags)
        self.assert_ok(result)
        return json.loads(result.out)

    def test_a_job_whose_hosts_join_tells_which_are_missing(self):
        port = free_port()
        job = self.start("torchrun", "--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", f"--master-port={port}",
                         f"--log-dir={self.folder / 'logs'}", "--no-python", "true")
        missing = f"1 of 2 hosts joined; 1 missing; waiting at 127.0.0.1:{port}"
        folder = until(lambda: next(iter(self.folder.glob("logs/*/control")), None), "the control socket").parent
        until(lambda: f"  hosts      {missing}" in self.dtrun("explain", folder).out, "the missing host")
        self.assertIn(missing, self.dtrun("ps").out)
        self.assertIn(missing, self.dtrun("top", folder, "--seconds=0.1").out)
        self.golden_error(self.dtrun("stacks", folder), missing)
        self.assert_ok(self.dtrun("stop", folder))
        self.assertEqual(job.finish().code, 2)  # torchrun's form: no rank ran

    def test_live_jobs_come_first_and_past_ones_say_how_they_ended(self):
        live = self.start("-n", "2", "--set", "job.name=live", "sh", "-c", "echo ready; exec sleep 1000")
        live.wait_for_line(0, "ready")
        live.wait_for_line(1, "ready")
        self.assert_ok(self.dtrun("--set", "job.name=good", "--", "true"))
        self.assertEqual(self.dtrun("--set", "job.name=bad", "--", "sh", "-c", "exit 3").code, 3)
        jobs = self.jobs()["jobs"]
        self.assertEqual([(job["job"], job["state"], job["ranks"], job["hosts"], job["live"]) for job in jobs],
                         [("live", "running", 2, 1, True), ("bad", "failed: user-error", 1, 1, False), ("good", "ok", 1, 1, False)])
        self.assertIn("ranks 0, 1", until(lambda: self.jobs()["jobs"][0]["places"], "their places"))
        self.assertIsNone(jobs[1]["places"])
        shown = self.dtrun("ps")
        self.assert_ok(shown)
        table = [line for line in shown.out.splitlines() if not line.startswith("  ")]
        self.assertEqual([line.split()[0] for line in table], ["JOB", "live", "bad", "good"])
        self.assertLessEqual(max(map(len, table)), 80, shown.out)
        self.assertIn("\n  runs/good/2", shown.out)
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        stop = subprocess.run([DTRUN, "stop", "live"], cwd=elsewhere, env=self.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(stop.returncode, 0, stop.stderr)
        self.assertEqual(live.finish().code, 143)
        self.assertFalse(self.jobs()["jobs"][0]["live"])

    def test_older_runs_are_counted_and_shown_when_asked_for(self):
        self.golden(self.dtrun("ps").out)
        self.assert_ok(self.dtrun("--set", "job.name=one", "--", "true"))
        links = self.folder / ".state/dtrun/jobs"
        link = next(links.iterdir())
        for number in range(11):
            run = self.folder / f"copy-{number}"
            run.mkdir()
            (links / link.name.replace("-one-", f"-copy{number}-")).symlink_to(run)
        self.assertEqual((len(self.jobs()["jobs"]), self.jobs()["omitted"]), (10, 2))
        self.assertTrue(self.dtrun("ps").out.endswith("2 older runs: dtrun ps --all\n"))
        jobs = self.jobs("--all")["jobs"]
        self.assertEqual(len(jobs), 12)
        self.assertEqual({job["state"] for job in jobs if job["job"] != "one"}, {"no verdict"})

    def test_a_registry_that_cannot_be_written_is_not_told(self):
        (self.folder / ".state").write_text("a file")
        result = self.dtrun("--", "true")
        self.assert_ok(result)
        self.assertNotIn(".state", result.err)
        self.assertEqual(self.jobs()["jobs"], [])

    def test_a_wrong_name_is_an_error_with_the_nearest(self):
        self.assert_ok(self.dtrun("--set", "job.name=training", "--", "true"))
        self.golden_error(self.dtrun("stop", "trainign"), "'trainign'", "'training'?")

    def test_ended_runs_are_removed_when_it_is_confirmed(self):
        for _ in range(3):
            self.assert_ok(self.dtrun("--set", "job.name=many", "--", "true"))
        self.assert_ok(self.dtrun("--set", "job.name=mixed", "--", "true"))
        mixed = next(self.folder.glob("runs/mixed/2*"))
        (mixed / "weights.bin").touch()
        live = self.start_ranks(1, "sh", "-c", "echo ready; exec sleep 1000", sets=["job.name=live"])
        live.wait_for_line(0, "ready")

        def names(job):
            return sorted(run.name for run in self.folder.glob(f"runs/{job}/2*"))

        many = names("many")
        self.golden(self.dtrun("runs", "clean", "--keep", "9").out)
        dry = self.dtrun("runs", "clean", "--keep", "0", "--dry-run")
        self.assertEqual(dry.code, 1, "a run cannot go")
        self.assertIn("weights.bin", dry.err)
        self.assertNotIn("runs/mixed", dry.out)
        unasked = self.dtrun("runs", "clean", "--keep", "0")
        self.golden_error(unasked)
        self.assertEqual(names("many"), many)
        self.assertEqual(self.answered("n", "many", "--keep", "1").returncode, 1)
        self.assertEqual(names("many"), many)
        self.assertEqual(self.answered("y", "many", "--keep", "1").returncode, 0)
        self.assertEqual(names("many"), many[-1:])
        self.assertEqual((self.folder / "runs/many/latest").resolve().name, many[-1])
        rest = self.dtrun("runs", "clean", "--keep", "0", "--yes")
        self.assertEqual((rest.code, names("many"), names("mixed")), (1, [], [mixed.name]), str(rest))
        self.assertIn("weights.bin", rest.err)
        self.assertFalse((self.folder / "runs/many/latest").is_symlink())
        self.assertEqual(len(names("live")), 1)
        self.assertEqual([job["job"] for job in self.jobs()["jobs"]], ["live", "mixed"])
        self.assert_ok(self.dtrun("stop", "live"))
        live.finish()

    def test_a_copy_of_an_old_run_displaces_no_newer_one(self):
        for _ in range(2):
            self.assert_ok(self.dtrun("--set", "job.name=many", "--", "true"))
        old, new = sorted(self.folder.glob("runs/many/2*"))
        copy, part = old.with_name("copy"), old.with_name("20200101-000000")
        shutil.copytree(old, copy)
        shutil.copytree(old, part)
        (part / "events.log").unlink()
        cleaned = self.dtrun("runs", "clean", "--keep", "1", "--yes")
        self.assert_ok(cleaned)
        self.assertEqual(set(self.folder.glob("runs/many/[!l]*")), {copy, part, new}, str(cleaned))
        self.assertIn(f"'{copy}' is a copy of '{old}'", cleaned.err)
        self.assertIn(f"kept: '{part}'", cleaned.err)

    def answered(self, answer, *words):
        """`dtrun runs clean WORDS`, asked on a terminal."""
        main, terminal = os.openpty()
        with os.fdopen(main, "wb", buffering=0) as user, os.fdopen(terminal, "rb") as asked:
            user.write(f"{answer}\n".encode())
            return subprocess.run([DTRUN, "runs", "clean", *words], cwd=self.folder, env=self.environment(), stdin=asked,
                                  capture_output=True, text=True, check=False)

    def test_logs_are_printed_filtered_and_followed(self):
        script = "echo one $RANK; echo two $RANK; echo bad $RANK >&2; printf end; [ $RANK = 0 ] || exit 3"
        self.assertEqual(self.dtrun("-n", "2", "--set", "job.name=talk", "sh", "-c", script).code, 3)
        logs = self.dtrun("logs", "talk")
        self.assert_ok(logs)
        self.assertEqual(logs.out.splitlines()[:4], ["[0] bad 0", "[0] one 0", "[0] two 0", "[0] end"])
        self.assertEqual(self.dtrun("logs", "--rank", "1", "--grep", "^(one|two)").out, "[1] one 1\n[1] two 1\n")
        self.assertEqual(self.dtrun("logs", "--rank", "1", "--tail", "1").out, "[1] bad 1\n[1] end\n")
        self.assertEqual(self.dtrun("logs", "-f").code, 3)
        self.golden_error(self.dtrun("logs", "--grep", "a(b"), "--grep 'a(b'")
        self.golden_error(self.dtrun("logs", "--rank", "x"), "'x'")
        self.assertEqual(self.dtrun("logs", "--rank", "7").code, 1)
        self.assert_ok(self.dtrun("--set", "job.name=bar", "--", "printf", r"1%%\r2%%\r3%%\n4%%\r5%%"))
        self.assertEqual(self.dtrun("logs", "bar").out, "[0] 3%\n[0] 5%\n")
        live = self.start_ranks(1, "sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo late; exit 5")
        live.wait_for_line(0, "begun")
        follow = self.start("logs", "-f")
        (self.folder / "go").touch()
        self.assertEqual(live.finish().code, 5)
        done = follow.finish()
        self.assertEqual((done.code, done.out), (5, "[0] begun\n[0] late\n"))


if __name__ == "__main__":
    main()
