"""Files of other users: a pipe never blocks dtrun, and devices and large files do not fill its memory."""

import os
import resource
import shutil
import subprocess

from support.job import DTRUN, JobTest, Result, free_port, main

MEMORY = 3 << 30  # of addresses; a device or a file with holes would take all of it
KINDS = ("pipe", "device", "link to a pipe", "holes")


def make(kind, path):
    """Something at the path that is no file of the kind that dtrun expects there."""
    if path.is_symlink() or path.exists():
        path.unlink()
    if kind == "pipe":
        os.mkfifo(path, 0o755)
    elif kind == "link to a pipe":
        pipe = path.with_name(path.name + ".pipe")
        if not pipe.exists():
            os.mkfifo(pipe, 0o755)
        path.symlink_to(pipe)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with open(path, "wb") as file:
            file.truncate(8 << 30)
        path.chmod(0o755)


class ForeignFiles(JobTest):
    def look(self, *arguments, **more):
        """Ends by itself, by no signal, and by no lack of memory."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # noqa: E731
        result = self.start(*arguments, preexec_fn=limit, **more).finish()
        self.assertIn(result.code, (0, 1, 2, 3), f"{arguments}\n{result}")
        self.assertNotIn("bad_alloc", result.err, f"{arguments}\n{result}")
        return result

    def test_records_of_a_run(self):
        self.assert_ok(self.dtrun("-q", "-n", "1", "--set", "backend.name=none", "--set", "logs.dir=good", "--", "true"))
        good = self.folder / "good"
        names = {file.name for file in good.iterdir() if file.is_file()} | {"verdict.json", "network.txt", "network.json", "calls.txt"}
        self.assertGreater(len(names), 6, names)
        bad = self.folder / "bad"
        for kind in KINDS:
            for name in sorted(names):
                with self.subTest(kind=kind, name=name):
                    shutil.rmtree(bad, ignore_errors=True)
                    shutil.copytree(good, bad)
                    make(kind, bad / name)
                    result = self.look("explain", "bad")
                    if name in ("plan.json", "config.json", "verdict.json", "network.txt") and kind != "holes":
                        self.assertNotEqual(result.code, 0, str(result))
                        self.assertIn(f"bad/{name}'", result.err, str(result))

    def test_files_that_are_named(self):
        file = self.folder / "named"
        by_hand = ("--hosts", "localhost", "--host-index", "0", "--set", "cluster.connect=manual", "--set", f"cluster.root=127.0.0.1:{free_port()}", "--set")
        for kind in KINDS:
            make(kind, file)
            for words in (("config", "check", file), ("explain", file), ("plan", "--hostfile", file, "true"), ("plan", file), ("plan", "./named"),
                          (*by_hand, f"cluster.key_file={file}", "true"),
                          ("plan", "--set", f'failures.path=["{file}"]', "true"),
                          ("plan", "--set", f"backend.path={file}", "--", "true"), ("plan", "--", file), ("--", file), ("-n", "1", "./named"),
                          ("plan", "torchrun", file), ("plan", "torch.distributed.launch", file)):  # fmt: skip
                with self.subTest(kind=kind, words=words):
                    result = self.look(*words)
                    if kind == "pipe" and words[1] not in ("torchrun", "torch.distributed.launch"):
                        self.assertIn("named", result.out + result.err, str(result))

    def test_files_in_a_folder_of_plugins(self):
        plugins = self.folder / "plugins"
        plugins.mkdir()
        for kind in KINDS:
            make(kind, plugins / "libdtrun_backend_other.so")
            self.look("plugins", "list", "--plugin-dir", plugins)
            self.look("plan", "--plugin-dir", plugins, "--set", "backend.name=other", "--", "true")

    def test_the_error_file_of_who_started_torchrun(self):
        """TORCHELASTIC_ERROR_FILE: a pipe without a reader is not written to, nor waited for."""
        file = self.folder / "error.json"
        script = self.write("import os, sys\nopen(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write('{\"message\": \"why\"}')\nsys.exit(3)\n", "script.py")
        for kind in ("pipe", "file"):
            file.unlink(missing_ok=True)
            if kind == "pipe":
                os.mkfifo(file)
            result = self.look("torchrun", script, env=self.environment(TORCHELASTIC_ERROR_FILE=str(file)))
            self.assertEqual(f"cannot write '{file}'" in result.err, kind == "pipe", str(result))
        self.assertTrue(file.is_file())

    def test_pipes_that_the_user_names_are_read(self):
        config = '[job]\ncommand = ["true"]\n'
        key = "0123456789abcdef" * 4
        for command, text in (("config check <(sleep 0.3; cat text)", config), ("config check /dev/stdin < text", config),
                              ("cat text | DTRUN config check /dev/stdin", config), ("plan --hostfile <(sleep 0.3; cat text) true", "localhost\n"),
                              ("explain <(sleep 0.3; cat text)", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"),
                              (f"--hosts localhost --host-index 0 --set cluster.connect=manual --set cluster.root=127.0.0.1:{free_port()} "
                               "--set cluster.key_file=<(sleep 0.3; cat text) true", key),
                              ("plan --set failures.path='[\"/dev/null\"]' true", "")):  # fmt: skip
            with self.subTest(command=command):
                self.write(text, "text")
                self.assert_ok(self.in_a_shell(command))

    def in_a_shell(self, command):
        words = command if "DTRUN" in command else f"DTRUN {command}"
        done = subprocess.run(["bash", "-c", words.replace("DTRUN", str(DTRUN))], cwd=self.folder, env=self.environment(),
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)


if __name__ == "__main__":
    main()
