"""Help, versions and plugin listings."""

import json
import os
import re
import subprocess

from support.job import DTRUN, JobTest, main

VERBS = [[], ["run"], ["plan"], ["env"], ["config"], ["config", "check"], ["config", "explain"], ["config", "list"],
         ["plugins"],
         ["plugins", "list"], ["plugins", "describe"], ["completion"], ["completion", "bash"], ["completion", "zsh"], ["completion", "fish"],
         ["bench"], ["explain"], ["doctor"], ["ps"], ["runs"], ["logs"], ["report"], ["stacks"], ["top"], ["stop"], ["trace"], ["runs", "clean"]]


class Help(JobTest):
    def test_every_verb_has_help(self):
        verbs = set(re.findall(r"^  ([a-z]+)  ", self.dtrun("--help").out.split("Verbs:")[1], re.M))
        self.assertEqual(verbs - {"help", "torchrun"}, {verb[0] for verb in VERBS if verb})
        for verb in VERBS:
            result = self.dtrun(*verb, "--help")
            self.assert_ok(result)
            self.assertIn("Usage", result.out)
            self.assertNotRegex(result.out, r"\b(U?INT|FLOAT|TEXT|Excludes|Needs)\b")  # words of the parser

    def test_it_tells_how_to_log(self):
        self.golden(self.dtrun("--help").out, "DTRUN_LOG=info,node=debug,gloo=off")

    def test_version(self):
        result = self.dtrun("--version")
        self.assert_ok(result)
        self.assertRegex(result.out, r"^dtrun \d+\.\d+\.\d+\n$")

    def test_what_cannot_be_printed_is_an_error(self):
        self.write('[job]\ncommand = ["true"]\n', "job.toml")
        for arguments in (["--version"], ["--help"], ["help", "plan"], ["torchrun", "--help"], ["plan", "true"],
                          ["plan", "--json", "true"], ["config", "list"], ["config", "list", "--markdown"],
                          ["config", "list", "--json"], ["config", "explain", "job.env"], ["config", "check", "job.toml"],
                          ["env", "--list"], ["plugins", "list"], ["plugins", "describe", "gloo"],
                          ["explain", "address already in use"], ["completion", "fish"], ["completion", "keys"],
                          ["completion", "words", "pl"],
                          ["doctor", "true"]):
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                result = subprocess.run([str(DTRUN), *arguments], stdin=subprocess.DEVNULL, stdout=full,
                                        stderr=subprocess.PIPE, text=True, cwd=self.folder, check=False)
                self.golden(result.stderr)
                self.assertIn(result.returncode, (1, 2))
        with open("/dev/full", "w") as full:
            self.assertEqual(subprocess.run([str(DTRUN), "plan"], stderr=full, check=False).returncode, 2)

    def test_a_wrong_command_line_ends_with_2(self):
        for arguments in (["--no-such-flag"], ["plna"], ["config", "check"], ["plugins", "describe"]):
            self.assertEqual(self.dtrun(*arguments).code, 2, arguments)

    def test_help_is_a_verb_too(self):
        for verb in VERBS:
            self.assertEqual(self.dtrun("help", *verb).out, self.dtrun(*verb, "--help").out)
        self.golden(self.dtrun("help", "torchrun").out)
        self.write("#!/bin/sh\ntouch ran\n", "tool").chmod(0o755)
        self.golden_error(self.dtrun("help", "tool"), "'dtrun'", "'tool'")
        self.assertFalse((self.folder / "ran").exists())

    def test_an_agent_without_a_root_says_so_and_ends(self):
        with self.write("", "empty").open() as empty:
            for stdin in (subprocess.DEVNULL, subprocess.PIPE, empty):
                agent = subprocess.Popen([str(DTRUN), "agent"], stdin=stdin, stderr=subprocess.PIPE, text=True)
                _, text = agent.communicate("" if stdin == subprocess.PIPE else None, timeout=60)
                self.assertEqual(agent.returncode, 2, text)
                self.golden(text, "`dtrun agent`")


TRAIN = """import os, sys
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], *sys.argv[1:])
"""


class Typed(JobTest):
    """What people type who know torchrun, mpirun or srun."""

    def setUp(self):
        super().setUp()
        self.write(TRAIN, "train.py")
        self.write('[job]\ncommand = ["python3", "train.py", "of-the-config"]\nprocesses_per_host = 2\n')

    def ranks_of(self, *arguments):
        """The lines of the ranks, sorted, without prefixes; the job succeeds."""
        result = self.dtrun(*arguments)
        self.assert_ok(result)
        return sorted(re.sub(r"^\[\d+\] ", "", line) for line in result.out.splitlines())

    def test_a_program_and_its_arguments(self):
        self.assertEqual(self.ranks_of("-n", "2", "python3", "train.py", "-n", "9", "--", "x"),
                         ["rank 0 of 2 -n 9 -- x", "rank 1 of 2 -n 9 -- x"])
        self.assertEqual(self.ranks_of("python3", "train.py"), ["rank 0 of 1"])
        self.assertTrue((self.folder / "runs/train/latest/rank-0.out").exists())  # named after the script
        self.assertEqual(self.ranks_of("run", "-n2", "python3", "train.py"), ["rank 0 of 2", "rank 1 of 2"])

    def test_a_script_runs_by_the_python_of_the_path(self):
        python = self.write('#!/bin/sh\necho by ours: "$@"\n', "python3")
        python.chmod(0o755)
        environment = self.environment(PATH=f"{self.folder}:{os.environ['PATH']}")
        for name in "train.py", "./train.py":
            result = self.dtrun("-v", name, "--epochs", "5", env=environment)
            self.assertEqual(result.out, f"by ours: -u {name} --epochs 5\n", result.err)
            self.golden_lines(result.err, f"dtrun: '{name}'", f"'python3 -u {name}'")
        self.assertNotIn("'train.py'", self.dtrun("train.py", env=environment).err)
        self.assertEqual(self.dtrun("--", "train.py", env=environment).out, "by ours: -u train.py\n")

    def test_a_program_of_the_folder(self):
        self.write("#!/bin/sh\necho here $1\n", "prog").chmod(0o755)
        self.assertEqual(self.ranks_of("-n", "2", "prog", "x"), ["here x", "here x"])

    def test_a_config(self):
        self.assertEqual(self.ranks_of("job.toml"), ["rank 0 of 2 of-the-config", "rank 1 of 2 of-the-config"])
        self.assertEqual(len(self.ranks_of("-n", "3", "job.toml")), 3)
        self.assertEqual(self.ranks_of("job.toml", "-n", "1", "train.py", "other"), ["rank 0 of 1 other"])
        self.assertIn("rank 1 on", self.dtrun("plan", "job.toml").out)
        self.golden_error(self.dtrun("jop.toml"), "'job.toml'?")

    def test_flags_that_mean_the_same(self):
        for flags in ["-np", "2"], ["--np=2"], ["--ntasks", "2"], ["--nproc_per_node=2"], ["--nproc-per-node", "2"]:
            self.assertEqual(len(self.ranks_of(*flags, "train.py")), 2, flags)
        self.write("here slots=2\n", "hosts")
        for flags in ["-H", "a:2,b"], ["--host", "a:2,b"], ["-N", "a:2,b"], ["--hosts=a:2,b"]:
            hosts = json.loads(self.dtrun("plan", "--json", *flags, "train.py").out)["hosts"]
            self.assertEqual([(host["name"], host["local_size"]) for host in hosts], [("a", 2), ("b", 1)])
        for flag in "--hostfile", "-hostfile", "--machinefile":
            plan = json.loads(self.dtrun("plan", "--json", flag, "hosts", "train.py").out)
            self.assertEqual([host["name"] for host in plan["hosts"]], ["here"])

    def test_ranks_are_counted_over_all_hosts(self):
        def sizes(*flags):
            plan = json.loads(self.dtrun("plan", "--json", *flags, "train.py").out)
            return {host["name"]: host["local_size"] for host in plan["hosts"]}
        self.assertEqual(sizes("-n", "6", "-H", "a:4,b:4"), {"a": 4, "b": 2})
        self.assertEqual(sizes("-n", "6", "-H", "a,b"), {"a": 3, "b": 3})
        self.assertEqual(sizes("-n", "6", "-N", "2", "-H", "a,b,c"), {"a": 3, "b": 3})
        self.assert_user_error(self.dtrun("-n", "9", "-H", "a:4,b:4", "train.py"), "room for 8 on 2 hosts")
        self.assert_user_error(self.dtrun("-N", "2", "train.py"), "--hosts a,b")

    def test_flags_that_mean_something_else_have_a_hint(self):
        for flags, hint in ((["--nnodes=2:4"], "dtrun torchrun --nnodes"), (["--tee", "3"], "dtrun torchrun"),
                            (["-m", "pkg.train"], "python3 -m"), (["--map-by", "node"], "job.bind"),
                            (["--cpus-per-task=4"], "job.bind"),
                            (["-p", "debug"], "sbatch"), (["--deepspeed"], "go after it"),
                            (["--timeout", "3"], "--time-limit 3s"), (["--npersocket", "2"], "--processes-per-host"),
                            (["--config_file", "c.yaml"], "dtrun does not read"), (["--use_deepspeed"], "DeepSpeedPlugin"),
                            (["--node_rank=1"], "--host-index")):
            self.golden_error(self.dtrun(*flags, "train.py"), flags[0].partition('=')[0], hint)

    def test_a_number_of_hosts_is_one_in_every_spelling(self):
        hosts = lambda *words: [host["name"] for host in json.loads(self.dtrun("plan", "--json", *words).out)["hosts"]]
        self.write("localhost slots=2\nnode9 slots=2\n", "hf")
        for flag in ("--nnodes", "--nodes", "--num_nodes", "--num_machines", "-N"):
            self.assertEqual(hosts(flag, "1", "--hostfile", "hf", "train.py"), ["localhost"], flag)
        self.assertEqual(hosts("--nproc_per_node=1", "--nnodes=1", "--hosts", "node0,node1", "train.py"), ["node0"])
        config = self.write('[job]\ncommand = ["true"]\n[cluster]\nhosts = ["node0", "node1"]\n')
        self.assertEqual(hosts("--nnodes=1:1", config), ["node0"])
        self.golden_error(self.dtrun("--nnodes=2", "train.py"), "--nnodes=2: cluster.host_count: 2", "dtrun torchrun --nnodes")
        self.assert_user_error(self.dtrun("-N", "2", "--host", "localhost:4", "train.py"), "mpirun's -N 2 is --processes-per-host 2 here")

    def test_mpiruns_timestamps_are_dtruns(self):
        self.assertRegex(self.dtrun("--timestamp-output", "-n", "2", "echo", "x").out, r"\d\d:\d\d:\d\d")
        self.golden_error(self.dtrun("--mca", "btl", "-n", "2", "train.py"), "--mca", "--mca btl VALUE")

    def test_flags_that_need_no_counterpart(self):
        self.assertEqual(len(self.ranks_of("--standalone", "--nnodes=1", "--rdzv_backend", "c10d", "--rdzv-endpoint",
                                           "localhost:0", "--allow-run-as-root", "--tag-output", "--report-bindings",
                                           "-x", "PATH", "-np2", "train.py")), 2)
        self.assertEqual(self.ranks_of("-x", "A=of us", "--max_restarts", "1", "--log_dir", "kept", "sh", "-c", "echo $A"),
                         ["of us"])
        self.assertTrue((self.folder / "kept").is_dir())
        self.golden_lines(self.dtrun("-v", "--max_restarts", "1", "true").err, "--max_restarts", "--set restart.max=1")

    def test_what_was_assumed_is_told_without_secrets(self):
        self.write("", "train--token sekret1.py")
        told = self.dtrun("-v", "-x", "API_TOKEN=sekret1", "-n", "1", "train--token sekret1.py")
        self.assert_ok(told)
        self.golden_lines(told.err, "-x", "--set job.env.API_TOKEN=(secret)")
        self.golden_lines(told.err, "'train--token (secret)'")
        self.assertNotIn("sekret1", told.err)

    def test_another_launcher_is_not_started_on_each_rank(self):
        for words, instead in (("mpirun -np 2 --allow-run-as-root train.py", "type: dtrun -n 2 train.py\n"),
                               ("horovodrun -np 2 python3 train.py", "type: dtrun -n 2 --set job.dialects=horovod python3"),
                               ("deepspeed --num_gpus 2 train.py", "type: dtrun --processes-per-host 2 train.py\n"),
                               ("deepspeed train.py", "type: dtrun -n gpu train.py\n"),
                               ("mpirun -N 2 train.py", "type: dtrun --processes-per-host 2 train.py\n"),
                               ("accelerate launch --num_processes 2 train.py", "type: dtrun -n 2 train.py\n"),
                               ("deepspeed -H hf train.py", "type: dtrun --hostfile hf train.py\n"),
                               ("deepspeed --include localhost:2,3 train.py", "type: dtrun --set cluster.include=localhost:2,3 train.py\n"),
                               ("mpirun -host a,b,a train.py", "type: dtrun --hosts a:2,b:1 train.py\n"),
                               ("srun -n 2 train.py", "type: dtrun -n 2 --set cluster.from=slurm train.py\n"),
                               ("python3 -m torch.distributed.run --nproc-per-node 2 train.py",
                                "type: dtrun torchrun --nproc-per-node 2 train.py\n")):
            result = self.dtrun(*words.split())
            other = "add --set launcher.name=mpirun" if words.startswith("mpirun") else f"dtrun -- {words}"
            self.golden_error(result, instead, other)
        self.golden_error(self.dtrun("plan", "--torch-backend", "dtrun", "-n", "2", "torchrun", "train.py"),
                          "type: DTRUN_CONFIG_BACKEND_TORCH=dtrun", "--nproc_per_node=2 train.py")
        self.assert_user_error(self.dtrun("plan", "mpirun", "-v", "train.py"), "type: dtrun -v plan train.py\n")
        self.golden_error(self.dtrun("plan", "-N", "1-2", "true"), "-N 1-2")
        self.golden_error(self.dtrun("--network-interface", "-n", "2", "true"), "--network-interface", "'-n'")
        self.write("a slots=1\n", "hf")
        self.golden(self.dtrun("plan", "-H", "hf", "true").err, "-H", "'hf'")
        self.golden_error(self.dtrun("-np", "1", "a.py", ":", "-np", "1", "b.py"), "after ':'")
        self.write("#!/bin/sh\necho ours: $@\n", "mpirun").chmod(0o755)
        self.assertEqual(self.dtrun("--", "./mpirun", "-np", "2").out, "ours: -np 2\n")

    def test_words_that_read_like_verbs(self):
        for words, hint in ((["version"], "dtrun --version"), (["check", "job.toml"], "dtrun config check"),
                            (["status"], "dtrun explain latest"), (["kill", "7"], "dtrun stop JOB"), (["init"], "dtrun config init"),
                            (["launch", "--num_processes", "2", "train.py"], "leave it out: dtrun --num_processes 2 train.py"),
                            (["job.yaml"], "dtrun's configs are TOML")):
            result = self.dtrun(*words)
            self.assert_user_error(result, f"'{words[0]}' is n", hint)
            self.assertNotIn("/usr/bin", result.err)
        self.write("#!/bin/sh\necho my own $1\n", "kill").chmod(0o755)
        path = f"{self.folder}:{os.environ['PATH']}"
        self.assertEqual(self.dtrun("kill", "7", env=self.environment(PATH=path)).out, "my own 7\n")

    def test_a_program_that_is_not_there(self):
        long = ":".join([f"/nowhere/{i}" for i in range(30)] * 2)
        result = self.dtrun("absent", env=self.environment(PATH=long))
        self.assert_user_error(result, "/nowhere/0:", "and 26 more folders")
        self.write("#!/bin/sh\n", "wrap.sh")
        self.assert_user_error(self.dtrun("-n", "2", "wrap.sh"), "run 'chmod +x wrap.sh'")

    def test_slips(self):
        self.golden_error(self.dtrun("doctr"), "'dtrun doctor'?")
        self.golden_error(self.dtrun("config", "lst"), "'list'?")
        self.golden_error(self.dtrun("--hostflie", "x", "train.py"), "'--hostfile'?")
        self.golden_error(self.dtrun("--epochs", "5", "train.py"))
        self.golden_error(self.dtrun("python3 train.py"), "python3 train.py")
        self.golden_error(self.dtrun("helo.py"), "'helo.py'")
        self.golden_error(self.dtrun("."))
        self.golden_error(self.dtrun("absent.py"), "'absent.py'")
        self.golden_error(self.dtrun("-c", "job.toml", "--config", "job.toml"), "-c and --config")
        self.assert_user_error(self.dtrun("--set", "job.grace", "4", "train.py"), "write --set job.grace=4")
        self.golden_error(self.dtrun("--plugin-dir", "/nowhere", "true"), "--plugin-dir", "'/nowhere'")
        self.golden_error(self.dtrun("--rankfile", "x", "train.py"), "--rankfile")
        self.golden_error(self.dtrun("--nproc", "4", "train.py"), "--processes-per-host 4")
        self.assert_user_error(self.dtrun("--name", "x", "train.py"), "unknown option '--name'; write --set job.name=VALUE;")
        self.assert_user_error(self.dtrun("--restart.max=1", "train.py"), "write --set restart.max=1;")
        self.assert_user_error(self.dtrun("--port", "29500", "train.py"), "--set job.master_port=29500")
        self.golden_error(self.dtrun("--set"), "--set", "--set job.grace=5s")
        self.golden_error(self.dtrun("config", "init", "--template", "gpuu"), "'gpu'? templates: basic")
        self.golden_error(self.dtrun("jbo.toml"), "'job.toml'?")
        self.golden_error(self.dtrun("missing.toml"), "'dtrun config init missing.toml'")
        self.golden_error(self.dtrun("explain", "job.grace"))
        self.golden_error(self.dtrun("help", "job.grace"))
        self.golden_error(self.dtrun("env", "slurm"), "takes no 'slurm'", "--as slurm")
        self.golden_error(self.dtrun("config"))
        self.golden_error(self.dtrun("plugins", "describe"), "'dtrun")
        self.golden_error(self.dtrun("--launcher", "ssh", "true"))
        self.assert_user_error(self.dtrun("torchrun", "--set", "backend.name=gloo", "train.py"), "DTRUN_CONFIG_BACKEND_NAME=gloo dtrun torchrun")
        self.golden_error(self.dtrun("bench", "allreduce", "-np", "x"), "--np =")
        self.golden_error(self.dtrun("-n", "2"), "dtrun job.toml")
        self.golden_error(self.dtrun("-n", "x", "train.py"), "-n 'x'")
        self.assert_user_error(self.dtrun("--set", "job.grace", "train.py"), "write --set job.grace=VALUE")

    def test_messages_name_the_flag_that_was_typed(self):
        self.assert_user_error(self.dtrun("--network-interface", "nosuch7", "true"),
                               "dtrun: --network-interface: network.interface: 'nosuch7'")
        self.assert_user_error(self.dtrun("-np", "9999999", "true"), "dtrun: -np 9999999: job.ranks")
        self.assert_user_error(self.dtrun("--ntasks=9999999", "true"), "dtrun: --ntasks=9999999: job.ranks")
        self.golden_error(self.dtrun("-n", "2", "-n", "3", "true"), "-n")
        self.golden_error(self.dtrun("-n", "2", "-np", "3", "true"), "-n and -np")
        self.assert_user_error(self.dtrun("--max-restarts", "x", "true"), "dtrun: --max-restarts=x: restart.max")
        for typed in "--set backend.gloo.interfce=lo", "--config job.toml":
            self.write('[backend.gloo]\ninterfce = "lo"\n')
            unknown = self.dtrun(*typed.split(), "--", "true")
            self.assert_user_error(unknown, "unknown option 'backend.gloo.interfce'")
            self.assertNotIn("backend.options", unknown.err)
        self.golden(self.dtrun("config", "explain", "job.ranks", "-np", "2").out, "origin    -np")

    def test_one_machine_under_two_names(self):
        self.golden_error(self.dtrun("-H", f"{os.uname().nodename},localhost", "train.py"))
        self.assert_user_error(self.dtrun("--set", "backend.name=shm", "train.py"), 'comm.local = "shm"', '"none"')

    def test_a_verb_comes_before_a_program_of_its_name(self):
        self.write("#!/bin/sh\necho my plan\n", "plan").chmod(0o755)
        self.assertIn("my plan", self.dtrun("./plan").out)
        self.assertIn("my plan", self.dtrun("--", "plan").out)
        planned = self.dtrun("plan", "job.toml")
        self.assertIn("rank 0 on", planned.out)
        shown = "DTRUN_BACKEND_OPTIONS=(backend.options)"  # as the help of plan has it
        self.assertIn(shown, planned.out)
        self.assertIn(shown.split("=")[1], self.dtrun("plan", "--help").out)
        whole = json.loads(self.dtrun("plan", "--json", "job.toml").out)["processes"][0]["env"]["DTRUN_BACKEND_OPTIONS"]
        self.assertIn("interface", json.loads(whole))
        self.assert_user_error(self.dtrun("-n", "2", "env", "A=1", "train.py"), "dtrun -n 2 --set job.env.A=1 train.py")
        self.golden_error(self.dtrun("plan"), "dtrun plan -n 2 python3 train.py")
        self.golden_error(self.dtrun("--hostfile", "train.py"), "'train.py'", "--hostfile")
        self.golden_error(self.dtrun("config", "show"), "'list'?")
        self.assert_ok(self.dtrun("--", "env", "A=1", "python3", "train.py"))

    def test_quiet_prints_only_what_ranks_print_until_they_fail(self):
        result = self.dtrun("-q", "-n", "2", "train.py")
        self.assertEqual((result.code, result.err), (0, ""))
        result = self.dtrun("--quiet", "sh", "-c", "exit 3")
        self.assertEqual(result.code, 3)
        self.assertTrue(result.err.startswith("dtrun: job 'job' failed"), result.err)


class Plugins(JobTest):
    def test_names_that_none_can_have(self):
        kinds = ("backend plugins that exist: ", "launcher plugins that exist: ", "device plugins that exist: ")
        for name in ("", "no such", "absent"):
            result = self.dtrun("plugins", "describe", name)
            self.assert_user_error(result, *kinds)
            self.assertEqual(result.err.count(kinds[0]), 1, str(result))

    def test_list_shows_both_kinds(self):
        result = self.dtrun("plugins", "list")
        self.assert_ok(result)
        self.assertRegex(result.out, r"backend\s+gloo\s+\d")
        self.assertRegex(result.out, r"launcher\s+per[-_]process\s+\d")

    def test_list_as_json(self):
        rows = json.loads(self.dtrun("plugins", "list", "--json").out)["plugins"]
        self.assertEqual({row["state"] for row in rows}, {"ok"}, rows)

    def test_list_says_what_cannot_be_used_here(self):
        rows = json.loads(self.dtrun("plugins", "list", "--json").out)["plugins"]
        text = self.dtrun("plugins", "list").out
        for row in rows:
            described = self.dtrun("plugins", "describe", row["name"], "--kind", row["kind"], "--json")
            here = json.loads(described.out)["here"]
            reason = here.get("error") or here.get("unusable")
            self.assertEqual(row.get("unusable"), reason)
            if reason:  # of a GPU's plugin on a host without one, the list has the cause alone
                self.assertRegex(text, rf"not usable here: .*{re.escape(reason.split('; ')[0])}")

    def test_a_folder_that_is_not_there(self):
        for words in (["--set", "plugins.path=nosuch"], [self.write('[plugins]\npath = ["nosuch"]\n')]):
            place = "--set plugins.path" if len(words) == 2 else "job.toml:2:8: plugins.path"
            self.golden_error(self.dtrun(*words, "--", "true"), place, "nosuch")
        shared = self.environment(DTRUN_PLUGIN_PATH=f"/nonexist:{self.folder}")
        job = self.dtrun("true", env=shared)
        self.assert_ok(job)
        self.assertEqual(job.err.count("  warning    "), 1, job.err)
        for text in (job.err, self.dtrun("plan", "true", env=shared).out, self.dtrun("plugins", "list", env=shared).err):
            self.golden_lines(text, "DTRUN_PLUGIN_PATH: ", "'/nonexist'")

    def test_describe_prints_every_option(self):
        described = json.loads(self.dtrun("plugins", "describe", "gloo", "--json").out)
        text = self.dtrun("plugins", "describe", "gloo").out
        self.assertIn("library", described["here"])
        self.golden_lines(text, "interface", "backend.options.interface")
        self.golden_lines(text, "backend.options.KEY", "backend.gloo.KEY")
        self.assertIn("\n  members: plan\n", self.dtrun("plugins", "describe", "per-process").out)
        self.assertGreater(len(described["options"]), 0)
        for option in described["options"]:
            self.assertIn(option["key"], text)
            self.assertIn(option["doc"], text)

    def test_describe_of_words_that_are_no_plugin(self):
        for name in "none", "auto":
            result = self.dtrun("plugins", "describe", name)
            self.assert_ok(result)
            self.assertEqual(len(result.out.splitlines()), 1)
            self.golden(result.out, f"backend {name}: ")
            self.assertEqual(json.loads(self.dtrun("plugins", "describe", name, "--json").out)["name"], name)

    def test_describe_of_nothing_lists_what_exists(self):
        result = self.dtrun("plugins", "describe", "golo")
        self.golden_error(result, "'golo'", "gloo", "cuda")

    def test_describe_of_a_device_says_what_is_here(self):
        text = self.dtrun("plugins", "describe", "cuda")
        self.assert_ok(text)
        self.golden_lines(text.out, "device cuda")
        described = json.loads(self.dtrun("plugins", "describe", "cuda", "--kind", "device", "--json").out)
        self.assertEqual((described["kind"], described["options"]), ("device", []))
        self.assertTrue({"devices", "unusable", "error"} & set(described["here"]), described)
        self.assertIn("device    cuda ", self.dtrun("plugins", "list").out)


class Schemas(JobTest):
    """Every JSON output begins with the version of its layout."""

    def test_outputs_and_files(self):
        self.assert_ok(self.dtrun("--set", "job.name=asked", "--", "true"))
        self.assertEqual(self.dtrun("-n", "2", "--set", "job.name=failed", "--", "false").code, 1)
        texts = [(self.folder / "runs" / name).read_text() for name in
                 ("asked/latest/plan.json", "asked/latest/verdict.json", "failed/latest/verdict.json")]
        for command in ("plan true", "doctor", "explain latest", "explain nothing", "plugins list", "plugins describe gloo",
                        "config list", "env --list", "env --rank 0 --as torchrun"):
            verb, *rest = command.split()
            texts.append(self.dtrun(verb, "--json", *rest).out if verb in ("plan", "explain") else
                         self.dtrun(verb, *rest, "--json").out)
        for text in texts:
            self.assertTrue(text.startswith('{\n  "schema": 1,\n'), text[:200])


if __name__ == "__main__":
    main()
