"""Rank 1 leaves by sys.exit(3) while the others wait for it, and its process ends after that of rank 0."""

import atexit
import os
import sys
import time
from pathlib import Path

import torch

import dtrun.horovod.torch as hvd

pid = Path(sys.argv[1])


def end_after_rank_0():
    try:
        while Path("/proc", pid.read_text(), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
            time.sleep(0.01)
    except OSError:
        pass


if os.environ["RANK"] == "1":
    atexit.register(end_after_rank_0)  # before hvd.init(), so it is called after hvd and dtrun have left
hvd.init()
if hvd.rank() == 0:
    pid.with_suffix(".new").write_text(str(os.getpid()))
    pid.with_suffix(".new").rename(pid)
hvd.barrier()
if hvd.rank() == 1:
    if sys.argv[2:] == ["shutdown"]:
        hvd.shutdown()
    sys.exit(3)
hvd.allreduce(torch.ones(1), name="late")
