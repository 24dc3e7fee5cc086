"""Commands, counts, ports and disks that cannot be had."""

import os
import resource
import socket
import subprocess

from support.job import JobTest, main

LIMITED = 4243  # a uid without other processes


class BadCommand(JobTest):
    def test_does_not_exist(self):
        self.assert_user_error(self.ranks(2, "no-such-program"), "no-such-program", "PATH")

    def test_a_name_that_a_terminal_would_obey(self):
        self.assert_user_error(self.ranks(2, "absent\n"), "the program 'absent\\n'")
        self.assert_user_error(self.ranks(2, "./absent\n"), "/absent\\n'")
        self.assert_user_error(self.ranks(2, "a\u202eb"), "the program 'a\\u202eb'")
        planned = self.dtrun("plan", "true", "a\u202eb")
        self.assert_ok(planned)
        self.assertIn("$'a\\xe2\\x80\\xaeb'", planned.out)
        self.assertNotIn("\u202e", planned.out)

    def test_a_config_that_is_a_program(self):
        self.write("print(1)\n", "train.py")
        for flag in ("-c", "--config"):
            self.golden_error(self.dtrun(flag, "train.py", "--epochs", "3"), flag, "'train.py'", "dtrun -n 2 python3 train.py")

    def test_values_that_are_empty_and_flags_that_contradict(self):
        for option in ("--torch-backend", "--hostfile", "--host-index", "--color", "--config"):
            self.golden_error(self.dtrun("-n", "2", option, "", "true"), option)
        self.golden_error(self.dtrun("-qv", "-n", "2", "true"), "--quiet and --verbose")

    def test_too_little_address_space_names_its_limit(self):
        # In less than some limit the loader or a thread does not start, in more dtrun succeeds; where that is depends on the build.
        for limit in range(24000, 60000, 500):
            result = self.ranks(2, "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit << 10, limit << 10)))
            if "out of memory" in result.err or result.code == 0:
                break
        if result.code == 0:
            self.skipTest("this build runs out of memory in no limit that was tried")
        # Which of dtrun's processes has too little first depends on the build as well.
        self.golden(result.err.replace("the agent failed: ", ""), f"`ulimit -v`, which is {limit}")

    def test_path_does_not_exist(self):
        self.golden_error(self.ranks(2, "./absent"), "/absent")

    def test_not_executable(self):
        self.write("echo hi\n", "train.sh")
        self.golden_error(self.ranks(2, "./train.sh"))
        self.write("#!/bin/sh\n", "train.sh")
        self.golden_error(self.ranks(2, "./train.sh"), "chmod +x")

    def test_no_interpreter_line(self):
        self.write("echo hi\n", "train.sh").chmod(0o755)
        result = self.ranks(2, "./train.sh")
        self.assertNotEqual(result.code, 0)
        self.assertIn("train.sh", result.err)
        self.assertIn("#!", result.err)

    def test_a_rank_that_cannot_be_started_after_another(self):
        for rank, shell in enumerate(("/bin/sh", "/no/such/shell")):
            self.write(f"#!{shell}\nsleep 100\n", f"rank{rank}").chmod(0o755)
        self.golden_error(self.ranks(2, f"{self.folder}/rank${{RANK}}"), "/no/such/shell", "started by then: 1")

    def test_working_directory_missing(self):
        self.assert_user_error(self.ranks(1, "true", sets=["job.cwd=/no/such/folder"]), "/no/such/folder")

    def test_nothing_to_run(self):
        self.golden_error(self.dtrun(), "dtrun job.toml")

    def test_too_many_processes(self):
        self.assert_user_error(self.ranks(1000000, "true"), "processes_per_host", "4096")

    def test_more_processes_than_the_system_allows(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become a user without other processes")
        self.folder.chmod(0o777)
        for most in range(1, 9):
            def limit(most=most):
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
                os.setgroups([])
                os.setresgid(LIMITED, LIMITED, LIMITED)
                os.setresuid(LIMITED, LIMITED, LIMITED)
            with self.subTest(processes=most):
                result = self.ranks(8, "sleep", "0.2", preexec_fn=limit)
                self.assertNotEqual(result.code, 0)
                self.assertIn("ulimit -u", result.err)
                self.assertNotIn("author", result.err)


class Port(JobTest):
    def test_in_use_names_the_port_and_its_owner(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            result = self.ranks(1, "true", sets=[f"job.master_port={port}"])
            self.assert_user_error(result, str(port), f"{os.getpid()}")

    def test_rank_0_can_listen_on_the_port_that_is_held(self):
        listen = "import os,socket; s=socket.create_server((os.environ['MASTER_ADDR'],int(os.environ['MASTER_PORT']))); print('listening')"
        self.assertIn("listening", self.ranks(1, "python3", "-c", listen).out)


class Logs(JobTest):
    def test_folder_that_cannot_be_made(self):
        self.write("", "file")
        self.assert_user_error(self.ranks(1, "true", sets=["logs.dir=file/logs"]), "file/logs")

    def test_a_full_disk_is_said_once_and_the_job_goes_on(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("this machine mounts nothing")
        try:
            result = self.ranks(1, "seq", "1", "200000", sets=[f"logs.dir={disk}/logs"])
        finally:
            subprocess.run(["umount", disk], check=True)
        self.assert_ok(result)
        self.assertEqual(result.err.count("rank-0.out': no space "), 1, result.err[-2000:])
        self.assertEqual(result.out, "".join(f"{i}\n" for i in range(1, 200001)))


if __name__ == "__main__":
    main()
