"""libpmix, which listens on TCP, is in a process of its own: what strangers send ends no job, what ends that process is
named, and code in it can start no program and touch no other process.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from support.job import BUILD, DTRUN, PATIENCE_S, SOURCE, JobTest, main, processes_with, skip, until
from support.lab import command_of, parent_of

OPEN_MPI = BUILD / "tests" / "open_mpi_program"
FLOOD = SOURCE / "tests" / "support" / "pmix_flood.py"
STRANGER = 4242
PMIX = BUILD / "lib" / "dtrun" / "dtrun-pmix"
DENY = [sys.executable, "-S", str(SOURCE / "tests" / "support" / "deny.py")]
SANITIZED = re.search(r"^DTRUN_SANITIZE:STRING=.", (BUILD / "CMakeCache.txt").read_text(), re.M) is not None
# A library in place of libpmix that tries, when it is loaded, what an attacker would.
INTRUDER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *given) { return given; }
static void told(const char *what, long result) { fprintf(stderr, "%s: %s\n", what, result < 0 ? strerror(errno) : "works"); }

__attribute__((constructor)) static void intrude(void) {
  char byte;
  struct iovec here = {&byte, 1}, there = {&byte, 1};
  char *command[] = {"true", NULL};
  pthread_t thread;
  told("ptrace", ptrace(PTRACE_DETACH, getppid(), NULL, NULL));  // which would stop no process
  told("read the memory of another process", process_vm_readv(getppid(), &here, 1, &there, 1, 0));
  told("signal another process", kill(getppid(), 0));
  told("signal the process group", kill(0, 0));
  told("unshare", syscall(SYS_unshare, 0));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  told("fork", child);
  told("signal itself", kill(getpid(), 0));
  told("open a socket", socket(AF_INET, SOCK_STREAM, 0));
  told("start a thread", -(pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0));
  if (child > 0) waitpid(child, NULL, 0);
  told("execve", execv("/bin/true", command));
}
"""
REFUSED = ("ptrace", "read the memory of another process", "signal another process", "signal the process group", "unshare", "fork",
           "execve")
MANY = 300  # of handshakes; the server of dtrun 0.1, in the agent, died within 12


class PmixTest(JobTest):
    def environment(self, **more):
        more.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        return super().environment(**more)

    def servers(self):
        """Processes of the test's jobs that hold a PMIx server."""
        return [pid for pid in processes_with(self.mark) if program_of(pid) == "dtrun-pmix"]

    def agent_of(self, job):
        return until(lambda: next((pid for pid in processes_with(self.mark) if parent_of(pid) == job.pid), None), "the agent")

    def waiting_job(self, *more, sets=()):
        """A job of two ranks that are past MPI_Init, its PMIx server, and the file that lets it end."""
        file = self.folder / "go-on"
        job = self.start_ranks(2, OPEN_MPI, "wait", file, sets=sets)
        for rank in range(2):
            job.wait_for_line(rank, "ready")
        return job, self.server(), file

    def server(self):
        servers = until(self.servers, "the PMIx server")
        self.assertEqual(len(servers), 1)
        return servers[0]

    def flood(self, server, *identity):
        ports = ports_of(server)
        for seed in range(3):
            for port in ports:
                subprocess.run([sys.executable, FLOOD, *map(str, (port, MANY, seed, *identity))], check=True,
                               stdout=subprocess.DEVNULL, timeout=120)


def program_of(pid):
    return (command_of(pid) or "gone").split()[0].split("/")[-1]


def ports_of(pid):
    """Where the process listens on TCP."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}")))
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                found.append((words[1].split(":")[0], int(words[1].split(":")[1], 16)))
    return [port for _, port in found]


class PmixApart(PmixTest):
    def test_only_the_server_process_holds_libpmix_and_listens(self):
        job, server, file = self.waiting_job()
        self.assertTrue(ports_of(server))
        agent = self.agent_of(job)
        self.assertNotIn("libpmix", Path(f"/proc/{agent}/maps").read_text())
        self.assertEqual(ports_of(agent), [])
        self.assertIn("libpmix", Path(f"/proc/{server}/maps").read_text())
        file.touch()
        self.assert_ok(job.finish())

    @unittest.skipIf(SANITIZED, "a sanitizer traces its own process")
    def test_what_runs_in_the_server_has_no_way_out(self):
        if shutil.which("cc") is None:
            self.skipTest("there is no C compiler")
        source = self.write(INTRUDER, "intruder.c")
        name = re.search(rb"libpmix\.so\.\d+", PMIX.read_bytes())[0].decode()
        subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-o", self.folder / name, source], check=True)
        done = subprocess.run([PMIX, "check"], env={**os.environ, "LD_LIBRARY_PATH": str(self.folder)}, capture_output=True, text=True)
        outcomes = dict(line.split(": ") for line in done.stderr.splitlines())
        for what in REFUSED:
            self.assertEqual(outcomes[what], "Function not implemented", f"{what}\n{done.stderr}")
        for what in ("signal itself", "open a socket", "start a thread"):
            self.assertEqual(outcomes[what], "works", done.stderr)
        job, server, file = self.waiting_job()
        status = Path(f"/proc/{server}/status").read_text()
        self.assertRegex(status, r"(?m)^NoNewPrivs:\s1\nSeccomp:\s2$")
        file.touch()
        self.assert_ok(job.finish())

    @unittest.skipIf(SANITIZED, "a sanitizer traces its own process")
    def test_without_seccomp_it_serves_all_the_same(self):
        process = subprocess.run([*DENY, "EINVAL", "filters", "--", DTRUN, "-n", "2", OPEN_MPI], cwd=self.folder, env=self.environment(),
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(process.stdout.count("sum 3"), 2, process.stdout)
        self.golden_lines(process.stderr, "dtrun-pmix: ", "seccomp")

    def test_a_job_without_mpi_has_no_server(self):
        job = self.start_ranks(2, "sh", "-c", "echo ready; while [ ! -e go-on ]; do sleep 0.01; done")
        for rank in range(2):
            job.wait_for_line(rank, "ready")
        self.assertEqual(self.servers(), [])
        (self.folder / "go-on").touch()
        self.assert_ok(job.finish())

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_what_another_user_sends_changes_nothing(self):
        job, server, file = self.waiting_job()
        self.flood(server, STRANGER)
        self.assertEqual(self.servers(), [server], "it reads what strangers send")
        file.touch()
        result = job.finish()
        self.assert_ok(result)
        self.assertEqual(len(re.findall(r"rank \d of 2 on \S+: sum 3", result.out)), 2, str(result))

    def test_what_the_own_user_sends_ends_the_server_at_most(self):
        job, server, file = self.waiting_job()
        self.flood(server)
        file.touch()
        result = job.finish()
        if result.code != 0:
            self.assertEqual(result.code, 1, str(result))
            self.assertRegex(result.err, r"PMIx .*signal \d+ \(SIG\w+")

    def test_a_stopped_server_is_resumed(self):
        job, server, file = self.waiting_job()
        os.kill(server, signal.SIGSTOP)
        file.touch()
        result = job.finish()
        self.assert_ok(result)
        self.golden_lines(result.err, "PMIx", f"(pid {server})", "SIGSTOP")

    def test_a_death_that_ranks_suffer_from_is_named(self):
        job, server, _ = self.waiting_job()
        os.kill(server, signal.SIGSEGV)
        result = job.finish()
        self.assertEqual(result.code, 1, str(result))
        self.assertRegex(result.err, r"PMIx .*signal 11 \(SIGSEGV.*ranks 0, 1 ")
        self.assertIn("next: ", result.err)
        self.assert_verdict(result, exit_class="launcher")

    def test_a_restart_makes_up_for_such_a_death(self):
        job, server, file = self.waiting_job(sets=["restart.max=1"])
        os.kill(server, signal.SIGSEGV)
        file.touch()
        result = job.finish()
        self.assert_ok(result)
        self.assertIn("class: launcher", result.err)
        self.assertIn("after 1 restart", result.err)

    def test_a_death_after_mpi_finalize_is_no_failure(self):
        file = self.folder / "go-on"
        job = self.start_ranks(2, OPEN_MPI, "wait-after", file)
        for rank in range(2):
            job.wait_for_line(rank, "finalized")
        os.kill(self.server(), signal.SIGSEGV)
        until(lambda: not self.servers(), "the server's end")
        file.touch()
        result = job.finish()
        self.assert_ok(result)
        self.golden_lines(result.err, "MPI", "job continues")

    def test_a_death_that_no_rank_has_noticed_is_said(self):
        job = self.start_ranks(2, "sh", "-c", "echo ready; while [ ! -e go-on ]; do sleep 0.01; done", sets=["job.pmi=pmix"])
        for rank in range(2):
            job.wait_for_line(rank, "ready")
        os.kill(self.server(), signal.SIGKILL)
        until(lambda: not self.servers(), "the server's end")
        (self.folder / "go-on").touch()
        result = job.finish()
        self.assert_ok(result)
        self.golden_lines(result.err, "PMIx", "signal 9 (SIGKILL)")

    def test_each_generation_has_a_server_of_its_own(self):
        script = ("echo up; while [ ! -e go-$DTRUN_GENERATION ]; do sleep 0.01; done; "
                  "[ $DTRUN_GENERATION = 2 ] || exit 3")
        job = self.start_ranks(1, "sh", "-c", script, sets=["job.pmi=pmix", "restart.max=2"])
        seen = []
        for generation in range(3):
            new = until(lambda: [pid for pid in self.servers() if pid not in seen], f"the server of generation {generation}")
            self.assertEqual(len(new), 1)
            until(lambda: self.servers() == new, "the one before to go")
            seen += new
            (self.folder / f"go-{generation}").touch()
        self.assert_ok(job.finish())
        self.assertEqual(len(set(seen)), 3)

    def test_a_killed_agent_takes_the_server_with_it(self):
        job, server, _ = self.waiting_job()
        os.kill(self.agent_of(job), signal.SIGKILL)
        job.finish()
        until(lambda: not Path(f"/proc/{server}").exists(), "the server's end")


if __name__ == "__main__":
    if not OPEN_MPI.exists():
        skip("Open MPI was not found when this build was configured")
    if subprocess.run([DTRUN, "plan", "--set", "job.pmi=pmix", "--", "true"], capture_output=True).returncode != 0:
        skip("dtrun was built without PMIx")
    main()
