"""end_with_parent.py PARENT PROGRAM [ARGUMENT...]: runs PROGRAM, which gets SIGTERM when the process PARENT dies.

So a job never outlives the Python process that called dtrun.run.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, words = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        sys.exit("dtrun: the program that started this job is gone")
    # A program inherits ignored signals. Python ignores the first two; a shell or Spark may ignore the others, which end a job.
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.execv(words[0], words)


main()
