"""Headers of a later minor, made from today's: what docs/abi.md says is appended really is, in three places.

    appendix.py HEADERS FOLDER     copies HEADERS to FOLDER, with the appendices

An element type of 8 bits with its scale, a completion callback, and counters of a communicator. The golden backend
and driver use them where DTRUN_APPENDIX is defined, so tests/test_golden_plugins.py tries old and new on both sides.
"""

import pathlib
import re
import shutil
import sys

APPENDICES = [
    ("base.h", r"(#define DTRUN_ABI_MINOR) (\d+)u", lambda found: f"{found[1]} {int(found[2]) + 1}u\n#define DTRUN_APPENDIX 1"),
    ("types.h", r"(DTRUN_COMPLEX128 = 15) (/\*.*?\*/)",
     r"\1, \2" "\n  DTRUN_FLOAT8_E4M3 = 16 /* its value is that of the code times dtrun_op.send_scale or recv_scale */"),
    ("op.h", r"(DTRUN_OP_BLOCKING = 1) (/\*.*?\*/)",
     r"\1, \2" "\n  DTRUN_OP_CALLBACK = 1 << 16 /* calls `completed` once, at its end; only with DTRUN_CAP_CALLBACK */"),
    ("op.h", r"(\} dtrun_op;)",
     r"  double send_scale; /* DTRUN_FLOAT8_E4M3; else 0 */" "\n  double recv_scale;\n"
     r"  void (*completed)(void* context, dtrun_status status); /* DTRUN_OP_CALLBACK; else NULL */" "\n  void* context;\n" r"\1"),
    ("backend.h", r"(DTRUN_CAP_LOSSY = 32) (/\*.*?\*/)", r"\1, \2" "\n  DTRUN_CAP_CALLBACK = 64"),
    ("backend.h", r"(typedef struct dtrun_backend \{)",
     "typedef struct dtrun_counters {\n  uint32_t struct_size;\n  uint32_t flags;\n  uint64_t operations; /* that have completed */\n"
     r"  uint64_t bytes;      /* that this rank gave */" "\n} dtrun_counters;\n\n" r"\1"),
    ("backend.h", r"(\} dtrun_backend;)",
     r"  /* Optional. [abort-safe] */" "\n"
     r"  dtrun_status (*counters)(dtrun_backend_comm* comm, dtrun_counters* out, dtrun_error* err);" "\n" r"\1"),
]


def append(headers, folder):
    shutil.copytree(headers, folder)
    for name, where, what in APPENDICES:
        file = pathlib.Path(folder, "dtrun/abi", name)
        text, count = re.subn(where, what, file.read_text(), flags=re.S)
        if count != 1:
            raise ValueError(f"{name}: {where} stands there {count} times; correct this list")
        file.write_text(text)


if __name__ == "__main__":
    append(*sys.argv[1:])
