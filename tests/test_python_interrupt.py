"""Ctrl-C while ranks in Python stand in a call."""

import re
import signal
import sys

from support.job import main
from test_python import PROGRAMS, PythonTest, needs_numpy


class Interrupt(PythonTest):
    def interrupt(self, call):
        """SIGINT to dtrun, which forwards it, once rank 0 is about to enter the call and rank 1 sleeps."""
        signalled = self.folder / "signalled"
        job = self.start_ranks(2, sys.executable, PROGRAMS / "interrupted.py", call, signalled, env=self.package(),
                               sets=["job.grace=20s"])  # fmt: skip
        for rank in range(2):
            job.wait_for_line(rank, "standing")
        signalled.touch()
        job.signal(signal.SIGINT)
        return job.finish()

    def assert_cut_short(self, call):
        result = self.interrupt(call)
        late = re.search(r"rank 0 was interrupted after ([0-9.]+) s", result.out)
        self.assertIsNotNone(late, str(result))
        self.assertLess(float(late[1]), 0.5, str(result))
        self.assertIn("rank 1 was interrupted", result.out, str(result))
        self.assertIn("KeyboardInterrupt", result.err, str(result))

    def test_an_operation_is_cut_short(self):
        self.assert_cut_short("allreduce")

    def test_a_receive_is_cut_short(self):
        self.assert_cut_short("recv")

    def test_a_wait_is_cut_short(self):
        self.assert_cut_short("wait")

    def test_an_exchange_of_objects_is_cut_short(self):
        self.assert_cut_short("object")

    def test_the_end_of_a_group_is_cut_short(self):
        self.assert_cut_short("group")

    def test_the_end_of_a_communicator_is_cut_short(self):
        self.assert_cut_short("free")

    def test_the_making_of_a_communicator_is_cut_short(self):
        self.assert_cut_short("split")

    def test_init_that_waits_for_ranks_ends_the_process(self):
        result = self.interrupt("init")
        self.assertEqual(result.code, 130, str(result))
        self.golden_lines(result.err, "init()")
        self.assertIn("rank 1 was interrupted", result.out, str(result))

    def test_a_program_may_close_all_descriptors(self):
        script = self.write("import os, dtrun\ndtrun.init()\nos.closerange(3, 256)\ndtrun.finalize()\nprint('finalized')\n", "daemon.py")
        result = self.ranks(1, sys.executable, script, env=self.package())
        self.assert_ok(result)
        self.assertIn("finalized", result.out)
        self.assertNotIn("OSError", result.err)

    def test_a_handler_of_the_program_is_left_alone(self):
        result = self.interrupt("handler")
        for rank in range(2):
            self.assertIn(f"rank {rank} handled it", result.out, str(result))


if __name__ == "__main__":
    needs_numpy()
    main()
