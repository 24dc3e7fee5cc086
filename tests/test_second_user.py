"""Another user of the machine, who tries every way into a running job: docs/security.md row by row.

Root plays both: the job is root's, the stranger a process with uid 4242. The folder of the test is open to all, so
that nothing but dtrun's own modes stands in the way.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import stat
import subprocess
import unittest
from pathlib import Path

from support.job import DTRUN, PATIENCE_S, JobTest, main, processes_with, skip, until

STRANGER = 4242
SLEEP = "trap '' USR1; echo ready; while [ ! -e go ]; do sleep 0.05; done"
"".encode("idna")  # loaded now: the stranger may not be able to read the interpreter's folder
PYTHON = "/usr/bin/python3"  # which the stranger may run
ASK_STORE = ("import os, socket; c = socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))); "
             "c.sendall(bytes([6])); print(len(c.recv(8)))")
LIBC = ctypes.CDLL(None, use_errno=True)
SYS_PIDFD_GETFD = 438
PTRACE_ATTACH = 16


def as_stranger(action):
    """Runs action() in a child with another uid; what it returned, or the OSError that it ended with."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(here)
        try:
            os.setgroups([])
            os.setresgid(STRANGER, STRANGER, STRANGER)
            os.setresuid(STRANGER, STRANGER, STRANGER)
            text = f"did {action()}"
        except OSError as error:
            text = f"refused {error.strerror}"
        except BaseException as error:  # a mistake of the test's
            text = f"broken {error!r}"
        os.write(there, text[:4000].encode())
        os._exit(0)
    os.close(there)
    with os.fdopen(here) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def call(number_or_name, *arguments):
    """A system call, or a function of libc; raises OSError."""
    ctypes.set_errno(0)
    if isinstance(number_or_name, int):
        result = LIBC.syscall(number_or_name, *arguments)
    else:
        result = getattr(LIBC, number_or_name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


GONE = (FileNotFoundError, ProcessLookupError)  # before and after its file was opened


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except GONE:
        return False


def descriptors_of(pids):
    """(pid, number, what it is) of what these processes have open."""
    found = []
    for pid in pids:
        with contextlib.suppress(*GONE):  # a helper that has ended meanwhile
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(*GONE):  # closed meanwhile
                    found.append((pid, int(fd), os.readlink(f"/proc/{pid}/fd/{fd}")))
    return found


def mapped_by(pids):
    """Files that these processes have mapped."""
    found = []
    for pid in pids:
        with contextlib.suppress(*GONE):
            for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
                found += line.split(maxsplit=5)[5:]
    return found


def inodes_of(pids):
    return {target[8:-1] for _, _, target in descriptors_of(pids) if target.startswith("socket:[")}


def tcp_listeners(pids):
    """(family, port) of every socket on which these processes listen."""
    mine, found = inodes_of(pids), []
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{pids[0]}/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in mine:
                found.append((family, int(words[1].rsplit(":", 1)[1], 16)))
    return found


def unix_listeners(pids):
    """Names of every Unix socket that these processes have bound, abstract ones with a NUL."""
    mine, found = inodes_of(pids), set()
    for line in Path(f"/proc/{pids[0]}/net/unix").read_text(errors="replace").splitlines()[1:]:
        words = line.split()
        if words[6] in mine and len(words) > 7:
            found.add("\0" + words[7][1:] if words[7].startswith("@") else words[7])
    return sorted(found)


class SecondUserTest(JobTest):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)

    def expect_refused(self, action, what, of=None):
        """`of`: a process that may have ended meanwhile, and then has nothing to refuse."""
        told = as_stranger(action)
        if of is not None and not lives(of):
            return
        self.assertTrue(told.startswith("refused "), f"{what}: the stranger {told}")

    def running(self, *sets):
        """A job of two ranks, its processes, and what they inherited that ends it well."""
        job = self.start_ranks(2, "sh", "-c", SLEEP, sets=sets)
        for rank in (0, 1):
            job.wait_for_line(rank, "ready")
        return job, processes_with(self.mark)

    def end_well(self, job):
        (self.folder / "go").touch()
        self.assert_ok(job.finish())


class Files(SecondUserTest):
    def test_of_a_run_are_not_read_listed_or_replaced(self):
        job, _ = self.running()
        run_dir = job.run_dir()
        names = [path.name for path in run_dir.iterdir()]
        self.assertIn("plan.json", names)
        self.assertIn("control", names)
        self.expect_refused(lambda: self.connect(str(run_dir / "control")), "connect to control")
        self.expect_refused(lambda: os.listdir(run_dir), "list the run directory")
        for name in names:
            file = run_dir / name
            self.expect_refused(lambda: file.read_bytes(), f"read {name}")
            self.expect_refused(lambda: os.unlink(file), f"remove {name}")
            self.expect_refused(lambda: os.open(file, os.O_WRONLY), f"write {name}")
        self.expect_refused(lambda: os.open(run_dir / "more", os.O_CREAT | os.O_WRONLY), "make a file there")
        self.expect_refused(lambda: os.rename(run_dir, run_dir.parent / "x"), "move the run directory")
        for verb in ("logs", "explain"):
            told = as_stranger(lambda: subprocess.run([DTRUN, verb, run_dir], capture_output=True, text=True, cwd="/").stderr)
            self.assertIn(f"'{run_dir}' cannot be read", told)
        self.end_well(job)

    def test_of_the_runtime_folder_are_not_reached(self):
        job, pids = self.running()
        sockets = [name for name in unix_listeners(pids) if name.startswith("/") and not name.startswith("/proc/self/fd/")]
        self.assertTrue(sockets, "the store listens somewhere")
        for name in sockets:
            folder = Path(name).parent
            self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700, folder)
            self.expect_refused(lambda: self.connect(name), f"connect to {name}")
            self.expect_refused(lambda: os.listdir(folder), f"list {folder}")
            self.expect_refused(lambda: os.unlink(name), f"remove {name}")
            self.expect_refused(lambda: os.rename(folder, f"{folder}-taken"), f"move {folder}")
        self.end_well(job)

    @staticmethod
    def connect(name):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(name)

    def test_in_shared_memory_have_no_name(self):
        job, pids = self.running()
        targets = [target for _, _, target in descriptors_of(pids)] + mapped_by(pids)
        for path in {target for target in targets if target.startswith("/dev/shm/") and os.path.exists(target)}:
            info = os.lstat(path)
            self.assertEqual((info.st_uid, info.st_mode & 0o077), (0, 0), path)
        self.assertTrue([target for target in targets if target.startswith("/memfd:dtrun")], "the flight recorder is there")
        self.end_well(job)

    def test_that_the_stranger_made_beforehand_are_not_written(self):
        mine = self.folder / "mine"
        mine.write_text("precious")
        trap = self.folder / "trap"
        trap.mkdir()
        for name in ("verdict.json", "plan.json", "rank-0.out", "rank-0.err"):
            (trap / name).symlink_to(mine)
        os.mkfifo(trap / "config.json", 0o666)
        for path in (trap, *trap.iterdir()):
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        result = self.dtrun("--set", f"logs.dir={trap}", "--", "echo", "x")
        self.assertEqual(mine.read_text(), "precious")
        self.assert_ok(result)
        self.golden_lines(result.err, f"'{trap}'", f"{STRANGER}")

    def sticky(self):
        """A folder for all, as /tmp; fs.protected_symlinks may be on or off."""
        folder = self.folder / "sticky"
        folder.mkdir()
        folder.chmod(0o1777)
        return folder

    def strangers_link(self, link, target):
        link.symlink_to(target)
        os.chown(link, STRANGER, STRANGER, follow_symlinks=False)

    def test_are_not_made_through_the_link_of_a_stranger(self):
        victim = self.folder / "victim"
        victim.mkdir()
        (victim / "config.json").write_text("precious")
        sticky = self.sticky()
        self.strangers_link(sticky / "runs", victim)
        for place in ("runs", "runs/{job}/{time}"):
            result = self.dtrun("--set", f"logs.dir={sticky}/{place}", "--", "echo", "x")
            self.golden_error(result, f"'{sticky}/runs'", f"{STRANGER}", "logs.dir")
        self.assertEqual([path.name for path in victim.iterdir()], ["config.json"])
        self.assertEqual((victim / "config.json").read_text(), "precious")

    def test_of_a_restart_are_not_written_through_the_link_of_a_stranger(self):
        victim = self.folder / "victim"
        victim.mkdir()
        (victim / "rank-0.out").write_text("precious")
        trap = self.folder / "trap"
        trap.mkdir()
        os.chown(trap, STRANGER, STRANGER)
        self.strangers_link(trap / "generation-1", victim)
        again = ("--set", f"logs.dir={trap}", "--set", "restart.max=1", "--", "sh", "-c", "false")
        result = self.dtrun(*again)
        self.assertEqual(result.code, 1, str(result))
        self.golden_lines(result.err, "generation-1'", f" {STRANGER};")
        self.assertEqual([path.name for path in victim.iterdir()], ["rank-0.out"])
        self.assertEqual((victim / "rank-0.out").read_text(), "precious")
        (trap / "generation-1").unlink()
        (trap / "generation-1").write_text("")
        self.assertEqual(self.dtrun(*again).code, 1)
        self.assertTrue((next(trap.glob("before-*")) / "generation-1").is_file(), "what stood there is kept")

    def test_that_the_stranger_made_beforehand_take_no_verdict_of_a_killed_agent(self):
        mine = self.folder / "mine"
        mine.write_text("precious")
        job = self.start_ranks(1, "sh", "-c", SLEEP, sets=(f"logs.dir={self.folder}/trap",))
        until(lambda: "ready" in self.read("trap/rank-0.out"), "the rank")
        agent = next(pid for pid in self.children(job.pid))
        (self.folder / "trap/verdict.json").symlink_to(mine)
        os.kill(agent, signal.SIGKILL)
        self.assertNotEqual(job.finish().code, 0)
        self.assertEqual(mine.read_text(), "precious")
        self.assertFalse((self.folder / "trap/verdict.json").is_symlink())

    def read(self, name):
        file = self.folder / name
        return file.read_text() if file.exists() else ""

    def children(self, pid):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def test_are_not_made_where_another_user_may_rename(self):
        place = self.folder / "theirs"
        place.mkdir()
        for owner, mode in ((STRANGER, 0o755), (0, 0o777)):
            os.chown(place, owner, owner)
            place.chmod(mode)
            result = self.dtrun("--", "sh", "-c", "env; ls " + str(place), env=self.environment(XDG_RUNTIME_DIR=str(place)))
            self.assert_ok(result)
            self.assertIn("/tmp/dtrun-", result.out)
            self.assertNotIn(f"{place}/", result.out)

    def test_that_look_like_ours_and_are_not_stay(self):
        place = self.folder / "tmp"
        theirs, own = place / "dtrun-0123456789ab", place / "dtrun-0123456789ac"
        for folder in (theirs, own):
            folder.mkdir(parents=True)
            (folder / "work").write_text("x")
        os.chown(theirs, STRANGER, STRANGER)
        for folder in (theirs, own):
            os.utime(folder, (0, 0))
        self.assert_ok(self.dtrun("--", "true", env=self.environment(XDG_RUNTIME_DIR=str(place))))
        self.assertTrue((theirs / "work").exists())
        self.assertTrue((own / "work").exists())


class Processes(SecondUserTest):
    def test_are_not_signalled_traced_or_looked_into(self):
        job, pids = self.running()
        self.assertGreaterEqual(len(pids), 4)  # guard, agent, two ranks
        for pid in pids:
            self.expect_refused(lambda: os.kill(pid, signal.SIGTERM), f"signal {pid}", pid)
            self.expect_refused(lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGTERM), f"signal {pid} by pidfd", pid)
            self.expect_refused(lambda: call("ptrace", PTRACE_ATTACH, pid, 0, 0), f"trace {pid}", pid)
            for name in ("environ", "mem", "maps", "fd", "cwd", "exe"):
                path = f"/proc/{pid}/{name}"
                self.expect_refused(lambda: os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1), path, pid)
        self.end_well(job)

    def test_stay_in_their_control_group(self):
        job, pids = self.running()
        folders = set()
        for pid in pids:
            for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
                if line.startswith("0::") and "dtrun-" in line:
                    folders.add(Path("/sys/fs/cgroup" + line[3:]))
        for folder in folders:
            for name in ("cgroup.procs", "cgroup.kill", "cgroup.freeze"):
                self.expect_refused(lambda: os.open(folder / name, os.O_WRONLY), f"write {folder / name}")
            self.expect_refused(lambda: os.mkdir(folder / "sub"), f"make a group in {folder}")
            self.expect_refused(lambda: os.rmdir(folder), f"remove {folder}")
        self.end_well(job)
        self.assertFalse([str(folder) for folder in folders if folder.exists()])
        if not folders:
            self.skipTest("jobs have no control group here")

    def test_give_no_descriptor_and_no_memory_away(self):
        job, pids = self.running()
        found = 0
        for pid, fd, target in descriptors_of(pids):
            if not target.startswith("/memfd:dtrun"):
                continue
            found += 1
            self.expect_refused(lambda: os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR), f"open {target} of {pid}")
            self.expect_refused(lambda: call(SYS_PIDFD_GETFD, os.pidfd_open(pid), fd, 0), f"take {target} of {pid}")
        self.assertGreater(found, 0, "the flight recorder is a memfd")
        self.end_well(job)


class Sockets(SecondUserTest):
    def test_do_not_end_the_job_whatever_comes(self):
        job, pids = self.running()
        # Those of the test's own machine; dtrun's own ones are known for what docs/security.md says of them.
        addresses = [(family, ("::1" if family == socket.AF_INET6 else "127.0.0.1", port)) for family, port in tcp_listeners(pids)]
        addresses += [(socket.AF_UNIX, name) for name in unix_listeners(pids)]
        for family, address in addresses:
            for noise in (b"", b"\0" * 4096, b"\xff" * 4096, os.urandom(4096), b"GET / HTTP/1.0\r\n\r\n"):
                told = as_stranger(lambda: self.say(family, address, noise))
                self.assertFalse(told.startswith("broken"), told)
        self.end_well(job)

    def test_of_torchruns_store_take_this_user_only(self):
        script = self.write("import os, time\nopen('port', 'w').write(os.environ['MASTER_PORT'])\nos.rename('port', 'there')\n"
                            "while not os.path.exists('go'): time.sleep(0.05)\n", "train.py")
        job = self.start("torchrun", "--standalone", "--nproc-per-node=1", script)
        until((self.folder / "there").exists, "the rank")
        port = int((self.folder / "there").read_text())
        told = as_stranger(lambda: self.keys_of_store(port))
        self.assertNotEqual(told, "did 8", "the stranger was answered")
        self.assertEqual(self.keys_of_store(port), 8)
        self.end_well(job)

    @unittest.skipUnless(shutil.which("setpriv"), "there is no setpriv")
    def test_of_torchruns_store_take_ranks_that_became_another_user(self):
        for command in (f"exec setpriv --reuid={STRANGER} --clear-groups {PYTHON} -c \"{ASK_STORE}\"",
                        f"exec {PYTHON} -c \"import os; os.setuid({STRANGER}); {ASK_STORE}\""):
            result = self.dtrun("torchrun", "--standalone", "--nproc-per-node=1", "--no-python", "sh", "-c", command)
            self.assert_ok(result)
            self.assertEqual(result.out, "8\n")

    @staticmethod
    def keys_of_store(port):
        """Bytes of the answer to torch's request how many keys there are."""
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
            client.sendall(b"\6")
            return len(client.recv(8))

    @staticmethod
    def say(family, address, noise):
        with socket.socket(family) as stranger:
            stranger.settimeout(5)
            stranger.connect(address)
            stranger.sendall(noise)


def setUpModule():
    if os.geteuid() != 0:
        skip("only root can be two users")


if __name__ == "__main__":
    main()
