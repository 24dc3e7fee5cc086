"""The processes of a job, and those that they start: reaped, told apart, ended."""

import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import uuid
from multiprocessing import shared_memory
from pathlib import Path

from support.job import DTRUN, PATIENCE_S, RANK, JobTest, end, main, processes_with, until

# Forks twice, so that every grandchild becomes an orphan and ends as one.
ORPHANS = """
import os
for i in range(1000):
    pid = os.fork()
    if pid == 0:
        os.fork()
        os._exit(0)
    os.waitpid(pid, 0)
print("made", flush=True)
os.read(0, 1)
"""


# A segment of Python's, which its resource tracker unlinks when the pipe to it closes.
SEGMENT = """
import os, signal, sys, time
from multiprocessing import resource_tracker, shared_memory
name, how = sys.argv[1], sys.argv[2]
segment = shared_memory.SharedMemory(create=True, size=4096, name=f"{name}_{os.environ['RANK']}")
tracker = resource_tracker._resource_tracker._pid
while not int(open(f"/proc/{tracker}/status").read().partition("SigIgn:")[2].split()[0], 16) & 1 << signal.SIGTERM - 1:
    time.sleep(0.01)  # it has not begun yet
open(f"{name}.{os.environ['RANK']}", "w").close()
while not all(os.path.exists(f"{name}.{rank}") for rank in range(int(os.environ["WORLD_SIZE"]))):
    time.sleep(0.01)
if how == "end":
    os._exit(0)
if how == "fail":
    os._exit(3)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if os.environ["RANK"] == "1":
    sys.exit(3)
time.sleep(1000)
"""

# Rank 0 waits with two untracked segments; rank 1 fails.
UNTRACKED = """
import os, sys, time
from multiprocessing import resource_tracker, shared_memory
if os.environ["RANK"] == "1":
    while not os.path.exists("up"):
        time.sleep(0.01)
    sys.exit(3)
segments = [shared_memory.SharedMemory(create=True, size=4096, name=name) for name in sys.argv[1:]]
for segment in segments:
    resource_tracker.unregister(segment._name, "shared_memory")
open("up", "w").close()
time.sleep(1000)
"""

# Rank 0 waits with a segment of a process outside the job; rank 1 fails.
ATTACHED = """
import os, sys, time
from multiprocessing import resource_tracker, shared_memory
def wait(file):
    while not os.path.exists(file):
        time.sleep(0.01)
if os.environ["RANK"] == "1":
    wait("closed")
    sys.exit(3)
print("up", flush=True)
wait("made")
segment = shared_memory.SharedMemory(name=sys.argv[1])
resource_tracker.unregister(segment._name, "shared_memory")
print("attached", flush=True)
time.sleep(1000)
"""

# As torch's shared memory manager: it unlinks what its clients have left a while after the last of them. The rank has the
# segment mapped no more when it ends.
MANAGED = """
import os, sys, time
segment, code = "/dev/shm/" + sys.argv[1] + os.environ["RANK"], int(sys.argv[2])
reader, writer = os.pipe()
ready, begun = os.pipe()
if os.fork() == 0:
    os.setsid()
    with open("/proc/self/comm", "w") as comm:
        comm.write("torch_shm_manag")
    os.close(writer)
    os.close(ready)
    os.close(begun)
    os.read(reader, 1)
    time.sleep(1)
    if os.path.exists(segment):
        os.unlink(segment)
    os._exit(0)
os.close(begun)
os.read(ready, 1)
if sys.argv[3] == "segment":
    open(segment, "w").close()
open(sys.argv[1] + os.environ["RANK"], "w").close()  # in the working folder: a failing rank ends the others
while not all(os.path.exists(sys.argv[1] + rank) for rank in "01"):
    time.sleep(0.01)
os._exit(code if os.environ["RANK"] == "1" else 0)
"""

# Each process of a chain lives for a hundredth of a second, in a session of its own.
CHAINS = """
import os, time
for _ in range(100):
    if os.fork() == 0:
        while True:
            os.setsid() if os.getpid() != os.getsid(0) else None
            time.sleep(0.01)
            if os.fork() != 0:
                os._exit(0)
print("up", flush=True)
"""


def children(pid):
    """Pid and state of each child."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                found.append((int(child), Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]))
            except OSError:
                continue  # reaped meanwhile
    return found


def pieces(terminal):
    """Everything written to a terminal, until no process has it open."""
    while select.select([terminal], [], [], PATIENCE_S)[0]:
        try:
            yield os.read(terminal, 65536)
        except OSError:
            return
    raise AssertionError(f"who has the terminal wrote nothing for {PATIENCE_S} s")


class Processes(JobTest):
    def test_orphans_are_reaped_while_the_job_runs(self):
        reader, writer = os.pipe()
        job = self.start_ranks(1, sys.executable, "-c", ORPHANS, stdin=reader)
        os.close(reader)
        job.wait_for_line(0, "made")
        [(agent, _)] = children(job.pid)
        until(lambda: len(children(agent)) == 1, "no orphans, living or zombies, beside the rank")
        os.close(writer)
        self.assert_ok(job.finish())

    def test_helpers_that_end_by_themselves_clean_up_and_are_not_spoken_of(self):
        for how, code in (("end", 0), ("fail", 3), ("kill", 137), ("one", 3)):
            with self.subTest(how):
                name = f"dtrun-test-{uuid.uuid4().hex[:8]}"
                result = self.ranks(2, sys.executable, "-c", SEGMENT, name, how)
                self.assertEqual(result.code, code, str(result))
                self.assertEqual([entry for entry in os.listdir("/dev/shm") if entry.startswith(name)], [])
                self.assertNotIn("behind", result.err)

    def test_a_segment_of_a_helper_that_dtrun_ended_is_removed_by_name(self):
        name, kept = f"psm_dtruntest{uuid.uuid4().hex[:8]}", f"dtruntest{uuid.uuid4().hex[:8]}"
        self.addCleanup(Path("/dev/shm", kept).unlink, missing_ok=True)
        result = self.ranks(2, sys.executable, "-c", UNTRACKED, name, kept)
        self.assertEqual(result.code, 3, str(result))
        self.golden_lines(result.err.replace(name, "NAME"), "NAME")
        self.assertFalse(Path("/dev/shm", name).exists())
        self.assertTrue(Path("/dev/shm", kept).exists())  # its name says that it may be meant to stay

    def test_a_segment_that_another_process_of_the_user_has_made_stays(self):
        name = f"psm_dtruntest{uuid.uuid4().hex[:8]}"
        self.addCleanup(Path("/dev/shm", name).unlink, missing_ok=True)
        job = self.start_ranks(2, sys.executable, "-c", ATTACHED, name)
        job.wait_for_line(0, "up")
        server = shared_memory.SharedMemory(create=True, size=4096, name=name)
        (self.folder / "made").touch()
        job.wait_for_line(0, "attached")
        server.close()  # it stays by its name, for the next process
        (self.folder / "closed").touch()
        result = job.finish()
        server.unlink()  # fails if it has gone
        self.assertEqual(result.code, 3, str(result))
        self.assertNotIn("left in /dev/shm", result.err)

    def test_torchs_manager_has_the_time_that_it_takes_to_clean_up(self):
        for code in (0, 3):
            for what in ("segment", "nothing"):
                with self.subTest(code=code, what=what):
                    name = f"torch_{os.getpid()}_{uuid.uuid4().hex[:8]}_"
                    for rank in range(2):
                        self.addCleanup(Path("/dev/shm", f"{name}{rank}").unlink, missing_ok=True)
                    result = self.ranks(2, sys.executable, "-c", MANAGED, name, str(code), what)
                    self.assertEqual(result.code, code, str(result))
                    self.assertEqual([entry for entry in os.listdir("/dev/shm") if entry.startswith(name)], [])
                    self.assertNotIn("behind", result.err)

    def test_a_chain_of_forks_is_ended(self):
        result = self.ranks(1, sys.executable, "-c", CHAINS, sets=["job.grace=1s"])
        self.assert_ok(result)
        self.assertEqual(processes_with(self.mark), [])

    def test_a_message_is_not_given_to_a_rank_that_it_would_end(self):
        command = 'if [ $RANK = 0 ]; then trap "echo told; exit 0" USR1; fi; echo up; until [ -e $OUT ]; do sleep 0.05; done'
        go = self.folder / "go"
        job = self.start_ranks(2, "sh", "-c", command, env=self.environment(OUT=str(go)))
        for rank in range(2):
            job.wait_for_line(rank, "up")
        job.signal(signal.SIGUSR1)
        job.wait_for_line(0, "told")
        go.touch()
        result = job.finish()
        self.assert_ok(result)
        self.golden_lines(result.err, "SIGUSR1")

    def test_ctrl_c_ends_a_debugger_at_its_prompt(self):
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            command = ["dtrun", "--set", "job.grace=1h", "--", sys.executable, "-c", "breakpoint()\nx = 1"]
            os.execve(DTRUN, command, self.environment())
        seen = b""
        for piece in pieces(master):
            if b"(Pdb)" in piece and b"(Pdb)" not in seen:
                os.write(master, b"\x03")
            seen += piece
        _, status = os.waitpid(pid, 0)
        os.close(master)
        self.assertEqual(os.waitstatus_to_exitcode(status), 130, seen.decode(errors="replace"))

    def test_what_no_rank_reads_stays_at_the_terminal(self):
        """Typed ahead: rank 0 reads one line of three, in each of these ways."""
        lines = ("import os, select, time\n{}print('read', input(), flush=True)\n"
                 "while not os.path.exists('go'): time.sleep(0.01)")
        waits = ("", "select.select([0], [], [])\n",
                 "e = select.epoll()\ne.register(0, select.EPOLLIN)\ne.poll()\ne.close()\n")
        commands = [(sys.executable, "-c", lines.format(wait)) for wait in waits]
        commands.append(("sh", "-c", 'read line; echo "read $line"; until [ -e go ]; do sleep 0.01; done'))
        for command in commands:
            with self.subTest(command=command):
                (self.folder / "go").unlink(missing_ok=True)
                master, terminal = pty.openpty()
                os.write(master, b"one\ntwo\nthree\n")
                job = subprocess.Popen([str(DTRUN), "-n", "2", "--", "sh", "-c", '[ $RANK = 1 ] || exec "$@"', "-", *command],
                                       cwd=self.folder, env=self.environment(), stdin=terminal, stdout=subprocess.PIPE)
                self.addCleanup(end, job)
                seen = b""
                while b"read one" not in seen:
                    piece = os.read(job.stdout.fileno(), 65536)
                    self.assertTrue(piece, seen)
                    seen += piece
                (self.folder / "go").touch()
                job.communicate(timeout=PATIENCE_S)
                self.assertEqual(job.returncode, 0)
                left = b""
                while select.select([terminal], [], [], 0)[0]:
                    left += os.read(terminal, 65536)
                self.assertEqual(left, b"two\nthree\n")
                os.close(master), os.close(terminal)

    def test_a_debugger_at_a_terminal_gets_its_commands(self):
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(DTRUN, ["dtrun", "--", sys.executable, "-c", "import sys\nbreakpoint()\nprint('rest', sys.stdin.read())"],
                      self.environment())
        os.write(master, b"p 40 + 2\nc\nlast words\n\x04")
        seen = b"".join(pieces(master))
        _, status = os.waitpid(pid, 0)
        os.close(master)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, seen.decode(errors="replace"))
        self.assertIn(b"42", seen)
        self.assertIn(b"rest last words", seen)

    def test_only_colours_of_a_ranks_controls_reach_a_terminal(self):
        controls = (b"\x1b]0;EVIL\x07 \x1b]52;c;EVIL\x07 \x1bPEVIL\x1b\\ \x1bXEVIL\x1b\\ \x1bc \x9b2J \xc2\x9b2J \x0e\x0f\x08 "
                    b"\xe2\x80\xae \x1b[>4;1m \x1b[8m \x1b[6n \x1b[2J \x1b[?1049h")
        program = (f"import os, sys\nos.write(2, b'\\x1b[31mred\\x1b[0m ' + {controls!r} + b' end\\n')\n"
                   f"os.write(2, b'half\\x1b]0;')\nos.write(2, b'EVIL\\x07 whole\\n')\n"
                   f"name = {controls!r}.decode('latin-1')\nraise ModuleNotFoundError(\"No module named 'x\" + name + \"'\")")
        script = self.folder / "evil.py"
        script.write_text(program)
        options = ["--set", "job.processes_per_host=2", "--", sys.executable, script]
        for words in (options, ["torchrun", "--standalone", "--nproc-per-node=2", script]):
            for redirected in (False, True):
                pid, master = pty.fork()
                if pid == 0:
                    os.chdir(self.folder)
                    if redirected:
                        os.dup2(os.open("out", os.O_CREAT | os.O_WRONLY), 1)
                    os.execve(DTRUN, ["dtrun", *map(str, words)], self.environment(NO_COLOR="1"))
                seen = b"".join(pieces(master))
                os.waitpid(pid, 0)
                os.close(master)
                seen = seen.replace(b"\r\x1b[K", b"").replace(b"\r\n", b"\n")
                text = seen.decode()
                self.assertIn("\x1b[31mred\x1b[0m", text)
                self.assertIn("half whole", text)
                self.assertIn("last output", text)
                self.assertNotIn("EVIL", text)
                plain = re.sub(r"\x1b\[(0|31)?m", "", text)
                self.assertEqual(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", plain), [], repr(seen))
        result = self.dtrun(*options)
        self.assertIn("EVIL", result.err)  # of the ranks themselves: a pipe gets every byte
        verdict = result.err[result.err.index("dtrun: job"):]
        self.assertNotIn("EVIL", verdict[: verdict.index("  logs: ")])

    def test_one_signal_ends_a_job_with_output_that_is_not_read(self):
        lines = 100000
        script = self.write(f"import sys, time\nsys.stdout.write(('.' * 99 + '\\n') * {lines})\nsys.stdout.flush()\n"
                            "open('up', 'w').close()\ntime.sleep(1000)", "chatty.py")
        sets = ["--set", f"logs.dir={self.folder}/logs", "--", sys.executable, script]
        torchrun = ["torchrun", "--standalone", "--nproc-per-node=1", "--log-dir", self.folder / "logs", "--tee", "3", script]
        for number, words, unread, code in ((signal.SIGTERM, sets, "stdout", 143), (signal.SIGINT, torchrun, "both", 1)):
            shutil.rmtree(self.folder / "logs", ignore_errors=True)
            (self.folder / "up").unlink(missing_ok=True)
            reader, writer = os.pipe()
            process = subprocess.Popen([str(DTRUN), *map(str, words)], cwd=self.folder, env=self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=writer, text=True,
                                       stderr=writer if unread == "both" else subprocess.PIPE)
            os.close(writer)
            self.addCleanup(end, process)
            until((self.folder / "up").exists, "the end of the output")
            process.send_signal(number)
            _, err = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(process.returncode, code, err)
            with os.fdopen(reader, "rb") as read:
                shown = read.read().count(b"." * 99 + b"\n")
            verdict = json.loads(next((self.folder / "logs").rglob("verdict.json")).read_text())
            sizes = [file.stat().st_size for file in (self.folder / "logs").rglob("*") if file.is_file()]
            self.assertIn(100 * lines, sizes)
            if unread == "stdout":
                self.assertEqual(verdict["lines_not_shown"], lines - shown)
                self.assertIn(f"dtrun: {lines - shown} lines ", err)
                self.assertIn("SIGTERM", err)
            else:
                self.assertGreaterEqual(verdict["lines_not_shown"], lines - shown)

    def test_a_limit_of_file_sizes_is_told_and_kills_nothing(self):
        for kilobytes in (1, 64):
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes << 10, kilobytes << 10))
            result = self.ranks(2, RANK, preexec_fn=limit)
            self.assertNotIn("SIGXFSZ", result.err)
            self.assertGreater(result.code, 0, str(result))
            self.assertIn("ulimit -f", result.out + result.err)

    def test_a_low_limit_of_open_files_is_an_error_with_both_numbers(self):
        for files, ranks, needed in ((16, 1, 42), (44, 4, 60)):
            with self.subTest(files=files):
                limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
                result = self.ranks(ranks, "true", preexec_fn=limit)
                self.assert_user_error(result, f"{files} (`ulimit -Hn`)", f" {needed} for {ranks} rank")
        self.assertEqual(list(self.folder.glob("dtrun-*")), [])

    def test_under_the_proc_of_another_namespace(self):
        unshare = ["unshare", "--pid", "--fork", "--kill-child"]
        if not shutil.which("unshare") or subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no PID namespace may be made here")
        command = [*unshare, DTRUN, "--set", "job.processes_per_host=2", "--", "sh", "-c", "sleep 1000 & exit 4"]
        result = subprocess.run(command, cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.golden_lines(result.stderr, "/proc")


if __name__ == "__main__":
    main()
