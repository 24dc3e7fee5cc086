"""`dtrun report`: one HTML file about a job, ended or running."""

import html.parser
import json
import os
import re
import shutil
import signal
import socket
import sys
import xml.etree.ElementTree

from support.job import main, until
from test_metrics import PACKAGE, MetricsTest

EVIL = "<script>alert(1)</script>"
FAILS = f"""import dtrun, os, time
for step in range(5):
    dtrun.metric("loss", 1 / (step + 1), step)
    time.sleep(0.3)
print({EVIL!r} * 2, flush=True)
if os.environ["RANK"] == "1":
    raise RuntimeError({EVIL!r})
time.sleep(1000)
"""
VOID = {"meta", "input", "br", "link", "img"}


class Page(html.parser.HTMLParser):
    """The elements and texts of a page; fails where a tag is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        last = self.open.pop()
        assert last == tag, f"</{tag}> ends <{last}>"

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


class Report(MetricsTest):
    def report(self, *words):
        result = self.dtrun("report", *words)
        self.assert_ok(result)
        return result.out.strip()

    def read(self, file):
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        page = Page(text)
        self.assertNotIn("script", page.tags)
        self.assertFalse([name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href")])
        self.assertNotRegex(text, r"url\(|@import|https?://")
        for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
            xml.etree.ElementTree.fromstring(picture)
        return page

    def failed_job(self, **more):
        self.write(FAILS, "train.py")
        config = self.write(f'[job]\ncommand = ["{sys.executable}", "train.py", "--token", "sekret1234"]\nprocesses_per_host = 2\n'
                            '[job.env]\nDB_PASSWORD = "hunter2hunter2"\n[restart]\nmax = 1\nbackoff = "0s"\n')  # fmt: skip
        result = self.dtrun(config, env=self.environment(**PACKAGE), **more)
        self.assertEqual(result.code, 1, str(result))

    def test_a_failed_job(self):
        self.failed_job()
        file = self.report("latest")
        self.assertEqual(os.path.basename(file), "report.html")
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
        page = self.read(file)
        for wanted in ("rank 1 exited with code 1", EVIL, "loss", "generation 1 began with 2 ranks", "rank 1 failed first",
                       "user-error", "(secret)", "restart.max", "over steps"):  # fmt: skip
            self.assertIn(wanted, page.text)
        for secret in ("sekret1234", "hunter2hunter2"):
            self.assertNotIn(secret, page.text)
        self.assertGreaterEqual(page.tags.count("svg"), 3)
        self.assertIn("rect", page.tags)

    def test_it_is_written_where_it_should_be(self):
        self.failed_job()
        self.assertEqual(self.report("latest", "--out", "mine.html"), "mine.html")
        self.read(self.folder / "mine.html")
        printed = self.dtrun("report", "--out", "-")
        self.assert_ok(printed)
        self.assertEqual(printed.out[:15], "<!doctype html>")
        self.assert_user_error(self.dtrun("report", "latest", "--out", "/nowhere/x.html"), "/nowhere/x.html")
        self.assert_user_error(self.dtrun("report", "nojob"), "nojob")

    def test_a_running_job(self):
        job = self.start_reporting()
        until(lambda: self.points(job, "loss"), "a value")
        page = self.read(self.report(job.run_dir()))
        self.assertIn("running for", page.text)
        self.assertIn("loss", page.text)
        self.assert_ok(self.finish(job))

    def test_a_copied_folder_with_damaged_files(self):
        self.failed_job()
        run = self.folder / "copy"
        shutil.copytree((self.folder / self.report("latest")).parent, run)
        for name in ("metrics.jsonl", "events.log", "config.json"):
            whole = (run / name).read_bytes()
            (run / name).write_bytes(whole[: len(whole) * 2 // 3] + b"\xff\x00<script>")
        with open(run / "metrics.jsonl", "a", encoding="utf-8") as metrics:
            for name, value in ((EVIL, 1), ("x", 1e308), ("x", -1e308), ("x", "NaN"), ("y", 0), ("y", None)):
                metrics.write("\n" + json.dumps({"time": 1e9, "rank": 0, "name": name, "value": value, "step": 1e300}))
        result = self.dtrun("report", run)
        self.assertEqual(result.code, 2, str(result))
        self.assertIn(str(run / "config.json"), result.err)
        page = self.read(result.out.strip())
        self.assertIn("rank 1 exited with code 1", page.text)

    def test_a_job_that_never_started(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.assert_user_error(self.ranks(1, "true", sets=[f"metrics.listen=127.0.0.1:{port}"]), "is in use")
        [run] = self.folder.glob("runs/*/2*")  # it has no plan, so it is not the latest run
        page = self.read(self.report(run))
        self.assertIn("not started", page.text)
        self.assertIn("is in use", page.text)

    def test_a_job_that_was_interrupted(self):
        job = self.start_reporting()
        job.signal(signal.SIGTERM)
        job.finish()
        self.assertIn("SIGTERM", self.read(self.report("latest")).text)


if __name__ == "__main__":
    main()
