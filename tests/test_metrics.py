"""Numbers of a job: dtrun.metric and dtrun's own, in metrics.jsonl and at metrics.listen."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys

from support.job import PACKAGE, JobTest, main, until

REPORTS = """import dtrun, os, time
for step in range(20000):
    dtrun.metric("loss", 1 / (step + 1), step)
dtrun.metric("accuracy", float("nan"))
print("ready", flush=True)
while os.path.exists("more"):
    time.sleep(0.02)
"""


class MetricsTest(JobTest):
    def start_reporting(self, text=REPORTS, ranks=2, **more):
        (self.folder / "more").write_text("")
        env = self.environment(**PACKAGE)
        job = self.start_ranks(ranks, sys.executable, self.write(text, "train.py"), env=env, **more)
        for rank in range(ranks):
            job.wait_for_line(rank, "ready")
        return job

    def start_serving(self, *more, listen="127.0.0.1:0"):
        """A job that serves its numbers; its address and port."""
        job = self.start_reporting(sets=[f"metrics.listen={listen}", *more])
        told = re.fullmatch(r"http://(\S+):(\d+)/metrics\n", (job.run_dir() / "metrics.url").read_text(encoding="utf-8"))
        return job, told[1], int(told[2])

    def finish(self, job):
        (self.folder / "more").unlink()
        return job.finish()

    def points(self, job, name):
        file = until(job.run_dir, "a run directory") / "metrics.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [point for point in map(json.loads, lines) if point["name"] == name]


class Reported(MetricsTest):
    def test_the_newest_value_of_each_rank_reaches_the_run_folder(self):
        job = self.start_reporting()
        until(lambda: {point["rank"] for point in self.points(job, "loss")} == {0, 1}, "a value of each rank while the job runs")
        result = self.finish(job)
        self.assert_ok(result)
        for rank in range(2):
            points = [point for point in self.points(job, "loss") if point["rank"] == rank]
            self.assertEqual(points[-1]["step"], 19999)
            self.assertAlmostEqual(points[-1]["value"], 1 / 20000)
            self.assertLess(len(points), 100)  # what is newest once a second, not each
        self.assertEqual(self.points(job, "accuracy")[-1]["value"], "NaN")
        self.assertNotIn("step", self.points(job, "accuracy")[-1])

    def test_dtruns_own_numbers_are_there_and_no_verdict_has_any(self):
        job = self.start_reporting()
        until(lambda: len(self.points(job, "dtrun_rank_memory_bytes")) >= 2, "a sample")
        self.assertEqual(self.points(job, "dtrun_job_ranks_alive")[-1]["value"], 2)
        self.assertEqual(self.points(job, "dtrun_job_restarts_total")[-1]["value"], 0)
        self.assertGreater(self.points(job, "dtrun_rank_memory_bytes")[-1]["value"], 1 << 20)
        self.assertGreater(self.points(job, "dtrun_rank_cpu_seconds_total")[-1]["value"], 0)
        self.assert_ok(self.finish(job))
        for name in ("verdict.json", "events.log"):
            self.assertNotIn("loss", (job.run_dir() / name).read_text(encoding="utf-8"))

    def test_ranks_that_restart_report_again(self):
        fails_first = 'if os.environ["DTRUN_GENERATION"] == "0":\n    os._exit(3)\n'
        (self.folder / "more").write_text("")
        job = self.start_ranks(2, sys.executable, self.write(REPORTS.replace("for step", fails_first + "for step"), "train.py"),
                               sets=["restart.max=1"], env=self.environment(**PACKAGE))
        until(lambda: self.points(job, "dtrun_job_restarts_total"), "a sample")
        self.assertEqual(self.points(job, "dtrun_job_restarts_total")[-1]["value"], 1)
        self.assert_ok(self.finish(job))
        self.assertEqual({point["rank"] for point in self.points(job, "loss")}, {0, 1})

    def test_no_effect_without_dtrun_and_in_a_forked_child(self):
        text = """import dtrun, os
dtrun.metric("loss", 1, 1)
child = os.fork()
if child == 0:
    dtrun.metric("loss", 2, 2)
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
try:
    dtrun.metric("train/loss", 1)
except dtrun.InvalidArgument as error:
    print(error)
for wrong in (("a\\0b", 1), (None, 1), ("loss", 1, 2**63), ("loss", 1, 1.5), ("loss", "a", 1)):
    try:
        dtrun.metric(*wrong)
        print("no error for", wrong)
    except dtrun.InvalidArgument:
        pass
"""
        for under_dtrun in (False, True):
            with self.subTest(under_dtrun=under_dtrun):
                if under_dtrun:
                    result = self.ranks(1, sys.executable, "-c", text, env=self.environment(**PACKAGE))
                    self.assert_ok(result)
                    out = result.out
                    self.assertEqual([json.loads(line)["step"] for line in (self.newest() / "metrics.jsonl").read_text().splitlines()], [1])
                else:
                    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, **PACKAGE}, capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    out = done.stdout
                self.assertIn("use 'train_loss'", out)
                self.assertNotIn("no error", out)

    def newest(self):
        return max(self.folder.glob("runs/*/*/verdict.json"), key=os.path.getmtime).parent


class Served(MetricsTest):
    def get(self, port, path="/metrics", method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode(), response.headers

    def test_the_page_is_openmetrics(self):
        job, _, port = self.start_serving()
        page = until(lambda: (lambda text: text if 'dtrun_metric{name="loss",rank="1"' in text else None)(self.get(port)[1]), "a value")
        status, _, headers = self.get(port)
        self.assertEqual((status, headers["Content-Type"]), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
        self.assertTrue(page.endswith("# EOF\n"))
        self.assertIn("dtrun_job_ranks_alive 2\n", page)
        self.assertIn('dtrun_job_state{dtrun_job_state="running"} 1\n', page)
        self.assertRegex(page, r'dtrun_rank_cpu_seconds_total\{rank="0",host="[^"]+"\} [0-9.e-]+\n')
        self.assertRegex(page, r'dtrun_metric_step\{name="loss",rank="0",host="[^"]+"\} [0-9]+\n')
        self.assert_is_openmetrics(page)
        self.assertEqual(self.get(port, "/")[0], 404)
        self.assertEqual(self.get(port, method="POST")[0], 405)
        self.assert_ok(self.finish(job))
        with self.assertRaises(OSError):
            self.get(port)

    def assert_is_openmetrics(self, page):
        """Each sample follows the description of its family, and each family is described once."""
        family, seen = None, set()
        for line in page.removesuffix("# EOF\n").splitlines():
            if line.startswith("# TYPE "):
                family = line.split()[2]
                self.assertNotIn(family, seen)
                seen.add(family)
            elif line.startswith("# "):
                self.assertEqual(line.split()[2], family)
            else:
                self.assertRegex(line, rf"^{family}(_total|_info)?(\{{[a-z_]+=.*\}})? (NaN|[0-9.e+-]+)$")

    def test_clients_that_misbehave_disturb_nothing(self):
        job, address, port = self.start_serving()
        silent = [socket.create_connection((address, port)) for _ in range(64)]
        for number, client in enumerate(silent[-8:]):
            client.sendall([b"\x16\x03\x01" * 50, b"GET /" + b"a" * 100000, b"\0" * 100, b"GET /metrics HTTP/1.1\r\n"][number % 4])
        self.assertEqual(self.get(port)[0], 200)
        for client in silent:
            client.close()
        self.assert_ok(self.finish(job))

    def test_beyond_loopback_it_needs_a_token(self):
        result = self.ranks(1, "true", sets=["metrics.listen=0.0.0.0:0"])
        self.assert_user_error(result, "metrics.listen", "metrics.token_file")
        token = self.folder / "token"
        token.write_text("a" * 32 + "\n")
        token.chmod(0o644)
        sets = ["metrics.listen=0.0.0.0:0", f"metrics.token_file={token}"]
        self.assert_user_error(self.ranks(1, "true", sets=sets), "chmod 600")
        token.chmod(0o600)
        job, _, port = self.start_serving(f"metrics.token_file={token}", listen="0.0.0.0:0")
        self.assertEqual(self.get(port)[0], 401)
        self.assertEqual(self.get(port, Authorization="Bearer " + "b" * 32)[0], 401)
        self.assertEqual(self.get(port, Authorization="Bearer " + "a" * 32)[0], 200)
        result = self.finish(job)
        self.assert_ok(result)
        for file in job.run_dir().rglob("*"):
            if file.is_file():
                self.assertNotIn("a" * 32, file.read_text(encoding="utf-8", errors="replace"), file)

    def test_a_port_in_use_and_a_wrong_address_are_told_before_ranks_start(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = self.ranks(1, "echo", "started", sets=[f"metrics.listen=127.0.0.1:{port}"])
        self.assert_user_error(result, "metrics.listen", f"port {port} is in use", f"process {os.getpid()}")
        self.assertNotIn("started", result.out)
        self.assert_user_error(self.ranks(1, "true", sets=["metrics.listen=9400"]), "metrics.listen", "127.0.0.1:9400")


if __name__ == "__main__":
    main()
