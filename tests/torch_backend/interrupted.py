"""Ctrl-C in a call of torch.distributed: rank 0, which stands in it alone, gets KeyboardInterrupt, and the group is aborted."""

import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from checks import refused, run

import dtrun.torch

PACKAGE = os.path.dirname(os.path.abspath(dtrun.__file__))


def interrupt_once_it_stands():
    """SIGINT to this process when its main thread is inside a call of the package and does not come back from it."""

    def place():
        frame = sys._current_frames()[threading.main_thread().ident]
        return (frame, frame.f_lasti) if frame.f_code.co_filename.startswith(PACKAGE) else None

    def watch():
        while True:
            before = place()
            time.sleep(0.1)
            if before and before == place():
                return os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def check_calls_are_cut_short(rank, world):
    x = torch.ones(4)
    for what, call in (
        ("allreduce", lambda group: dist.all_reduce(x, group=group)),
        ("allreduce", lambda group: dist.all_reduce(x, group=group, async_op=True).wait()),
        ("allreduce", lambda group: dist.all_reduce(x.to_sparse(), group=group)),
        ("barrier", lambda group: dist.barrier(group)),
        ("recv", lambda group: dist.recv(x, 1, group=group)),
        ("allgather", lambda group: dist.all_gather_object([None] * world, 5, group=group)),
    ):
        group = dist.new_group(list(range(world)))
        if rank == 0:
            interrupt_once_it_stands()
            refused(lambda: call(group), KeyboardInterrupt)
            refused(lambda: dist.all_reduce(x, group=group), dtrun.Aborted, f"rank 0 was interrupted (SIGINT) in {what}()")
        dist.barrier()


if __name__ == "__main__":
    run(sys.modules[__name__])
