"""Deaths of every process of a job at every moment: bounded, explained, nothing left."""

import contextlib
import json
import os
import pty
import signal
from pathlib import Path

from support.job import RANK, JobTest, main, processes_with, until, until_gone

STUBBORN = "trap '' TERM INT; echo ready; while :; do sleep 1000; done"


class RankDies(JobTest):
    def die(self, place, how, rank=1, count=3, **more):
        return self.ranks(count, RANK, "die", place, str(rank), how, sets=["job.grace=3s"], **more)

    def test_before_init(self):
        result = self.die("before-init", "exit=7")
        self.assertEqual(result.code, 7, str(result))
        self.assert_verdict(result, ending=(1, 7), exit_class="user-error", first_failed_rank=1)
        self.assertIn("| dying before-init", result.err)

    def test_in_the_middle_of_an_allreduce(self):
        result = self.die("in-allreduce", str(int(signal.SIGKILL)))
        self.assertEqual(result.code, 137, str(result))
        self.assert_verdict(result, ending=(1, "SIGKILL"), exit_class="signal", first_failed_rank=1)

    def test_of_a_segmentation_fault(self):
        result = self.die("in-allreduce", str(int(signal.SIGSEGV)))
        self.assertEqual(result.code, 139, str(result))
        self.assert_verdict(result, ending=(1, "SIGSEGV"), exit_class="signal", first_failed_rank=1)

    def test_at_exit(self):
        result = self.die("at-exit", "exit=9", rank=2)
        self.assertEqual(result.code, 9, str(result))
        self.assert_verdict(result, ending=(2, 9), first_failed_rank=2)

    def test_the_code_is_that_of_the_first_and_the_others_are_folded_under_it(self):
        command = f"""if [ $RANK = 2 ]; then read go < {self.folder}/go; exit 42; fi
                      trap "exit 5" TERM; echo ready; while :; do sleep 0.01; done"""
        os.mkfifo(self.folder / "go")
        job = self.start_ranks(4, "sh", "-c", command)
        for rank in (0, 1, 3):
            job.wait_for_line(rank, "ready")
        (self.folder / "go").write_text("go\n")
        result = job.finish()
        self.assertEqual(result.code, 42, str(result))
        self.assert_verdict(result, first_failed_rank=2)
        for rank in (0, 1, 3):
            self.assert_verdict(result, ending=(rank, 5))

    def test_the_verdict_is_also_json(self):
        job = self.start_ranks(2, "sh", "-c", 'echo last words; [ $RANK = 0 ] && exit 3; sleep 1000')
        self.assertEqual(job.finish().code, 3)
        verdict = json.loads((job.run_dir() / "verdict.json").read_text())
        self.assertEqual(verdict["exit_code"], 3)
        self.assertEqual(verdict["first_failed_rank"], 0)

    def test_a_rank_that_ignores_term_is_killed_after_the_grace_period(self):
        command = f'if [ $RANK = 0 ]; then read go < {self.folder}/go; exit 1; fi; {STUBBORN}'
        os.mkfifo(self.folder / "go")
        job = self.start_ranks(2, "sh", "-c", command, sets=["job.grace=200ms"])
        job.wait_for_line(1, "ready")
        (self.folder / "go").write_text("go\n")
        self.assertEqual(job.finish().code, 1)

    def test_its_children_die_with_it_also_in_sessions_of_their_own(self):
        command = 'setsid sleep 1000 & sleep 1000 & if [ $RANK = 0 ]; then kill -9 $$; fi; wait'
        self.assertEqual(self.ranks(2, "sh", "-c", command, sets=["job.grace=1s"]).code, 137)


class DtrunDies(JobTest):
    """SIGKILL of either of dtrun's own processes; tearDown finds survivors."""

    def start_and_find(self):
        job = self.start_ranks(2, "sh", "-c", "setsid sleep 1000 & echo up; sleep 1000",
                               env=self.environment(XDG_RUNTIME_DIR=str(self.folder)))
        for rank in (0, 1):
            job.wait_for_line(rank, "up")
        agents = until(lambda: [int(p) for p in children(job.pid)], "the agent")
        return job, agents[0]

    def test_the_process_that_the_user_started(self):
        job, _ = self.start_and_find()
        job.signal(signal.SIGKILL)
        job.process.wait()
        self.assertEqual(until_gone(self.mark), [])

    def test_the_agent(self):
        job, agent = self.start_and_find()
        os.kill(agent, signal.SIGKILL)
        result = job.finish()
        self.assertEqual(result.code, 137, str(result))
        self.assertIn("SIGKILL", result.err)

    def kill_and_look(self, victim):
        job, agent = self.start_and_find()
        left = lambda: [p.name for p in self.folder.iterdir() if p.name.startswith("dtrun-")]
        self.assertEqual(len(left()), 1)
        os.kill(agent if victim == "agent" else job.pid, signal.SIGKILL)
        job.process.wait()
        self.assertEqual(until_gone(self.mark), [])
        until(lambda: not left(), f"the runtime folder to go after the {victim} was killed")

    def test_no_socket_or_folder_stays_behind_the_agent(self):
        self.kill_and_look("agent")

    def test_no_socket_or_folder_stays_behind_the_guard(self):
        self.kill_and_look("guard")


    def test_the_next_job_removes_what_a_scheduler_left_that_killed_all_at_once(self):
        job, _ = self.start_and_find()
        everything = processes_with(self.mark)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in everything:
                with contextlib.suppress(ProcessLookupError):  # its parent's death has ended it
                    os.kill(pid, number)
        job.process.wait()
        folder = next(path for path in self.folder.iterdir() if path.name.startswith("dtrun-"))
        os.utime(folder, (0, 0))  # not of a job that begins just now
        environment = self.environment(XDG_RUNTIME_DIR=str(self.folder))
        self.assert_ok(self.ranks(1, "true", env=environment))
        self.assertFalse(folder.exists())


class Parents(JobTest):
    def test_one_that_ignores_the_ends_of_its_children(self):
        result = self.ranks(2, "sh", "-c", "exit 7", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(result.code, 7, str(result))


class Interrupts(JobTest):
    def test_once_is_forwarded_and_waits_for_the_ranks(self):
        command = 'trap "echo saved; exit 0" INT; echo up; while :; do sleep 0.1; done'
        job = self.start_ranks(2, "sh", "-c", command)
        job.wait_for_line(0, "up"), job.wait_for_line(1, "up")
        job.signal(signal.SIGINT)
        result = job.finish()
        self.assertEqual(result.code, 130, str(result))
        self.assertIn("[0] saved", result.out)
        self.assertIn("[1] saved", result.out)
        self.assertIn("SIGINT", result.err)

    def test_twice_kills_at_once(self):
        job = self.start_ranks(2, "sh", "-c", STUBBORN, sets=["job.grace=1h"])
        job.wait_for_line(0, "ready"), job.wait_for_line(1, "ready")
        job.signal(signal.SIGINT)
        until(lambda: self.saw_interrupt(job), "the first interrupt to be taken")
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish().code, 130)

    def saw_interrupt(self, job):
        return "SIGINT" in os.read(job.process.stderr.fileno(), 65536).decode(errors="replace")

    def test_term(self):
        job = self.start_ranks(2, "sh", "-c", "echo ready; exec sleep 1000")
        job.wait_for_line(0, "ready"), job.wait_for_line(1, "ready")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish().code, 143)

    def test_usr1_is_forwarded_and_ends_nothing(self):
        command = 'trap "echo checkpoint; touch $OUT" USR1; echo up; until [ -e $OUT ]; do sleep 0.05; done'
        job = self.start_ranks(1, "sh", "-c", command, env=self.environment(OUT=str(self.folder / "saved")))
        job.wait_for_line(0, "up")
        job.signal(signal.SIGUSR1)
        result = job.finish()
        self.assert_ok(result)
        self.assertIn("checkpoint", result.out)

    def test_ctrl_c_at_a_terminal_counts_once(self):
        """The terminal sends SIGINT to both of dtrun's processes; ranks must get one."""
        command = 'trap "n=x$n; echo got $n" INT; echo up; i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done; echo end $n'
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(
                os.environ["DTRUN_BUILD"] + "/bin/dtrun",
                ["dtrun", "--", "sh", "-c", command],
                self.environment(),
            )
        seen = b""
        sent = False
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
            if b"up" in seen and not sent:
                os.write(master, b"\x03")
                sent = True
        _, status = os.waitpid(pid, 0)
        os.close(master)
        text = seen.decode(errors="replace")
        self.assertIn("end x\r", text.replace("\r\n", "\r"), text)
        self.assertEqual(os.waitstatus_to_exitcode(status), 130, text)


def children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    return Path(path).read_text().split() if os.path.exists(path) else []


if __name__ == "__main__":
    main()
