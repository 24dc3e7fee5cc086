"""What dtrun.spark.run and dtrun.ray.run make of their tasks: here threads of this Python, without Spark and Ray."""

from support.job import main
from support.python import FAILS_EARLY, PythonTest

TASKS = """
import concurrent.futures, os, pickle, sys, time
import dtrun
from dtrun.tasks import member
from dtrun.tasks.driver import Driver

def outcome(word, config=None, **env):
    # The function is eval, which every rank finds.
    with Driver("dtrun.spark.run", eval, [word], None, 2, env, config, pickle.dumps) as driver:
        job, root = driver.job("127.0.0.1"), f"127.0.0.1:{member.free_port()}"
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            tasks = [pool.submit(member.take_part, job, index, lambda: root, dict) for index in range(2)]
    found = {index: task.result() for index, task in enumerate(tasks) if not task.exception()}
    try:
        print("returned", driver.results({index: data for index, data in found.items() if data is not None}, None))
    except dtrun.JobFailed as error:
        print(f"{error}\\nrank {error.rank}, code {error.exit_code}, class {error.verdict and error.verdict['exit_class']}, {error.traceback}")
"""

# Rank 1 returns in generation 0, whereupon rank 0 fails; what it does after the restart is in LATER.
RESTARTED = """
import atexit, os, pathlib, signal, sys, time
returned = pathlib.Path(os.environ["FOLDER"], "returned")

def rank():
    first, number = os.environ["DTRUN_GENERATION"] == "0", os.environ["RANK"]
    if number == "0":
        while first and not returned.exists():
            time.sleep(0.01)
        return 1 // (not first)
    if first:
        atexit.register(returned.touch)
        return "of the first generation"
    exec(os.environ["LATER"])
    return "of the second"
"""


class Tasks(PythonTest):
    def outcome(self, text):
        result = self.python(TASKS + text)
        self.assert_ok(result)
        return result.out

    def test_ranks_that_fail_before_the_first_hosts_begins(self):
        self.write(FAILS_EARLY, "sitecustomize.py")
        out = self.outcome(f"outcome('1', PYTHONPATH={str(self.folder)!r})")
        self.golden(out.splitlines()[0], "'eval'", "rank 1 ", "code 3")
        self.assertTrue(out.endswith("\nrank 1, code 3, class user-error, None\n"), out)

    def test_results_are_of_the_last_generation(self):
        self.write(RESTARTED, "restarted.py")
        call = "__import__('restarted').rank()"
        for later, end in (("pass", "returned [1, 'of the second']\n"),
                           ("sys.exit(0)", "rank 1, code 0, class None, None\n"),
                           ("os._exit(0)", "rank 1, code 0, class None, None\n")):
            with self.subTest(later=later):
                self.folder.joinpath("returned").unlink(missing_ok=True)
                out = self.outcome(f"sys.path.append({str(self.folder)!r})\noutcome({call!r}, {{'restart.max': 1}}, "
                                   f"FOLDER={str(self.folder)!r}, LATER={later!r})")
                self.assertTrue(out.endswith(end), out)

    def test_a_traceback_is_of_the_last_generation(self):
        word = ("1 // 0 if __import__('os').environ['RANK'] == '1' and __import__('os').environ['DTRUN_GENERATION'] == '0' else "
                "__import__('os').environ['RANK'] == '1' and __import__('os').kill(__import__('os').getpid(), 9)")
        out = self.outcome(f"outcome({word!r}, {{'restart.max': 1}})\noutcome('1 // 0')")
        killed, failed = out.split("\nrank 1, code 137, class signal, None\n")
        self.golden_lines(killed, "dtrun: job ", "rank 1 ", "signal 9")
        self.assertNotIn("ZeroDivisionError", killed)
        self.assertIn("class user-error, Traceback", failed)
        self.assertRegex(failed, r"\nZeroDivisionError: .*\n\n$")

    def test_options_that_are_wrong_are_refused_before_a_task_starts(self):
        out = self.outcome("""
for config in ({"job.grce": "1s"}, {"job": {"grace": "abc"}}, {"backend.name": "none", "python.horovod": "shim"}, {"job.grace": {1}}):
    try:
        Driver("dtrun.spark.run", eval, ["1"], None, 2, None, config, pickle.dumps)
    except ValueError as error:
        print(type(error).__name__, error)
""")
        lines = out.splitlines()
        self.assertEqual(len(lines), 4, out)
        for line, text in zip(lines, ("--set job.grce=1s: unknown option 'job.grce'; did you mean 'job.grace' (duration, default \"10s\")?",
                                      "--set job.grace=abc: expected a duration", "--set python.horovod=shim: \"shim\" needs a communicator",
                                      "config['job.grace'] is {1} (set); options are strings")):  # fmt: skip
            self.assertTrue(line.startswith(f"InvalidArgument dtrun.spark.run: {text}"), line)

    def test_options_are_those_of_the_tasks(self):
        # What this process would be told by its own variables, and where only the tasks' machines have dtrun.
        out = self.outcome("""
os.environ["DTRUN_CONFIG_JOB_GRACE"] = "abc"
Driver("dtrun.spark.run", eval, ["1"], None, 2, None, {"cluster.min_hosts": 1}, pickle.dumps)
try:
    Driver("dtrun.spark.run", eval, ["1"], None, 2, {"DTRUN_CONFIG_JOB_GRACE": "abd"}, None, pickle.dumps)
except ValueError as error:
    print(error)
os.environ["DTRUN_BIN"] = "/nowhere/dtrun"
Driver("dtrun.spark.run", eval, ["1"], None, 2, None, {"job.grce": "1s"}, pickle.dumps)
""")
        self.assertRegex(out, r'\Adtrun.spark.run: DTRUN_CONFIG_JOB_GRACE: .*found "abd".*\n\Z')


if __name__ == "__main__":
    main()
