"""dtrun.spark.run: barrier tasks of PySpark as the hosts of a job, in local mode and on a cluster of two workers.

Runs where `tools/setup frameworks` has fetched pyspark, into build/frameworks.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from support.frameworks import needs
from support.job import SOURCE, main, skip
from support.python import FAILS_EARLY, PythonTest
from support.spark import Cluster, executor_in

PYTHON = SOURCE / "build/frameworks/bin/python3"
DRIVER = """
import os, sys, time
import dtrun, dtrun.spark
from pyspark.sql import SparkSession

def total(start, step=1):
    with dtrun.init() as world:
        value = bytearray((start + step * world.rank).to_bytes(8, "little"))
        world.allreduce(memoryview(value).cast("q"))
        print("folder", os.getcwd(), flush=True)
        return world.rank, world.size, int.from_bytes(value, "little")

def one_fails():
    if os.environ["RANK"] == "1":
        raise KeyError("no such column")
    time.sleep(1000)

def wait():
    print("waiting in", os.getcwd(), flush=True)
    time.sleep(1000)

def outcome(function, *arguments, **named):
    try:
        print("returned", function(*arguments, **named), flush=True)
    except dtrun.JobFailed as error:
        print(f"JobFailed: {error}\\nrank {error.rank}, code {error.exit_code}, class", error.verdict and error.verdict["exit_class"], flush=True)
    except ValueError as error:
        print(f"{type(error).__name__}: {error}", flush=True)

spark = (SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
         .config("spark.executor.memory", "512m").config("spark.driver.memory", "512m")
         .config("spark.executorEnv.TEST_MARK_OF_DTRUN", os.environ["TEST_MARK_OF_DTRUN"]).getOrCreate())
"""


def folders_of_tasks():
    return set(Path("/tmp").glob("dtrun-spark-*-*"))


class SparkTest(PythonTest):
    master = "local[3]"

    def environment(self, **more):
        here = {"PYSPARK_PYTHON": str(PYTHON), "PYSPARK_DRIVER_PYTHON": str(PYTHON), "SPARK_LOCAL_IP": "127.0.0.1"}
        return super().environment(**{**here, **more})

    def setUp(self):
        super().setUp()
        self.before = folders_of_tasks()

    def tearDown(self):
        super().tearDown()
        self.assertEqual(folders_of_tasks() - self.before, set(), "folders of tasks are left")

    def start_driver(self, text):
        return self.start_python(DRIVER + text, self.master, python=PYTHON)

    def read_until(self, job, text, count=1):
        found = []
        while len(found) < count:
            line = job.process.stdout.readline()
            self.assertNotEqual(line, "", f"the driver ended before '{text}'")
            found += [line] if text in line else []
        return found


class Local(SparkTest):
    def test_results_failures_and_the_distributor(self):
        self.write("import sys\nprint('file got', sys.argv[1:])", "train.py")
        early = self.write(FAILS_EARLY, "sitecustomize.py").parent
        result = self.start_driver(
            "outcome(dtrun.spark.run, total, (1,), {'step': 10}, num_proc=3)\n"
            "outcome(dtrun.spark.run, one_fails, num_proc=2)\n"
            "outcome(dtrun.spark.run, one_fails, num_proc=2, config={'logs.dir': '/proc/nowhere'})\n"
            f"outcome(dtrun.spark.run, total, (1,), num_proc=2, env={{'PYTHONPATH': '{early}'}})\n"
            "parallelize, spark.sparkContext.parallelize = spark.sparkContext.parallelize, None  # no task may start\n"
            "outcome(dtrun.spark.run, one_fails, num_proc=2, config={'backend.nme': 'x'})\n"
            "spark.sparkContext.parallelize = parallelize\n"
            "outcome(dtrun.Distributor(2, local_mode=False, use_gpu=False).run, total, 7)\n"
            f"outcome(dtrun.Distributor(2, local_mode=False, use_gpu=False).run, '{self.folder}/train.py', 5)\n").finish()
        self.assert_ok(result)
        self.assertIn("returned [(0, 3, 33), (1, 3, 33), (2, 3, 33)]\n", result.out, str(result))
        self.assertIn("failed after", result.out)
        self.assertIn("in one_fails\n", result.out)
        self.assertIn("KeyError: 'no such column'\nrank 1, code 1, class user-error\n", result.out)
        self.assertIn("/proc/nowhere", result.out)
        self.assertIn("rank None, code 2, class None\n", result.out)
        self.assertRegex(result.out, "JobFailed: .*rank 1 .*code 3\n")
        self.assertIn("\nrank 1, code 3, class user-error\n", result.out)
        self.assertRegex(result.out, "InvalidArgument: dtrun.spark.run: --set backend.nme=x: .*'backend.name'")
        self.assertIn("returned (0, 2, 15)\n", result.out)
        for rank in range(2):
            self.assertIn(f"[{rank}] file got ['5']\n", result.out)

    def test_workers_of_tensorflow(self):
        result = self.start_driver("""
import json
from dtrun.spark.tensorflow import MirroredStrategyRunner

def config(name):
    seen = json.loads(os.environ["TF_CONFIG"])
    return name, len(seen["cluster"]["worker"]), seen["task"]

print("chief", MirroredStrategyRunner(num_slots=2, use_gpu=False, use_custom_strategy=True).run(config, name="a"))
print("local", MirroredStrategyRunner(num_slots=2, local_mode=True, use_gpu=False, use_custom_strategy=True).run(config, name="b"))
""").finish()
        self.assertIn("chief ('a', 2, {'type': 'worker', 'index': 0})\n", result.out, str(result))
        self.assertIn("local ('b', 2, {'type': 'worker', 'index': 0})\n", result.out)

    @needs("tensorflow")
    def test_a_strategy_of_tensorflow(self):
        result = self.start_driver("""
from dtrun.spark.tensorflow import MirroredStrategyRunner

def train(start):
    import tensorflow as tf
    strategy, value = tf.distribute.get_strategy(), tf.Variable(start)
    for _ in range(3):
        added = strategy.run(tf.function(lambda: tf.distribute.get_replica_context().all_reduce("sum", value + 1)))
        value.assign(strategy.experimental_local_results(added)[0])
    return type(strategy).__name__, strategy.num_replicas_in_sync, float(value.read_value())

print("trained", MirroredStrategyRunner(num_slots=2, use_gpu=False).run(train, start=1.0))
""").finish()
        self.assertIn("trained ('CollectiveAllReduceStrategy', 2, 22.0)\n", result.out, str(result))

    def test_ctrl_c_ends_every_rank(self):
        job = self.start_driver("dtrun.spark.run(wait, num_proc=2)")
        self.read_until(job, "waiting", 2)
        job.signal(signal.SIGINT)
        result = job.finish()
        self.assertIn("KeyboardInterrupt", result.err)


class Standalone(SparkTest):
    @classmethod
    def setUpClass(cls):
        cls.place = Path(tempfile.mkdtemp(prefix="dtrun-cluster-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        bare = SparkTest()
        bare.folder, bare.mark = cls.place, "TEST_MARK_OF_DTRUN=cluster"
        cls.cluster = Cluster(PYTHON, cls.place, bare.environment())
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        cls.master = cls.cluster.url

    def test_ranks_are_on_both_executors(self):
        job = self.start_driver("outcome(dtrun.spark.run, total, (1,), num_proc=4)")
        folders = {line.split()[-1] for line in self.read_until(job, "folder", 4)}
        self.assertEqual(len(folders), 2)
        result = job.finish()
        self.assertIn("returned [(0, 4, 10), (1, 4, 10), (2, 4, 10), (3, 4, 10)]", result.out, str(result))

    def test_a_lost_executor_ends_the_job_with_a_verdict(self):
        job = self.start_driver("outcome(dtrun.spark.run, wait, num_proc=4)")
        lines = self.read_until(job, "waiting", 4)
        folder = {line.split("]")[0].strip("["): line.split()[-1] for line in lines}
        lost = next(folder[rank] for rank in "123" if folder[rank] != folder["0"])
        os.kill(executor_in(lost), signal.SIGKILL)
        result = job.finish()
        self.assertRegex(result.out, "JobFailed: .*'wait' .*SIGTERM", str(result))
        self.assertIn("Spark: ExecutorLostFailure (executor", result.out)
        self.assertIn("rank None, code 143, class preemption\n", result.out)


if __name__ == "__main__":
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import pyspark"], capture_output=True, check=False).returncode != 0:
        skip(f"{PYTHON} has no pyspark: `tools/setup frameworks` fetches it from PyPI")
    if not shutil.which("java"):
        skip("there is no java, which Spark runs on: install default-jre-headless")
    main()
