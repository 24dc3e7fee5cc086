"""torchrun's command lines under dtrun: contract, logs, failures, and unmodified scripts.

The reference is a torchrun of torch 2.x: $DTRUN_TORCHRUN, else the one in PATH. Without it
the environment is compared with what torch 2.13 was seen to give (CONTRACT).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from support.job import DTRUN, SOURCE, main
from support.torchrun import DUMP, TorchrunTest, has_torch

STRANGER = 4242  # another user

# What torchrun --standalone --nproc-per-node 2 gave local rank 1, torch 2.13; None: a value of the run.
CONTRACT = {
    "GROUP_RANK": "0",
    "GROUP_WORLD_SIZE": "1",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": None,
    "MASTER_PORT": None,
    "OMP_NUM_THREADS": "1",
    "RANK": "1",
    "ROLE_NAME": "default",
    "ROLE_RANK": "1",
    "ROLE_WORLD_SIZE": "2",
    "TORCHELASTIC_ERROR_FILE": None,
    "TORCHELASTIC_MAX_RESTARTS": "0",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_RUN_ID": None,
    "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    "WORLD_SIZE": "2",
}


def reference():
    """A torchrun of torch 2.x, or None."""
    program = os.environ.get("DTRUN_TORCHRUN") or shutil.which("torchrun")
    if not program or not os.path.exists(program):
        return None
    help_text = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
    return program if "--virtual-local-rank" in help_text else None


class Contract(TorchrunTest):
    def test_environment_is_torchruns(self):
        env = self.dump("--standalone")["env"]
        for name, value in CONTRACT.items():
            self.assertIn(name, env)
            if value is not None:
                self.assertEqual(env[name], value, name)
        self.assertEqual(env["MASTER_ADDR"], "127.0.0.1")
        self.assertTrue(0 < int(env["MASTER_PORT"]) < 65536)
        self.assertRegex(env["TORCHELASTIC_RUN_ID"], r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertRegex(env["TORCHELASTIC_ERROR_FILE"],
                         rf"/torchelastic_\w+/{env['TORCHELASTIC_RUN_ID']}_\w+/attempt_0/1/error\.json$")

    def test_environment_equals_that_of_the_real_torchrun(self):
        program = reference()
        if program is None:
            self.skipTest("there is no torchrun of torch 2.x")
        ours = self.dump("--standalone")["env"]
        subprocess.run([program, "--standalone", "--nproc-per-node", "2", self.folder / "dump.py",
                        self.folder / "theirs"], env=self.environment(), check=True, capture_output=True)
        theirs = json.loads((self.folder / "theirs-1").read_text())["env"]
        of_the_run = {name for name, value in CONTRACT.items() if value is None}
        # Ours print without delay, and their stack if they crash, whatever the launcher.
        plain = lambda env: sorted(f"{name}={'' if name in of_the_run else value}" for name, value in env.items()
                                   if not name.startswith("DTRUN_") and name not in ("PYTHONUNBUFFERED", "PYTHONFAULTHANDLER"))
        self.assertEqual(plain(ours), plain(theirs))

    def test_what_is_set_already_is_inherited(self):
        env = self.dump("--standalone", env=self.environment(
            OMP_NUM_THREADS="3", TORCH_NCCL_ASYNC_ERROR_HANDLING="0", CUDA_VISIBLE_DEVICES="4,5"))["env"]
        self.assertEqual(env["OMP_NUM_THREADS"], "3")
        self.assertEqual(env["TORCH_NCCL_ASYNC_ERROR_HANDLING"], "0")
        self.assertEqual(env["CUDA_VISIBLE_DEVICES"], "4,5")

    def test_virtual_local_rank(self):
        env = self.dump("--virtual-local-rank", env=self.environment(CUDA_VISIBLE_DEVICES="4, 5"))["env"]
        self.assertEqual((env["LOCAL_RANK"], env["CUDA_VISIBLE_DEVICES"]), ("0", "5"))
        result = self.torchrun("--nproc-per-node", "2", "--virtual-local-rank", self.folder / "dump.py", "x",
                               env=self.environment(CUDA_VISIBLE_DEVICES="4"))
        self.assert_user_error(result, "CUDA_VISIBLE_DEVICES is '4'", "local rank 1")

    def test_a_static_address_is_kept(self):
        env = self.dump("--master-addr", "localhost", "--master-port", "0", "--role", "trainer")["env"]
        self.assertEqual((env["MASTER_ADDR"], env["TORCHELASTIC_RUN_ID"], env["ROLE_NAME"]),
                         ("localhost", "none", "trainer"))

    def test_variables_give_defaults(self):
        script = self.write(DUMP, "dump.py")
        self.assert_ok(self.torchrun(script, self.folder / "found",
                                     env=self.environment(PET_NPROC_PER_NODE="3", PET_STANDALONE="1")))
        self.assertEqual(len(list(self.folder.glob("found-*"))), 3)


class Command(TorchrunTest):
    def test_a_script_runs_unbuffered_with_its_arguments(self):
        found = self.dump(arguments=("--nnodes", "$local_rank", "${local_rank}x", "$$HOME", "${RANK}", "-h"))
        self.assertEqual(found["argv"][2:], ["--nnodes", "1", "1x", "$HOME", "${RANK}", "-h"])
        self.assertTrue(found["unbuffered"])

    def test_a_module(self):
        (self.folder / "pkg").mkdir()
        self.write("import sys, os; print(__name__, os.environ['RANK'], sys.argv[1:])\n", "pkg/entry.py")
        result = self.torchrun("-m", "--nproc_per_node=2", "pkg.entry", "a")
        self.assert_ok(result)
        self.assertEqual(sorted(result.out.splitlines()), ["__main__ 0 ['a']", "__main__ 1 ['a']"])

    def test_a_program(self):
        result = self.torchrun("--no-python", "--nproc-per-node=2", "sh", "-c", "echo $RANK-${local_rank}")
        self.assert_ok(result)
        self.assertEqual(sorted(result.out.splitlines()), ["0-0", "1-1"])

    def test_run_path(self):
        script = self.write("import sys; print(__name__, sys.argv[1:])\n", "p.py")
        result = self.torchrun("--run-path", script, "a", "-m")
        self.assert_ok(result)
        self.assertEqual(result.out, "__main__ ['a', '-m']\n")

    def test_its_own_name(self):
        script = self.write("print('hello')\n", "h.py")
        done = subprocess.run([DTRUN.with_name("dtrun-torchrun"), "--standalone", script], cwd=self.folder,
                              env=self.environment(), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"), done.stderr)

    def test_the_older_launcher_hands_out_the_local_rank(self):
        launch = "torch.distributed.launch"
        script = self.write("import sys; print(sys.argv[1:])\n", "new.py")
        result = self.torchrun("--nproc-per-node", "2", script, "x", program=launch)
        self.assertEqual(sorted(result.out.splitlines()), ["['--local-rank=0', 'x']", "['--local-rank=1', 'x']"])
        script = self.write("# takes --local_rank\nimport sys; print(sys.argv[1])\n", "old.py")
        self.assertEqual(self.torchrun(script, program=launch).out, "--local_rank=0\n")
        self.assertEqual(self.torchrun("--use-env", script, "x", program=launch).out, "x\n")

    def test_the_plan_starts_nothing_and_names_the_run(self):
        script = self.write("raise SystemExit(1)\n", "x.py")
        result = self.dtrun("plan", "--json", "torchrun", "--nproc-per-node", "2", "--log-dir", "logs", script)
        self.assert_ok(result)
        plan = json.loads(result.out)
        self.assertEqual(plan["launcher"], "torchrun")
        self.assertEqual(plan["processes"][1]["argv"][1:], ["-u", str(script)])
        self.assertEqual(list(self.folder.glob("logs*")) + list(self.folder.glob("torchelastic*")), [])


class Logs(TorchrunTest):
    def run_logged(self, *options):
        """Two ranks that print a line on each stream: the result, and the files under logs/."""
        script = self.write("import os, sys\nprint('out', os.environ['RANK'])\n"
                            "print('err', os.environ['RANK'], file=sys.stderr)\n", "p.py")
        result = self.torchrun("--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-id", "job", "--log-dir",
                               "logs", *options, script)
        self.assert_ok(result)
        runs = list((self.folder / "logs").glob("job_*"))
        self.assertEqual(len(runs), 1)
        files = {str(file.relative_to(runs[0])): file.read_text() for file in runs[0].glob("attempt_0/**/*")
                 if file.is_file()}
        err = [line for line in result.err.splitlines() if re.search(r"err \d$", line)]
        return sorted(result.out.splitlines()), sorted(err), files

    def test_nothing_is_kept_unless_asked_for(self):
        self.assertEqual(self.run_logged(), (["out 0", "out 1"], ["err 0", "err 1"], {}))

    def test_redirects(self):
        out, err, files = self.run_logged("-r", "0:3,1:2")
        self.assertEqual((out, err), (["out 1"], []))
        self.assertEqual(files, {"attempt_0/0/stdout.log": "out 0\n", "attempt_0/0/stderr.log": "err 0\n",
                                 "attempt_0/1/stderr.log": "err 1\n"})

    def test_tee_and_filter(self):
        out, err, files = self.run_logged("--tee", "3", "--local-ranks-filter", "1", "--role", "t",
                                          "--duplicate-stdout-filters", "out,never")
        self.assertEqual((out, err), (["[t1]:out 1"], ["[t1]:err 1"]))
        self.assertEqual(files, {"attempt_0/0/stdout.log": "out 0\n", "attempt_0/0/stderr.log": "err 0\n",
                                 "attempt_0/1/stdout.log": "out 1\n", "attempt_0/1/stderr.log": "err 1\n",
                                 "attempt_0/filtered_stdout.log": "[t1]:out 1\n"})

    def test_prefix_template(self):
        out, _, _ = self.run_logged("-t", "1", "--log-line-prefix-template", "<$rank of ${role_name}> ")
        self.assertEqual(out, ["<0 of default> out 0", "<1 of default> out 1"])

    def test_the_verdict_says_where_the_output_is(self):
        script = self.write("import sys; print('why', file=sys.stderr); sys.exit(3)", "crash.py")
        result = self.torchrun("--nproc-per-node", "1", script)
        self.golden(re.search(r".*\n    \| why", result.err)[0])
        result = self.torchrun("--nproc-per-node", "1", "--log-dir", self.folder / "kept", "--tee", "3", script)
        file = re.search(r"all of it: (\S+stderr\.log), \S+stdout\.log\)", result.err)
        self.assertEqual((self.folder / file[1]).read_text(), "why\n", result.err)

    def test_the_null_device_keeps_nothing(self):
        script = self.write(DUMP, "dump.py")
        self.assert_ok(self.torchrun("--log-dir", "/dev/null", "-t", "3", script, self.folder / "found"))
        env = json.loads((self.folder / "found-0").read_text())["env"]
        self.assertEqual(env["TORCHELASTIC_ERROR_FILE"], "")
        self.assertEqual(list(self.folder.glob("torchelastic_*/*/attempt_*")), [])

    def test_a_file_is_no_log_folder(self):
        file = self.write("", "file")
        self.golden_error(self.torchrun("--log-dir", file, "x.py"), f"--log-dir={file}")


class Failures(TorchrunTest):
    def test_summary_names_the_root_cause_and_the_exit_code_is_1(self):
        script = self.write("import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(600)\n",
                            "f.py")
        result = self.torchrun("--nproc-per-node", "2", script)
        self.assertEqual(result.code, 1, str(result))
        summary = result.err[result.err.index("=" * 60):]
        others, root = summary.split("Root Cause (first observed failure):")
        self.assertIn(f"{script} FAILED", others)
        self.assertRegex(others, r"rank      : 0 \(local_rank: 0\)\n  exitcode  : -15 \(pid: \d+\)  \(SIGTERM\)")
        self.assertRegex(root, r"rank      : 1 \(local_rank: 1\)\n  exitcode  : 7 \(pid: \d+\)")
        self.assertIn("dtrun: job 'f' failed", result.err)

    def test_a_rank_that_exits_with_2_is_no_usage_error(self):
        self.assertEqual(self.torchrun("--no-python", "sh", "-c", "exit 2").code, 1)

    def test_a_signal_ends_the_job_with_1_and_without_a_summary(self):
        job = self.start("torchrun", "--no-python", "sh", "-c", "echo up; exec sleep 600",
                         stdin=subprocess.DEVNULL)
        self.assertEqual(job.process.stdout.readline(), "up\n")
        job.signal(15)
        result = job.finish()
        self.assertEqual(result.code, 1, str(result))
        self.assertNotIn("Root Cause", result.err)

    def test_an_error_file_reaches_the_summary_and_the_caller(self):
        script = self.write("import json, os\nwith open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w') as file:\n"
                            "  json.dump({'message': {'message': 'E: x', 'extraInfo': {'py_callstack': 'the stack',"
                            " 'timestamp': '1'}}}, file)\nraise SystemExit(3)\n", "e.py")
        mine = self.folder / "mine.json"
        result = self.torchrun(script, env=self.environment(TORCHELASTIC_ERROR_FILE=str(mine)))
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("traceback : the stack", result.err)
        self.assertEqual(json.loads(mine.read_text())["message"]["errorCode"], 3)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_an_error_file_is_not_written_through_the_link_of_a_stranger(self):
        shared, victim = self.folder / "shared", self.write("precious", "victim")
        shared.mkdir()
        shared.chmod(0o1777)
        link = shared / "error.json"
        link.symlink_to(victim)
        os.lchown(link, STRANGER, STRANGER)
        script = self.write("import json, os\nwith open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w') as file:\n"
                            "  json.dump({'message': 'E: x'}, file)\nraise SystemExit(3)\n", "e.py")
        result = self.torchrun(script, env=self.environment(TORCHELASTIC_ERROR_FILE=str(link)))
        self.assertEqual(result.code, 1, str(result))
        self.golden_lines(result.err, "dtrun: TORCHELASTIC_ERROR_FILE: ", f"'{link}'", f"{STRANGER}")
        self.assertEqual(victim.read_text(), "precious")

    def test_the_password_of_a_url_is_not_shown(self):
        url = "https://ann:hunter2@example.org/train.py"
        for result in (self.torchrun(url), self.dtrun("-n", "2", url), self.dtrun("plan", url), self.dtrun("-c", f"x{url}", "true"),
                       self.dtrun("-n", "1", "--set", f"job.cwd={url}", "true")):
            self.assertIn("ann:(secret)@example.org", result.err, str(result))
            self.assertNotIn("hunter2", result.err + result.out, str(result))


class Interpreter(TorchrunTest):
    def test_one_that_is_none_is_named(self):
        for chosen in ("", "/nowhere/python"):
            result = self.torchrun(self.write("", "x.py"), env={**self.environment(), "PYTHON_EXEC": chosen})
            self.golden_error(result, f"PYTHON_EXEC is '{chosen}'")


class Restarts(TorchrunTest):
    def test_the_world_is_started_again_and_counts(self):
        result = self.torchrun("--standalone", "--nproc-per-node=2", "--max-restarts=2", "--no-python", "sh", "-c",
                               "echo start $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; "
                               "test $TORCHELASTIC_RESTART_COUNT = 1")
        self.assert_ok(result)
        self.assertEqual(result.out.count("start 0 of 2"), 2, str(result))
        self.assertEqual(result.out.count("start 1 of 2"), 2, str(result))
        self.assertNotIn("start 2", result.out)


    def test_any_job_of_the_launcher_has_the_number(self):
        for sets, number in (["restart.max=3"], 3), (["restart.max=3", "launcher.options.max_restarts=5"], 5), ([], 0):
            words = [word for key in ["launcher.name=torchrun", *sets] for word in ("--set", key)]
            ran = self.dtrun(*words, "sh", "-c", "echo $TORCHELASTIC_MAX_RESTARTS")
            self.assert_ok(ran)
            self.assertEqual(ran.out, f"{number}\n")
        ran = self.dtrun("--set", "job.dialects=torchrun", "--set", "restart.max=3", "sh", "-c", "echo $TORCHELASTIC_MAX_RESTARTS")
        self.assertEqual(ran.out, "3\n")


class Refusals(TorchrunTest):
    def test_each_names_its_option_and_ends_with_2(self):
        cases = [
            (["--rdzv-backend=etcd", "x.py"], "--rdzv-backend=etcd: "),
            (["--numa-binding=chiplet", "x.py"], "--numa-binding=chiplet: expected node"),
            (["--nproc-per-node=0", "x.py"], "--nproc-per-node=0: job.processes_per_host"),
            (["--nproc-per-node=xpu", "x.py"], "--nproc-per-node=xpu: job.processes_per_host"),
            (["--bogus", "x.py"], "usage: dtrun torchrun"),
            ([], "training_script"),
            (["--no-python", "no-such-program"], "no-such-program"),
            (["--nproc-per-node=2", "no-such.py"], "training_script: there is no 'no-such.py'"),
        ]
        for arguments, text in cases:
            self.assert_user_error(self.torchrun(*arguments), text)

    def test_help(self):
        for program in ("torchrun", "torch.distributed.run", "torch.distributed.launch"):
            result = self.torchrun("--help", program=program)
            self.assert_ok(result)
            self.assertIn("--nproc-per-node", result.out)


@unittest.skipUnless(has_torch(), f"{sys.executable} has no torch.distributed")
class WithTorch(TorchrunTest):
    def test_ddp_trains_unmodified(self):
        result = self.torchrun("--standalone", "--nproc-per-node", "2", SOURCE / "tests/programs/ddp.py")
        self.assert_ok(result)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 agrees", result.out)

    def test_torch_knows_that_it_was_launched_by_torchrun(self):
        script = self.write("import torch.distributed as d; print(d.is_torchelastic_launched())\n", "k.py")
        self.assertEqual(self.torchrun(script).out, "True\n")

    def test_record_writes_the_traceback_of_the_root_cause(self):
        script = self.write("from torch.distributed.elastic.multiprocessing.errors import record\nimport os\n"
                            "@record\ndef main():\n  raise ValueError('bad batch of rank ' + os.environ['RANK'])\n"
                            "main()\n", "r.py")
        result = self.torchrun("--log-dir", "logs", script)
        self.assertEqual(result.code, 1, str(result))
        root = result.err[result.err.index("Root Cause"):]
        self.assertIn("ValueError: ", root)
        self.assertRegex(root, r"error_file: /.*/attempt_0/0/error\.json")


if __name__ == "__main__":
    main()
