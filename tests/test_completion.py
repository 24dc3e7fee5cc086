"""Completion, in the shells themselves, and the manual pages."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

from support.job import BUILD, PATIENCE_S, JobTest, main

SCRIPTS = {"bash": BUILD / "share/bash-completion/completions/dtrun",
           "zsh": BUILD / "share/zsh/site-functions/_dtrun",
           "fish": BUILD / "share/fish/vendor_completions.d/dtrun.fish"}

# What is typed before TAB, and what the line is then.
LINES = (
    ("plug", "plugins"),
    ("config exp", "config explain"),
    ("--hostf", "--hostfile"),
    ("--set backend.na", "--set backend.name="),
    ("--set backend.name=glo", "--set backend.name=gloo"),
    ("--set=backend.name=glo", "--set=backend.name=gloo"),
    ("--set backend.options.interf", "--set backend.options.interface="),
    ("--set job.bind=non", "--set job.bind=none"),
    ("--set logs.dir=ap", "--set logs.dir=apart/"),
    ("plugins describe glo", "plugins describe gloo"),
    ("plugins describe --kind laun", "plugins describe --kind launcher"),
    ("plugins describe --kind dev", "plugins describe --kind device"),
    ("plugins chec", "plugins check"),
    ("plugins check job.tx", "plugins check job.txt"),
    ("plugins new --language ru", "plugins new --language rust"),
    ("env --as horo", "env --as horovod"),
    ("job.to", "job.toml"),
    ("zeb", "zebra.py"),
    ("plan -n 2 zeb", "plan -n 2 zebra.py"),
    ("./okap", "./okapi"),
    ("-n 2 dtrun-torchr", "-n 2 dtrun-torchrun"),
    ("--color alw", "--color always"),
    ("config init --template gp", "config init --template gpu"),
    ("--set launcher.name=per-n", "--set launcher.name=per-node"),
    ("--config jo", "--config job.toml"),
    ("plan job.toml --js", "plan job.toml --json"),
    ("--plugin-dir ap", "--plugin-dir apart/"),
    ("bench allred", "bench allreduce"),
    ("-n 2 echo job.tx", "-n 2 echo job.txt"),
    ("torchrun --nproc-p", "torchrun --nproc-per-node"),
)


class Terminal:
    """A shell that takes keys, as under a user's hands."""

    def __init__(self, command, folder, environment):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def wait_for(self, pattern):
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.text):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {pattern}; the terminal shows {self.text!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                self.text += os.read(self.fd, 65536).decode(errors="replace").replace("\a", "")

    def type(self, keys):
        self.text = ""
        os.write(self.fd, keys.encode())

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class Completion(JobTest):
    def setUp(self):
        super().setUp()
        for name in ("job.toml", "job.txt", "zebra.py", "zebra.txt", "okapi"):
            self.write("", name)
        (self.folder / "okapi").chmod(0o755)
        (self.folder / "apart").mkdir()

    def environment_of(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"because {shell} is not installed")
        return self.environment(PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}", HOME=str(self.folder), TERM="dumb")

    def check_keys(self, shell, command, setup):
        terminal = Terminal(command, self.folder, self.environment_of(shell))
        try:
            terminal.type(f"PS1='$ '; {setup}; echo rea''dy\n")
            terminal.wait_for(r"ready\r?\n")
            for typed, line in LINES:
                terminal.type(f"dtrun {typed}\t")
                terminal.wait_for(rf"dtrun {re.escape(line)}")
                terminal.type("\x15echo clea''red\n")
                terminal.wait_for(r"cleared\r?\n")
        finally:
            terminal.close()

    def test_bash(self):
        self.check_keys("bash", ["bash", "--norc", "--noprofile", "-i"],
                        f"bind 'set enable-bracketed-paste off'; source {SCRIPTS['bash']}")

    def test_zsh(self):
        self.check_keys("zsh", ["zsh", "-f", "-i"],
                        f"fpath=({SCRIPTS['zsh'].parent} $fpath); autoload -U compinit; compinit -u -D; unset zle_bracketed_paste")

    def test_fish(self):
        environment = self.environment_of("fish")
        for typed, line in LINES:
            done = subprocess.run(["fish", "--no-config", "-c", f"source {SCRIPTS['fish']}; complete -C 'dtrun {typed}'"],
                                  capture_output=True, text=True, cwd=self.folder, env=environment, check=False)
            offered = [one.split("\t")[0] for one in done.stdout.splitlines()]
            self.assertEqual((offered, done.stderr), ([line.rsplit(" ", 1)[-1]], ""), typed)


class ManualPages(JobTest):
    def test_they_render_without_a_warning_and_say_what_help_says(self):
        if shutil.which("groff") is None:
            self.skipTest("because groff is not installed")
        pages = sorted((BUILD / "share/man/man1").glob("*.1"))
        self.assertIn("dtrun-config.1", [page.name for page in pages])
        for page in pages:
            done = subprocess.run(["groff", "-ww", "-man", "-Tascii", "-P-bcu", page], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "", page)
            verb = page.stem.removeprefix("dtrun").removeprefix("-")
            shown = set(re.findall(r"--[a-z-]+", done.stdout))
            for flag in re.findall(r"(?m)^ +(?:-.,)*(--[a-z-]+)", self.dtrun("help", *verb.split()).out):
                self.assertIn(flag, shown, page)

    def test_the_format_of_a_config_has_one_too(self):
        if shutil.which("groff") is None:
            self.skipTest("because groff is not installed")
        page = BUILD / "share/man/man5/dtrun.toml.5"
        done = subprocess.run(["groff", "-ww", "-man", "-Tascii", "-P-bcu", page], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        for key in self.dtrun("completion", "keys").out.split():
            self.assertIn(f"{key} (", " ".join(done.stdout.split()))


if __name__ == "__main__":
    main()
