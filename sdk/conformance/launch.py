"""Starts a test program once per rank, as a library's own launcher would: launch.py RANKS PROGRAM [ARGUMENT ...]

Each process finds DTRUN_SUITE_RANK, DTRUN_SUITE_SIZE and DTRUN_SUITE_FOLDER, an empty folder that all share. Fails when
one of them fails, or when a rank ran no case at all.
"""

import os
import re
import subprocess
import sys
import tempfile


def start(rank, size, folder, command):
    environment = dict(os.environ, DTRUN_SUITE_RANK=str(rank), DTRUN_SUITE_SIZE=str(size), DTRUN_SUITE_FOLDER=folder)
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main(size, command):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        ranks = [start(rank, size, folder, command) for rank in range(size)]
        for rank, process in enumerate(ranks):
            output, _ = process.communicate()
            passed = re.search(r"\[  PASSED  \] (\d+) test", output)
            if process.returncode != 0 or passed is None or int(passed[1]) == 0:
                print(f"rank {rank} exited with {process.returncode}:\n{output}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
