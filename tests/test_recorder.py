"""The flight recorder under ranks that write over it: the agent goes on, and accuses no rank of another's garbage."""

from support.job import JobTest, main

PREFACE = "import os, time; fd = os.open(os.environ['DTRUN_RECORDER'], os.O_RDWR); size = os.fstat(fd).st_size; "
# Until the agent has looked at it several times, and a little longer.
KEEP_WRITING = PREFACE + """
rank = int(os.environ['RANK'])
end = time.monotonic() + 2
while time.monotonic() < end:
    os.pwrite(fd, GARBAGE, 0)
    time.sleep(0.05)
"""


class RecorderTest(JobTest):
    def garbage(self, expression):
        return self.ranks(2, "python3", "-c", KEEP_WRITING.replace("GARBAGE", expression))

    def expect_said(self, result):
        self.assert_ok(result)
        for rank in (0, 1):
            self.assertEqual(result.err.count(f" rank {rank} in the flight recorder"), 1, str(result))
        self.assertNotIn("differs", result.err)

    def test_random_bytes_end_nothing(self):
        self.expect_said(self.garbage("os.urandom(size)"))

    def test_ones_end_nothing(self):
        self.expect_said(self.garbage("b'\\xff' * size"))

    def test_small_numbers_are_not_taken_for_calls(self):
        self.expect_said(self.garbage("b''.join(n.to_bytes(8, 'little') for n in (1, 2, 64, 128, 3, 0, 1, 1)) * (size // 64)"))

    def test_cannot_be_cut(self):
        result = self.ranks(2, "python3", "-c", PREFACE + "os.ftruncate(fd, 0)")
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("Operation not permitted", result.err)  # what the rank says; the agent lives


if __name__ == "__main__":
    main()
