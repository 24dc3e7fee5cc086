"""Every kind of wrong config: exit code 2, one clear message each, all of them at once."""

import fcntl
import json
import os
import pty
import resource
import struct
import subprocess
import termios

from support.job import BUILD, JobTest, main

GOOD = '[job]\ncommand = ["true"]\n'


class BadFile(JobTest):
    def check(self, config, *texts, verbs=(["--config"], ["config", "check"], ["plan", "--config"])):
        for verb in verbs:
            self.golden_error(self.dtrun(*verb, config), *texts)

    def test_missing(self):
        self.check(self.folder / "absent.toml", "absent.toml")

    def test_launchers_that_lack_what_they_are_named_for(self):
        hosts = '[cluster]\nhosts = ["localhost"]\n'
        self.check(self.write(GOOD + '[launcher]\nname = "pbs"\n'), "job.toml:4", "launcher 'pbs'", "find_hosts")
        self.check(self.write(GOOD + hosts + 'connect = "pbs"\n'), "job.toml:5", '"pbs"', "ssh, manual, flux")
        self.check(self.write(GOOD + '[cluster]\nfrom = "per-node"\n'), "job.toml:4", '"per-node"')
        # A config may be checked away from the platform it is for.
        self.check(self.write(GOOD + '[cluster]\nfrom = "pbs"\n'), "job.toml:4", "PBS_JOBID", verbs=[["--config"]])

    def test_check_looks_for_the_script(self):
        self.write("", "train.py")
        for command, text in ((["python3", "-u", "tran.py"], "'train.py'?"), (["sh", "nosuch.sh"], "job.cwd")):
            file = self.write(f"[job]\ncommand = {json.dumps(command)}\n")
            self.golden_error(self.dtrun("config", "check", file), "job.toml:2:11: job.command", text)
        for command in ["python3", "train.py", "tran.py"], ["python3", "-m", "tran.py"], ["python3", "${RANK}.py"], ["echo", "tran.py"]:
            self.assert_ok(self.dtrun("config", "check", self.write(f"[job]\ncommand = {json.dumps(command)}\n")))

    def test_a_folder(self):
        self.check(self.folder, str(self.folder), "folder")

    def test_pipes_and_folders_are_there(self):
        os.mkfifo(self.folder / "pipe.toml")
        self.golden_error(self.dtrun("--config", self.folder / "pipe.toml"), "pipe.toml: ")
        for path in (self.folder / "pipe.toml", self.folder, self.folder / "absent"):
            self.golden_error(self.dtrun("-n", "2", "--hostfile", path, "true"), f"{path}")

    def test_unreadable(self):
        if os.geteuid() == 0:
            self.skipTest("root may read everything")
        file = self.write(GOOD)
        file.chmod(0)
        self.check(file, "permission denied")

    def test_empty(self):
        self.check(self.write(""), "job.toml", "job.command")

    def test_huge(self):
        self.check(self.write("# " + "x" * (2 << 20)), "job.toml", "1MiB")

    def many_hosts(self, hosts, slots):
        names = ", ".join(f'"h{i}:{slots}"' for i in range(hosts))
        return self.write(f"{GOOD}[cluster]\nhosts = [{names}]\n")

    def test_more_ranks_than_a_job_has(self):
        """Counted before anything is made for each of them, so it takes no memory for them either."""
        self.check(self.many_hosts(60_000, 4096), "job.toml:4:9", "cluster.hosts: 245760000 ranks on 60000 hosts",
                   "1000000 ranks")
        (self.folder / "hosts").write_text("".join(f"h{i} slots=4096\n" for i in range(300)))
        self.assert_user_error(self.dtrun("plan", "--hostfile", "hosts", "true"), "hosts", "1228800 ranks on 300 hosts")

    def test_memory_that_runs_out_is_told_with_the_size_of_the_job(self):
        config = self.many_hosts(1000, 1000)
        for limit_mb in (200, 300, 400):  # of dtrun, whatever it does at that time
            result = self.dtrun("config", "check", config, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (limit_mb << 20, limit_mb << 20)))
            self.golden_error(result, "planning 1000000 ranks on 1000", "`ulimit -v`")
            self.assertNotIn("plugin", result.err)

    def test_tens_of_thousands_of_unknown_tables(self):
        config = self.write(GOOD + "".join(f"[jab{i}]\nx = 1\n" for i in range(60_000)))
        result = self.dtrun("config", "check", config)
        self.assert_user_error(result, "job.toml:3:2", "'jab0'")
        self.golden_lines(result.err, "59980")

    def test_not_utf8(self):
        self.check(self.write(b'[job]\nname = "\xff"\n'), "job.toml:2", "UTF-8")

    def test_syntax(self):
        self.check(self.write("[job]\ncommand = [\n"), "job.toml:")
        self.check(self.write('[job]\ncommand: ["true"]\n'), "job.toml:2:8", "TOML, not YAML")
        self.check(self.write('{"job": {"command": ["true"]}}\n'), "job.toml:1:1", "TOML, not JSON")
        self.check(self.write(GOOD + "name = train\n"), "job.toml:3", '"train"')
        self.check(self.write(GOOD + 'command = ["false"]\n'), "job.toml:3", "line 2")
        self.check(self.write('[job]\ncommand = ["true",\nranks = 2\n'), "job.toml:2:11: ", "']'")
        self.check(self.write(GOOD + "[output]\nfold = True\n"), "job.toml:4:8", " true")


class AtATerminal(JobTest):
    def test_errors_break_between_words(self):
        config = self.write(GOOD + '[backend]\nnam = "gloo"\n')
        master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
        done = subprocess.run([BUILD / "bin/dtrun", "config", "check", config], stdout=subprocess.PIPE, stderr=terminal,
                              env={**self.environment(), "TERM": "xterm"}, timeout=60, check=False)
        os.close(terminal)
        text = os.read(master, 65536).decode()
        os.close(master)
        self.assertEqual(done.returncode, 2, text)
        self.assertGreater(text.count("\n"), 2, text)
        for line in text.splitlines():
            self.assertTrue(len(line) <= 50 or " " not in line.strip(), line)  # words, such as paths, are never broken


class BadValue(JobTest):
    def check(self, text, *texts):
        self.golden_error(self.dtrun("--config", self.write(text)), *texts)

    def test_unknown_key_has_a_position_and_the_nearest(self):
        self.check(GOOD + '[backend]\nnam = "gloo"\n', "job.toml:4:1", "backend.nam", "'name'", "dtrun config explain")

    def test_unknown_table(self):
        self.check(GOOD + "[backedn]\nx = 1\n", "job.toml:3", "backedn", "backend")

    def test_unknown_plugin_option(self):
        self.check(GOOD + '[backend.options]\ninterfase = "lo"\n', "job.toml:4:1", "interfase", "interface")

    def test_wrong_type(self):
        self.check('[job]\ncommand = "sh a.sh"\n', "job.toml:2", "job.command", 'write ["sh", "a.sh"]')
        self.check(GOOD + 'env = ["A=1"]\n', "job.toml:3:7", 'write { A = "1" }')
        self.check(GOOD + '[output]\nfold = "true"\n', "job.toml:4:8", "output.fold")

    def test_out_of_range(self):
        self.check(GOOD + "processes_per_host = 5000\n", "job.toml:3", "4096", "5000")

    def test_a_misspelled_command_is_one_problem(self):
        result = self.dtrun("config", "check", self.write('[job]\ncomand = ["true"]\n'))
        self.golden_error(result, "'command'")
        self.assertNotIn("is required", result.err)

    def test_zero_processes(self):
        self.check(GOOD + "processes_per_host = 0\n", "job.toml:3", "processes_per_host")

    def test_a_word_of_another_launcher(self):
        self.check(GOOD + "nproc_per_node = 4\n", "job.toml:3", "'processes_per_host'")
        self.check(GOOD + "[backend.glo]\n", "job.toml:3", "[backend.gloo]")

    def test_no_class_of_failures(self):
        self.check(GOOD + '[restart]\non = ["oom"]\n', "job.toml:4:6: restart.on: 'oom'", "'out-of-memory'")
        file = self.write(GOOD + '[restart]\non = ["oom"]\n')
        self.golden_error(self.dtrun("config", "check", file), "'out-of-memory'?")

    def test_not_a_duration(self):
        self.check(GOOD + '[backend]\ntimeout = "60"\n', "job.toml:4", "backend.timeout", "60s")

    def test_all_problems_are_reported_in_one_run(self):
        self.check('[job]\nprocesses_per_host = 0\nnaem = "x"\ncommand = 3\n', ":2:", ":3:", ":4:")

    def test_values_that_their_readers_refuse_are_reported_with_the_schemas(self):
        file = self.write('[job]\ncommand = ["true"]\n[cluster]\nhosts = "a,b"\n[logs]\ndir = "$HOME/x"\n'
                          '[output]\nranks = "0,x"\n[restart]\non = ["oom"]\n')
        for verb in ([], ["plan"], ["config", "check"], ["doctor"]):
            result = self.dtrun(*verb, file)
            self.assert_user_error(result, "job.toml:4:9: cluster.hosts", "job.toml:6:7: logs.dir", "job.toml:8:9: output.ranks",
                                   "job.toml:10:6: restart.on")
            self.assertEqual(result.err.count("dtrun: "), 4, result.err)

    def test_unknown_placeholder(self):
        self.check('[job]\ncommand = ["echo", "${RNAK}"]\n', "job.toml:2", "${RNAK}", "${RANK}", "$${RNAK}")

    def test_check_and_doctor_make_the_plan(self):
        wrong = {"": '', 'env = { A = "${RNK}" }\n': "job.toml:3:9: job.env: A: unknown placeholder",
                 '[job.env]\nX = "${HOME}"\n': "job.toml:4:1: job.env: X: ",
                 'roles = { worker = 3 }\n': "job.toml:3:9: job.roles"}
        for more, text in wrong.items():
            argument = "a" if more else "${RNK}"
            file = self.write(f'[job]\ncommand = ["true", "{argument}"]\n{more}')
            text = text or "job.toml:2:11: job.command: unknown placeholder '${RNK}'"
            for verb in (["plan"], ["config", "check"]):
                self.assert_user_error(self.dtrun(*verb, file), text)
            doctor = self.dtrun("doctor", file)
            self.assertEqual(doctor.code, 1, str(doctor))
            self.assertIn(text, doctor.out)
        hosts = self.write('[job]\ncommand = ["nosuch", "${RNK}"]\n[cluster]\nhosts = ["a", "b"]\n')
        self.assert_user_error(self.dtrun("config", "check", hosts), "unknown placeholder '${RNK}'")

    def test_a_contract_variable_in_job_env(self):
        self.check(GOOD + 'env = { RANK = "7" }\n', "job.toml:3:9", "'RANK'", "per-process")
        self.check(GOOD + '[job.env]\nA = "1"\nRANK = "7"\n', "job.toml:5:1", "'RANK'")

    def test_a_bad_override_names_the_flag(self):
        self.assert_user_error(self.dtrun("--set", "job.naem=x", "--", "true"), "--set job.naem=x", "name")

    def test_a_bad_variable_is_named(self):
        environment = self.environment(DTRUN_CONFIG_BACKEND_NAEM="gloo")
        self.assert_user_error(self.dtrun("--", "true", env=environment), "DTRUN_CONFIG_BACKEND_NAEM")


class Command(JobTest):
    def test_is_an_option_as_any_other(self):
        text = '["echo", "from an option"]'
        self.assertEqual(self.dtrun("--set", f"job.command={text}").out, "from an option\n")
        environment = self.environment(DTRUN_CONFIG_JOB_COMMAND=text)
        self.assertEqual(self.dtrun(env=environment).out, "from an option\n")
        self.assertEqual(self.dtrun("echo", "typed", env=environment).out, "typed\n")
        self.golden_error(self.dtrun("--set", "job.command=python3 train.py"))


class Program(JobTest):
    def test_check_finds_what_plan_finds(self):
        file = self.write('[job]\ncommand = ["pythonn3", "train.py"]\n')
        for verb in (["plan"], ["config", "check"]):
            self.golden_error(self.dtrun(*verb, file), "job.toml:2:11: job.command", "'pythonn3'")
        self.assert_ok(self.dtrun("config", "check", file, "--set", "cluster.hosts=a,b"))

    def test_check_says_what_it_did_not_try(self):
        file = self.write('[job]\ncommand = ["true"]\n')
        self.assertEqual(self.dtrun("config", "check", file).out, f"{file}: ok\n")
        self.golden(self.dtrun("config", "check", file, "--set", "backend.name=gloo").out, f"{file}: ok", f"--config {file}")
        self.assertEqual(self.dtrun("config", "check", file, "--set", "backend.name=none").out, f"{file}: ok\n")

    def test_a_python_file_runs_as_one_that_is_typed(self):
        self.write('print("by python")\n', "train.py")
        file = self.write('[job]\ncommand = ["train.py"]\n')
        self.assert_ok(self.dtrun("config", "check", file))
        self.assertEqual(self.dtrun(file).out, "by python\n")
        self.assertEqual(self.dtrun("--set", "job.command=train.py").out, "by python\n")

    def test_a_launcher_that_runs_scripts_gets_the_script(self):
        self.write('print("by python")\n', "train.py")
        file = self.write('[job]\ncommand = ["train.py"]\n[launcher]\nname = "torchrun"\noptions.entry = "script"\n')
        self.assert_ok(self.dtrun("config", "check", file))
        self.assertIn("-u train.py\n", self.dtrun("plan", file).out)
        self.assertNotIn("-u python3", self.dtrun("plan", file).out)
        entry = ["--set", "launcher.name=torchrun", "--set", "launcher.options.entry=script"]
        self.assertNotIn("-u python3", self.dtrun("plan", *entry, "train.py").out)
        self.assertEqual(self.dtrun(*entry, "train.py").out, "by python\n")

    def test_a_file_beside_the_config_is_named_with_the_next_step(self):
        folder = self.folder / "sub"
        folder.mkdir()
        (folder / "inner.py").write_text('print("inner")\n')
        for command in ('["python3", "-u", "inner.py"]', '["inner.py"]'):
            (folder / "other.toml").write_text(f"[job]\ncommand = {command}\n")
            for verb in ([], ["plan"], ["config", "check"]):
                self.assert_user_error(self.dtrun(*verb, "sub/other.toml"), "sub/other.toml:2:11", "'inner.py' lies beside",
                                       'write cwd = "." below [job]')
            (folder / "other.toml").write_text(f'[job]\ncommand = {command}\ncwd = "."\n')
            self.assertEqual(self.dtrun("sub/other.toml").out, "inner\n")

    def test_what_only_a_shell_expands(self):
        home = self.environment(HOME="/home/me")
        for program in ("~/x.sh", "$HOME/x.sh"):
            file = self.write(f'[job]\ncommand = ["{program}"]\n')
            self.golden_error(self.dtrun("plan", file, env=home), "job.command; write /home/me/x.sh")
        file = self.write(GOOD + '[job.env]\nB = "1"\nA = "${HOME}"\n')
        self.golden_error(self.dtrun("plan", file, env=home), "job.toml:5:1: job.env")


class Precedence(JobTest):
    def test_file_then_environment_then_command_line(self):
        file = self.write(GOOD + 'name = "from-file"\n')
        explain = ["config", "explain", "job.name", "--config", file]
        self.assertIn("job.toml:3", self.dtrun(*explain).out)
        environment = self.environment(DTRUN_CONFIG_JOB_NAME="from-env")
        result = self.dtrun(*explain, env=environment)
        self.assertIn("from-env", result.out)
        self.assertIn("DTRUN_CONFIG_JOB_NAME", result.out)
        result = self.dtrun(*explain, "--set", "job.name=from-set", env=environment)
        self.assertIn("from-set", result.out)
        self.assertIn("--set", result.out)


if __name__ == "__main__":
    main()
