"""end_with_parent.py PARENT PROGRAM [ARGUMENT...]: becomes PROGRAM, which gets SIGTERM when the process PARENT dies.

A job does not outlive the Python that called dtrun.run, however that one ends.
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
    # A program inherits what is ignored: by Python the first two, by a shell or Spark the others, which end the job.
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.execv(words[0], words)


main()
