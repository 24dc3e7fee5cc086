"""A standalone cluster of Spark on this machine: a master and two workers, each with an executor of its own."""

import re
import subprocess
from pathlib import Path

from support.job import end, until

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


class Cluster:
    def __init__(self, python, folder, env):
        """python: an interpreter that has pyspark; folder: for logs and the executors' working folders"""
        home = subprocess.run([python, "-c", "import pyspark; print(pyspark.__path__[0])"], capture_output=True, text=True, check=True)
        self.spark_class = Path(home.stdout.strip()) / "bin/spark-class"
        options = "-Dspark.master.rest.enabled=false -XX:TieredStopAtLevel=1"  # its port is fixed; a short life
        self.folder, self.env, self.processes = folder, {**env, "SPARK_DAEMON_JAVA_OPTS": options}, []

    def start(self):
        local = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self.run("master", MASTER, *local)
        self.url = self.said("master", r"Starting Spark master at (spark://\S+)")
        for name in ("worker0", "worker1"):
            self.run(name, WORKER, self.url, *local, "--cores", "2", "--memory", "1g", "--work-dir", self.folder / name)
        for name in ("worker0", "worker1"):
            self.said(name, r"(Successfully registered with master)")

    def run(self, name, *words):
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes.append(subprocess.Popen([self.spark_class, *words], env=self.env, stdin=subprocess.DEVNULL,
                                                   stdout=log, stderr=log))

    def said(self, name, pattern):
        log = self.folder / f"{name}.log"
        return until(lambda: re.search(pattern, log.read_text()), f"'{pattern}' in {log}").group(1)

    def stop(self):
        for process in reversed(self.processes):
            end(process)


def executor_in(folder):
    """Pid of the executor with this working folder."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if entry.joinpath("cwd").resolve() == Path(folder) and b"CoarseGrainedExecutorBackend" in entry.joinpath("cmdline").read_bytes():
                return int(entry.name)
        except OSError:
            continue  # gone
    raise AssertionError(f"no executor of Spark works in {folder}")
