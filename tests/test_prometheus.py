"""Debian's Prometheus reads the numbers of a running job at metrics.listen."""

import json
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request

from support.job import free_port, main, skip, until
from test_metrics import MetricsTest


class Prometheus(MetricsTest):
    def test_prometheus_scrapes_a_job(self):
        token = self.folder / "token"
        token.write_text("a" * 32 + "\n")
        token.chmod(0o600)
        job, address, port = self.start_serving(f"metrics.token_file={token}")
        own = free_port()
        config = self.write(f"""global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: training
    authorization: {{credentials_file: {token}}}
    static_configs: [{{targets: ["{address}:{port}"]}}]
""", "prometheus.yml")  # fmt: skip
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder}/tsdb", f"--web.listen-address=127.0.0.1:{own}"]
        with open(self.folder / "prometheus.log", "w", encoding="utf-8") as log, subprocess.Popen(command, stdout=log, stderr=log) as prometheus:
            try:
                self.assertEqual(until(lambda: self.values(own, "dtrun_job_ranks_alive"), "a scrape"), [2])
                self.assertEqual(self.values(own, 'count(dtrun_metric{name="loss"})'), [2])
                self.assertEqual(self.values(own, "dtrun_job_restarts_total"), [0])
                until(lambda: self.values(own, "rate(dtrun_rank_cpu_seconds_total[1m])"), "a rate")
                self.assertEqual(self.values(own, 'up{job="training"}'), [1])
            finally:
                prometheus.send_signal(signal.SIGTERM)
        self.assert_ok(self.finish(job))

    def values(self, port, query):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(query)}") as answer:
                return [float(one["value"][1]) for one in json.load(answer)["data"]["result"]]
        except OSError:
            return None  # it is starting


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        skip("there is no prometheus here: apt-get install --no-install-recommends prometheus")
    main()
