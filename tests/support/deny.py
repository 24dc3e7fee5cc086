"""deny.py ERRNO [filters] -- COMMAND: runs it where pidfds are denied, as an older container runtime's seccomp profile does;
or seccomp filters, which some emulators and kernels lack.
"""

import ctypes
import errno
import os
import struct
import sys

DENIED = (434, 424, 438)  # pidfd_open, pidfd_send_signal, pidfd_getfd of x86-64
PRCTL, FIRST_ARGUMENT = 157, 16  # its offset in the data of a filter
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06  # of BPF, a word each
ALLOW, FAIL = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_char_p)]


def deny(number, what):
    rules = [(LOAD, 0, 0, 0)]
    if what == "filters":
        rules += [(JUMP_EQUAL, 0, 3, PRCTL), (LOAD, 0, 0, FIRST_ARGUMENT), (JUMP_EQUAL, 0, 1, PR_SET_SECCOMP),
                  (RETURN, 0, 0, FAIL | number)]
    else:
        for call in DENIED:
            rules += [(JUMP_EQUAL, 0, 1, call), (RETURN, 0, 0, FAIL | number)]
    rules.append((RETURN, 0, 0, ALLOW))
    program = Program(len(rules), b"".join(struct.pack("HBBI", *rule) for rule in rules))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program)):
        sys.exit(f"deny.py: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    words = sys.argv.index("--") + 1
    deny(getattr(errno, sys.argv[1]), sys.argv[2])
    os.execvp(sys.argv[words], sys.argv[words:])
