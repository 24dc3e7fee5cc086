"""Fails where a file is opened for reading in a way that may wait for ever, or read without end.

core/base/read_file.h reads what others may have put somewhere and what the kernel says, spec::ReadFile what the
user names. Streams, fopen, and an open() without O_NONBLOCK wait for the writer of a
pipe, and read a device without end. PLACES has the files that do so all the same, and what they read.

check_reads.py SOURCE_DIR. Tests, and tools for developers of dtrun, are not looked at.
"""

import pathlib
import re
import sys

from check_starts import CPP_TEXT, TESTS, blank

FOLDERS = ("core", "plugins", "launchers", "sdk/include", "sdk/interfaces", "sdk/services", "sdk/helpers", "tools/dtrun", "tools/dtrun-pmix")

PLACES = {
    "core/base/own_file.cc": "/proc",
    "core/base/read_file.cc": "this is the reader of foreign files and of those of the kernel",
    "core/binding/gpu.cc": "/proc and /sys",
    "core/comm/shm/memory.cc": "/proc/PID/fd, and its kind is checked",
    "core/node/guard.cc": "/dev/null",
    "core/node/host_resources.cc": "/proc",
    "core/output/backlog.cc": "its own file in the runtime folder",
    "core/plugin/probe_keeper.cc": "/proc",
    "core/process/cgroup.cc": "cgroup files",
    "core/process/memory_evidence.cc": "/proc and cgroup files",
    "core/process/spawn.cc": "/dev/null",
    "core/failures/finding.cc": "standard input, which has to be waited for; O_NONBLOCK for all others",
    "sdk/helpers/helper.cc": "/dev/null",
    "sdk/include/dtrun/plugin/process_watch.hpp": "/proc",
    "sdk/interfaces/interfaces.cc": "/proc",
    "plugins/mpi/entry_barrier.cc": "a page in memory, at the path where a rank of the job made it",
    "plugins/nccl/peer_access.cc": "the user's own cache; /dev/null",
    "plugins/ucx/resources.cc": "/sys",
}

STREAM = re.compile(r"\bstd::(ifstream|fstream|fopen|freopen)\b|(?<![\w.>:])(fopen|freopen)\s*\(|::(fopen|freopen)\s*\(")
OPEN = re.compile(r"(?<![\w.>])open(?:at)?\s*\(([^;]*?\bO_(?:RDONLY|RDWR)\b[^;]*?)\)[;)]")
BOUNDED = re.compile(r"\bO_(?:NONBLOCK|DIRECTORY|PATH|EXCL)\b")


def unbounded(path):
    """(line, call) of each one in the file."""
    text = CPP_TEXT.sub(blank, path.read_text(encoding="utf-8", errors="replace"))
    for match in STREAM.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, next(filter(None, match.groups()))
    for match in OPEN.finditer(text):
        if not BOUNDED.search(match.group(1)):
            yield text.count("\n", 0, match.start()) + 1, "open"


def problems(root):
    unused = {name for name in PLACES if (root / name).exists()}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in (".h", ".hpp", ".c", ".cc") or TESTS.search(name) or path.name == "testing.h":
                continue
            for line, call in unbounded(path):
                unused.discard(name)
                if name not in PLACES:
                    yield (f"{name}:{line}: reads a file by {call}; use core/base/read_file.h, or "
                           "add the file to PLACES in sdk/tests/check_reads.py with what it reads")  # fmt: skip
    for name in sorted(unused):
        yield f"{name}: no longer reads files in that way; take it out of PLACES in sdk/tests/check_reads.py"


def main(root):
    found = list(problems(root.resolve()))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
