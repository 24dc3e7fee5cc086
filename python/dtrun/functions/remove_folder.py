"""remove_folder.py FOLDER: removes FOLDER at the end of stdin, which comes when the process at the other end of the pipe ends.

A killed process cannot remove its own folder. Ranks may still write there until they are killed too.
"""

import os
import shutil
import signal
import sys
import time

PATIENCE_S = 60

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.buffer.read()
deadline = time.monotonic() + PATIENCE_S
shutil.rmtree(sys.argv[1], ignore_errors=True)
while os.path.isdir(sys.argv[1]):
    if time.monotonic() > deadline:
        sys.exit(f"dtrun: {sys.argv[1]} cannot be removed; remove it")
    time.sleep(0.02)
    shutil.rmtree(sys.argv[1], ignore_errors=True)
