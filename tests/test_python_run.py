"""dtrun.run and dtrun.Distributor: functions as ranks, without packages beyond Python's own."""

import re
import signal
import subprocess

from support.job import SOURCE, main, until
from support.python import FAILS_EARLY, PythonTest

# Python has looked for signals, and is about to wait for the first output.
EARLY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
int epoll_wait(int epoll, struct epoll_event* events, int most, int timeout) {
  static int done;
  if (!done++ && strncmp(program_invocation_short_name, "python", 6) == 0) raise(SIGINT);
  return ((int (*)(int, struct epoll_event*, int, int))dlsym(RTLD_NEXT, "epoll_wait"))(epoll, events, most, timeout);
}
"""
FUNCTIONS = """
import dtrun, os, pathlib, signal, sys, threading, time
sys.modules["cloudpickle"] = None  # as where it is not installed

def total(start, step=1):
    with dtrun.init() as world:
        value = bytearray((start + step * world.rank).to_bytes(8, "little"))
        world.allreduce(memoryview(value).cast("q"))
        return world.rank, world.size, int.from_bytes(value, "little")

def wait_for(file):
    print("waiting", flush=True)
    while not os.path.exists(file):
        time.sleep(0.01)
    return os.environ["RANK"]

def one_fails(how):
    if os.environ["RANK"] == "1":
        how()
    time.sleep(1000)

def ends_on(rank, how, *words):
    if os.environ["RANK"] == str(rank):
        how(*words)

def first_time_fails():
    if os.environ["DTRUN_GENERATION"] == "0":
        raise ValueError("too early")
    return f"{os.environ['RANK']} of {os.environ['DTRUN_GENERATION']}"

def refuse(): raise KeyError("no such column")
def die(): os.kill(os.getpid(), signal.SIGKILL)
def kill_the_agent(): os.kill(os.getppid(), signal.SIGKILL)
def leave(): sys.exit(7)
def unpicklable(): return {"kept": [threading.Lock()]}

class Unloadable:
    def __reduce__(self): return dict.__getitem__, ({}, "no such key")

def unloadable(): return Unloadable()

class Pair:
    def __init__(self, *both): self.both = both

def nested(): return dtrun.run(Pair, ["inner", os.environ["RANK"]], np=2)

def outcome(*arguments, **named):
    try:
        print("returned", dtrun.run(*arguments, **named))
    except dtrun.Error as error:
        print(f"{type(error).__name__}: {error}")
        return error
"""


def calls(text):
    """A driver script; ranks load it too, so that what it does is behind the usual guard."""
    return FUNCTIONS + '\nif __name__ == "__main__":\n' + "".join(f"    {line}\n" for line in text.strip().splitlines())


class Run(PythonTest):
    def test_ranks_return_their_results_in_order(self):
        result = self.python(calls("print(dtrun.run(total, (1,), {'step': 10}, np=3))"))
        self.assert_ok(result)
        self.assertEqual(result.out, "[(0, 3, 33), (1, 3, 33), (2, 3, 33)]\n")
        self.assertEqual(result.err, "")
        self.assertEqual(list(self.folder.glob(".dtrun-run-*")), [])

    def test_what_ranks_print_appears_while_they_run(self):
        go = self.folder / "go"
        job = self.start_python(calls(f"print(dtrun.run(wait_for, ['{go}'], np=2))"))
        lines = {job.process.stdout.readline() for _ in range(2)}
        self.assertEqual(lines, {"[0] waiting\n", "[1] waiting\n"})
        go.touch()
        result = job.finish()
        self.assert_ok(result)
        self.assertEqual(result.out, "['0', '1']\n")

    def test_sys_stdout_may_be_replaced_as_notebooks_do(self):
        result = self.python(calls(
            "import io; sys.stdout = seen = io.StringIO(); dtrun.run(print, ['h\u00e9'], np=2); sys.stdout = sys.__stdout__\n"
            "print(ascii(sorted(seen.getvalue().splitlines())))"))
        self.assertEqual(result.out, "['[0] h\\xe9', '[1] h\\xe9']\n", str(result))

    def test_options_and_variables_reach_the_job(self):
        result = self.python(calls(
            "named = dict(config={'output': {'prefix': 'none'}, 'job.env.B': '2', 'job.processes_per_host': 2}, env={'A': '1'})\n"
            "print(dtrun.run(eval, ['[__import__(\"os\").environ[name] for name in \"AB\"]'], **named))"))
        self.assertEqual(result.out, "[['1', '2'], ['1', '2']]\n", str(result))

    def test_two_hosts_share_the_working_folder(self):
        shell = ["sh", "-c", 'shift; exec "$@"', "sh"]
        config = {"cluster.remote_shell": shell, "cluster.oversubscribe": True, "network.interface": "lo"}
        result = self.python(calls(f"print(dtrun.run(total, [1], np=2, hosts=['localhost', '127.0.0.2'], config={config!r}))"))
        self.assertEqual(result.out, "[(0, 2, 3), (1, 2, 3)]\n", str(result))
        self.assertEqual(list(self.folder.glob(".dtrun-run-*")), [])


class Script(PythonTest):
    """Where ranks load the script, as cloudpickle is not installed."""

    def without_cloudpickle(self, text):
        (self.folder / "absent").mkdir(exist_ok=True)
        self.write("raise ImportError('not installed')", "absent/cloudpickle.py")
        return self.python(text, env=self.environment(PYTHONPATH=f"{self.folder / 'absent'}:{SOURCE / 'python'}"))

    def test_a_rank_may_run_a_job_that_returns_classes_of_the_script(self):
        result = self.without_cloudpickle(calls("print([[pair.both for pair in pairs] for pairs in dtrun.run(nested, np=2)])"))
        self.assertEqual(result.out, f"{[[('inner', rank)] * 2 for rank in '01']}\n", str(result))

    def test_a_call_without_the_guard_starts_no_job_in_ranks(self):
        result = self.without_cloudpickle(FUNCTIONS + "dtrun.run(nested, np=2)\n")
        self.assertEqual(result.code, 1, str(result))
        self.golden(result.err.splitlines()[-1], "FailedPrecondition: dtrun.run: ", '`if __name__ == "__main__":`')
        self.assertNotIn("known failure", result.err)
        self.assertEqual([file.name for file in self.folder.glob("runs/*") if file.is_dir()], ["nested"])

    def test_what_the_call_takes_from_the_script_beside_the_function(self):
        result = self.without_cloudpickle(calls(
            "import functools\n"
            "print(dtrun.run(functools.partial(total, 5, step=1), np=1), dtrun.run(map_to, [Pair, 1], np=1)[0].both, dtrun.run(Pair('x').first))"
        ).replace("def nested", "def map_to(kind, value): return kind(value)\n\ndef nested").replace(
            "*both): self.both = both", "*both): self.both = both\n    def first(self): return self.both[0]"))
        self.assertEqual(result.out, "[(0, 1, 5)] (1,) ['x']\n", str(result))
        self.assertTrue((self.folder / "runs/total").is_dir(), "the job has the name of the function")

    def test_a_function_under_the_guard_is_refused_before_anything_starts(self):
        for define in ("def train(): return 1", "class Train:\n        def __call__(self): return 1\n    train = Train()"):
            result = self.without_cloudpickle(f'import dtrun\nif __name__ == "__main__":\n    {define}\n    dtrun.run(train)\n')
            self.assertEqual(result.code, 1, str(result))
            self.golden(result.err.splitlines()[-1], "InvalidArgument: dtrun.run: ", "driver.py:3")
            self.assertFalse((self.folder / "runs").exists())

    def test_a_script_on_stdin_is_no_file(self):
        text = "import dtrun\ndef fn(): pass\ndtrun.run(fn)\n"
        result = self.without_cloudpickle(f"import subprocess, sys\nsys.exit(subprocess.run([sys.executable, '-'], input={text!r}, text=True).returncode)")
        self.assertEqual(result.code, 1, str(result))
        self.golden(result.err.splitlines()[-1], "InvalidArgument: dtrun.run: ")


class Failures(PythonTest):
    def outcome(self, text):
        result = self.python(calls(text))
        self.assert_ok(result)
        return result.out

    def test_an_exception_comes_back_with_the_verdict(self):
        out = self.outcome("e = outcome(one_fails, [refuse], np=2)\nprint(e.rank, e.exit_code, e.verdict['exit_class'], e.traceback)")
        self.golden_lines(out, "JobFailed: ", "'one_fails'", "rank 1")
        self.assertIn("\n\nRank 1:\nTraceback", out)
        self.assertIn("\n1 1 user-error Traceback", out)
        self.assertIn("in refuse", out)
        self.assertIn("KeyError: 'no such column'\n", out)
        self.assertNotIn("functions/rank.py", out)

    def test_a_rank_that_is_killed_or_leaves(self):
        out = self.outcome("e = outcome(one_fails, [die], np=2)\nprint(e.rank, e.exit_code, e.verdict['exit_class'], e.traceback)\n"
                           "e = outcome(one_fails, [leave], np=2)\nprint(e.rank, e.exit_code, e.verdict['exit_class'], e.traceback)")
        self.golden_lines(out, "rank 1", "signal 9")
        self.assertIn("\n1 137 signal None\n", out)
        self.assertIn("\n1 7 user-error None\n", out)

    def test_ranks_that_fail_before_they_load_the_function(self):
        self.write(FAILS_EARLY, "sitecustomize.py")
        out = self.outcome(f"e = outcome(total, [1], np=2, env={{'PYTHONPATH': {str(self.folder)!r}}})\n"
                           "print(e.rank, e.exit_code, e.verdict['exit_class'], e.traceback)")
        self.golden_lines(out, "JobFailed: ", "'total'", "rank 1")
        self.assertIn("\n1 3 user-error None\n", out)

    def test_an_agent_that_is_killed(self):
        out = self.outcome("e = outcome(one_fails, [kill_the_agent], np=2)\nprint(e.rank, e.exit_code, e.verdict['exit_class'], e.traceback)")
        self.assertIn("JobFailed: dtrun: ", out)
        self.assertIn("\nNone 137 launcher None\n", out)

    def test_a_rank_that_ends_well_without_a_result(self):
        out = self.outcome("e = outcome(ends_on, [1, os._exit, 0], np=2)\nprint(e.rank, e.exit_code, e.verdict['exit_class'])\n"
                           "e = outcome(ends_on, [0, sys.exit], np=2)\nprint(e.rank, e.exit_code)\n"
                           "outcome(sys.exit, [0], np=2)\noutcome(ends_on, [5, os._exit, 0], np=2)")
        for ranks in "rank 1", "rank 0", "ranks 0, 1":
            self.golden_lines(out, f"JobFailed: dtrun.run: {ranks} ")
        self.assertIn("\n1 0 None\n", out)
        self.assertIn("\n0 0\n", out)
        self.assertTrue(out.endswith("returned [None, None]\n"), out)

    def test_a_launcher_with_processes_that_are_not_ranks(self):
        out = self.outcome("e = outcome(total, [1], np=2, config={'launcher.name': 'per-node'})\nprint(e.exit_code, e.verdict['exit_class'])")
        self.golden_lines(out, "per-process (launcher.name")
        self.assertIn("\n1 user-error\n", out)

    def test_a_restart_counts_its_own_results(self):
        out = self.outcome("outcome(first_time_fails, np=2, config={'restart.max': 1})")
        self.assertIn("returned ['0 of 1', '1 of 1']", out)

    def test_what_cannot_be_pickled_is_named(self):
        out = self.outcome("outcome(total, ['x', {'a': [threading.Lock()]}], np=2)\n"
                           "outcome(lambda: 1, np=2)\noutcome(total(1), np=2)")
        self.golden_lines(out, "InvalidArgument: dtrun.run: args[1]['a'][0] (_thread.lock")
        self.golden_lines(out, "InvalidArgument: dtrun.run: ", "<lambda>", "cloudpickle")
        self.golden_lines(out, "InvalidArgument: dtrun.run: (0, 1, 1)")
        out = self.outcome("deep = []\nfor _ in range(100000): deep = [deep]\noutcome(total, [{'tree': deep}], np=2)")
        self.golden_lines(out, "InvalidArgument: dtrun.run: args[0]['tree'] (builtins.list")

    def test_a_result_that_cannot_be_pickled_is_named(self):
        out = self.outcome("outcome(unpicklable, np=1)")
        raised = [line for line in out.splitlines() if not line.startswith("JobFailed")]
        self.golden_lines("\n".join(raised), "rank 0", "['kept'][0] (_thread.lock)")

    def test_a_result_that_cannot_be_unpickled_is_named(self):
        out = self.outcome("outcome(unloadable, np=1)")
        self.golden_lines(out, "InvalidArgument: ", "rank 0", "KeyError: 'no such key'")

    def test_a_job_that_cannot_start_says_why(self):
        shell = {"cluster.remote_shell": ["false"]}
        out = self.outcome(f"e = outcome(total, [1], np=2, hosts='elsewhere', config={shell})\nprint(e.exit_code, e.verdict)")
        self.golden_lines(out, "JobFailed: ", "exit code 2")
        self.golden_lines(out, "dtrun: host elsewhere: ")
        self.assertIn("\n2 None\n", out)

    def test_arguments_that_are_wrong(self):
        for call in (
            "np=0",
            "np='x'",
            "1, np=2",
            "kwargs=[1]",
            "config=3",
            "config={'backend.nme': 'ucx'}",
            "config={'job.name': total}",
            "config={5: 5}",
            "config={'job.env': {'A': 'a\\0b'}}",
            "hosts=[1]",
            "env={'A': 5}",
            "env={'A': [5]}",
            "env={'A': None}",
            "env={'A=': '5'}",
            "env={'': '5'}",
            "env={5: '5'}",
            "env={'A': 'a\\0b'}",
            "env=['A=5']",
            "config='no.toml'",
        ):
            result = self.python(calls(f"try: dtrun.run(total, {call})\nexcept ValueError as error: print(error)"))
            self.assert_ok(result)
            self.golden(result.out, "dtrun.run: ")
            self.assertEqual(result.err, "", call)

    def test_without_the_program(self):
        out = self.outcome("os.environ['DTRUN_BIN'] = '/nowhere/dtrun'\noutcome(total, [1])")
        self.golden_lines(out, "LibraryError: dtrun: DTRUN_BIN: '/nowhere/dtrun'")
        out = self.outcome("os.environ['DTRUN_BIN'] = '/bin/true'\nprint(outcome(total, [1]).exit_code)")
        self.golden_lines(out, "`/bin/true --version`")
        out = self.outcome("os.environ.update(DTRUN_LIBRARY='/nowhere/lib/x', PATH='/nowhere')\noutcome(total, [1])")
        self.assertIn("/nowhere/bin/dtrun", out)
        self.golden_lines(re.sub(r"(native/bin/dtrun), .* nor in PATH", r"\1, PARENTS nor in PATH", out), "DTRUN_BIN")


class Ends(PythonTest):
    """tearDown finds what survives."""

    def started(self):
        job = self.start_python(calls("dtrun.run(wait_for, ['never'], np=2)"))
        for _ in range(2):
            self.assertIn("waiting", job.process.stdout.readline())
        return job

    def test_ctrl_c_ends_every_rank(self):
        job = self.started()
        job.signal(signal.SIGINT)
        result = job.finish()
        self.assertEqual(result.code, -signal.SIGINT, str(result))
        self.assertIn("KeyboardInterrupt", result.err)

    def test_ctrl_c_just_before_python_waits_is_not_lost(self):
        library = self.folder / "early.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, self.write(EARLY, "early.c"), "-ldl"], check=True)
        result = self.python(calls("del os.environ['LD_PRELOAD']; dtrun.run(time.sleep, [1000], np=2)"), env=self.environment(LD_PRELOAD=str(library)))
        self.assertEqual(result.code, -signal.SIGINT, str(result))

    def test_the_job_ends_with_the_python_that_started_it(self):
        job = self.started()
        job.signal(signal.SIGKILL)
        until(lambda: job.run_dir().joinpath("verdict.json").exists(), "the verdict of the job")
        until(lambda: not list(self.folder.glob(".dtrun-run-*")), "the end of the exchange")


class Distributor(PythonTest):
    def test_the_result_of_rank_0(self):
        result = self.python(calls("print(dtrun.Distributor(2, local_mode=True, use_gpu=False).run(total, 5, step=2))"))
        self.assertEqual(result.out, "(0, 2, 12)\n", str(result))

    def test_a_file_gets_its_arguments_as_words(self):
        self.write("import beside, os, sys\nprint(__name__, sys.argv[1:], os.environ['CUDA_VISIBLE_DEVICES'] == '', beside.x)", "train.py")
        self.write("x = 'found'", "beside.py")
        result = self.python(calls("print(dtrun.Distributor(2, use_gpu=False).run('train.py', 1, '--lr', 0.5))"))
        self.assert_ok(result)
        for rank in range(2):
            self.assertIn(f"[{rank}] __main__ ['1', '--lr', '0.5'] True found\n", result.out)
        self.assertTrue(result.out.endswith("None\n"))

    def test_a_rank_without_a_result(self):
        result = self.python(calls("try: dtrun.Distributor(2, use_gpu=False).run(ends_on, 1, os._exit, 0)\n"
                                   "except dtrun.JobFailed as error: print(error)"))
        self.golden_lines(result.out, "dtrun.run: rank 1")

    def test_a_file_ends_how_it_likes(self):
        for end in ("sys.exit()", "sys.exit(0)", "os._exit(0)"):
            self.write(f"import os, sys\nprint('here', flush=True)\n{end}", "train.py")
            result = self.python(calls("print(dtrun.Distributor(2, use_gpu=False).run('train.py'))"))
            self.assert_ok(result)
            self.assertTrue(result.out.endswith("here\nNone\n"), result)

    def test_what_it_refuses(self):
        result = self.python(calls(
            "for make in (lambda: dtrun.Distributor(0), lambda: dtrun.Distributor(2), lambda: dtrun.Distributor(use_gpu=False).run('a.py', b=1),\n"
            "             lambda: dtrun.Distributor(use_gpu=False).run('no.py')):\n"
            "    try: make()\n"
            "    except dtrun.Error as error: print(error)"), env=self.environment(CUDA_VISIBLE_DEVICES="0"))
        self.golden_lines(result.out, "num_processes is 0", "1 or more")
        self.golden_lines(result.out, "use_gpu=True with 2", "1 GPU; pass use_gpu=False, or num_processes=1")
        self.golden_lines(result.out, "'no.py' in")
        self.golden_lines(result.out, "'a.py'")


class Import(PythonTest):
    def test_import_dtrun_does_not_load_it(self):
        result = self.python("import dtrun, sys; print([m for m in sys.modules if m.startswith('dtrun.functions')], dtrun.run.__name__)")
        self.assertEqual(result.out, "[] run\n", str(result))


if __name__ == "__main__":
    main()
