"""What the user sees of ranks: live, of which ranks, folded, with what before each line, and on a narrow terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

from support.job import DTRUN, JobTest, main, until

# Prints, and then waits for a file: what is seen before that has not waited for the end.
WAIT = "import os, time\nprint('first', os.environ.get('PYTHONUNBUFFERED'))\nwhile not os.path.exists('end'): time.sleep(0.01)"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Python(JobTest):
    def test_what_it_prints_is_seen_at_once(self):
        job = self.start_ranks(2, sys.executable, "-c", WAIT)
        self.assertIn("first 1", job.process.stdout.readline())
        (self.folder / "end").touch()
        self.assert_ok(job.finish())

    def test_of_a_rank_that_was_killed_everything_is_seen(self):
        result = self.ranks(2, sys.executable, "-c", "import os; print('before'); os.kill(os.getpid(), 9)")
        self.assertIn("before\n", result.out)
        self.assertNotIn("printed nothing", result.err)

    def test_the_user_may_decide_otherwise(self):
        (self.folder / "end").touch()
        for mine in ("0", ""):
            result = self.ranks(1, sys.executable, "-c", WAIT, env=self.environment(PYTHONUNBUFFERED=mine))
            self.assertEqual(result.out.rstrip("\n"), f"first {mine}")
        result = self.ranks(1, sys.executable, "-c", WAIT, sets=["job.env.PYTHONUNBUFFERED='x'"])
        self.assertEqual(result.out, "first x\n")

    def test_every_launcher_sees_to_it(self):
        (self.folder / "end").touch()
        for launcher in ("per-node", "torchrun"):
            with self.subTest(launcher):
                result = self.ranks(1, sys.executable, "-c", WAIT, sets=[f"launcher.name={launcher}"])
                self.assertEqual(result.out, "first 1\n", str(result))

    def test_of_a_rank_that_crashes_the_verdict_names_the_line(self):
        (self.folder / "crash.py").write_text("import os\n\ndef fall():\n    os.abort()\n\nfall()\n")
        result = self.ranks(1, sys.executable, "crash.py")
        self.assertEqual(result.code, 134, str(result))
        self.assertIn(", at crash.py:4\n", result.err)
        silent = self.ranks(1, sys.executable, "crash.py", sets=["job.env.PYTHONFAULTHANDLER=''"])
        self.assertNotIn("crash.py:4", silent.err)


class Shown(JobTest):
    def printed(self, *sets, count=3, program="echo rank $RANK; echo same", more=()):
        arguments = [word for one in sets for word in ("--set", one)]
        result = self.dtrun("-n", count, *more, *arguments, "--", "sh", "-c", program)
        self.assert_ok(result)
        return result

    def test_some_ranks(self):
        lines = self.printed("output.ranks=0,2").out.splitlines()
        self.assertEqual(sorted(lines), ["[0] rank 0", "[0] same", "[2] rank 2", "[2] same"])
        self.assertEqual(self.printed("output.ranks=none").out, "")

    def test_log_files_have_the_others_too(self):
        job = self.start("-n", 2, "--set", "output.ranks=0", "--", "sh", "-c", "echo rank $RANK")
        self.assert_ok(job.finish())
        self.assertEqual(job.log(1), "rank 1\n")

    def test_ranks_that_the_job_has_not_are_a_warning(self):
        result = self.printed("output.ranks=1,5-7")
        self.golden_lines(result.err, "warning    output.ranks names 5-7", "0-2")

    def test_what_is_no_list_of_ranks_is_an_error_with_its_place(self):
        result = self.dtrun("-n", 2, "--set", "output.ranks=first", "--", "true")
        self.golden_error(result, 'dtrun: --set output.ranks: expected "all", "none"', 'found "first"')

    def test_equal_lines_once(self):
        lines = self.printed("output.fold=true").out.splitlines()
        self.assertEqual(lines[-1], "[0-2] same")
        self.assertEqual(sorted(lines[:-1]), ["[  0] rank 0", "[  1] rank 1", "[  2] rank 2"])

    def test_the_host_and_the_time_before_each_line(self):
        lines = self.printed("output.prefix=host", "output.timestamps=true", count=1).out.splitlines()
        for line in lines:
            self.assertRegex(line, rf"^\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{{3}} \[0 {os.uname().nodename}\] ")

    def test_the_former_name_of_the_prefix(self):
        self.assertEqual(self.printed("logs.prefix=none", count=1).out, "rank 0\nsame\n")

    def test_no_colour_in_a_pipe_unless_it_is_asked_for(self):
        plain = self.printed()
        self.assertNotIn("\x1b", plain.out + plain.err)
        coloured = self.printed(more=["--color", "always"])
        self.assertIn("\x1b[36m[0]\x1b[0m rank 0\n", coloured.out)
        self.assertRegex(coloured.err, r"\x1b\[32mdtrun: job '\w+' succeeded")
        result = self.dtrun("-n", 1, "--color", "sometimes", "--", "true")
        self.assert_user_error(result, "--color", "sometimes", "always")

    def test_a_header_of_three_lines_and_all_of_it(self):
        header = [line for line in self.printed().err.splitlines() if "succeeded" not in line]
        self.assertEqual(len(header), 3, header)
        for line, text in zip(header, ("3 ranks on 1 host", "backend    gloo", "logs       ")):
            self.assertIn(text, line)
        for text in ("library ", "local ", "binding ", "note "):
            self.assertIn(text, self.printed(more=["-v"]).err)


class Terminal(JobTest):
    def seen(self, columns, *words, **variables):
        """What a terminal of so many columns gets of dtrun."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {**self.environment(), "TERM": "xterm", **variables}
        if "NO_COLOR" not in variables:
            environment.pop("NO_COLOR", None)
        process = subprocess.Popen([str(DTRUN), *map(str, words)], cwd=self.folder, env=environment, stdin=slave, stdout=slave,
                                   stderr=slave)
        os.close(slave)
        got = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # no process has it open any more
                break
            if not piece:
                break
            got += piece
        until(lambda: process.poll() is not None, "dtrun to end")
        return got.decode().replace("\r\n", "\n")

    def test_help_and_lists_break_between_words(self):
        for words in ["--help"], ["plan", "--help"], ["config", "list"]:
            for columns, variables in (50, {}), (100, {"COLUMNS": "50"}):
                text = self.seen(columns, *words, **variables)
                for line in text.splitlines():
                    self.assertTrue(len(line) <= 50 or " " not in line.strip(), line)
        self.assertIn(" job in\n  logs ", self.seen(70, "config", "list", "job"))

    def test_colours_say_what_is_meant(self):
        text = self.seen(100, "-n", 2, "sh", "-c", "echo hello; exit $RANK")
        self.assertIn("\x1b[36m[0]\x1b[0m hello", text)
        self.assertRegex(text, r"\x1b\[1;31mdtrun: job '\w+' failed")

    def test_colours_are_refused_by_no_color_and_the_option(self):
        for words, variables in (((), {"NO_COLOR": "1"}), (("--color", "never"), {}), ((), {"TERM": "dumb"})):
            text = self.seen(100, *words, "-n", 2, "echo", "hello", **variables)
            self.assertNotRegex(text, ESCAPE)

    def test_no_word_breaks_on_a_narrow_terminal(self):
        text = ESCAPE.sub("", self.seen(50, "-n", 2, "sh", "-c", "exit 3"))
        for line in text.splitlines():
            # A single word may be longer: a path.
            self.assertTrue(len(line) <= 50 or len(line.split()) <= 1, repr(line))


if __name__ == "__main__":
    main()
