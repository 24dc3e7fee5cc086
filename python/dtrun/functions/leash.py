"""leash.py PARENT FOLDER PROGRAM [ARGUMENT...]: runs PROGRAM, which does not outlive the process PARENT.

When PARENT dies, however it does, PROGRAM gets SIGTERM, and FOLDER, which PARENT would have removed, goes after PROGRAM has
ended. SIGINT and SIGTERM are passed on; the exit code is PROGRAM's.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PASSED_ON = (signal.SIGINT, signal.SIGTERM)
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def end_with(parent):
    """SIGTERM for this process when its parent dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        sys.exit("dtrun: the program that started this job is gone")


def become(words, leash):
    """In the child. A program inherits what is ignored: nothing of that is left."""
    for number in (*PASSED_ON, *IGNORED_BY_PYTHON):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    end_with(leash)
    os.execv(words[0], words)


def main():
    parent, folder, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    end_with(parent)
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    leash, child = os.getpid(), os.fork()
    if child == 0:
        become(words, leash)
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: os.kill(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if os.getppid() != parent:
        import shutil

        shutil.rmtree(folder)
    sys.exit(128 - code if code < 0 else code)


main()
