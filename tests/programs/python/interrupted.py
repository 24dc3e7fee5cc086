"""A rank that stands in the call that its argument names, until a SIGINT comes; rank 1 ends last.

Ranks print "standing" before, and rank 0 afterwards how long after the signal it went on.
"""

import os
import signal
import sys
import threading
import time

import numpy
from checks import refused, stand_inside

import dtrun

CALLS = {
    "allreduce": lambda world: world.allreduce(numpy.ones(4)),
    "recv": lambda world: world.recv(numpy.ones(4), 1),
    "wait": lambda world: world.allreduce(numpy.ones(4), wait=False).wait(),
    "object": lambda world: world.allgather_object(world.rank),
    "split": lambda world: world.split(0),
    "group": lambda world: group(world),
    "free": lambda world: free(world),
}


def group(world):
    with world.group():
        world.recv(numpy.ones(4), 1)


def free(world):
    """A communicator that waits for an operation without a Work."""
    with world.subset([0, 1]) as both:
        both.recv(numpy.ones(4), 1, wait=False)


def tell():
    """Prints "standing" once the main thread is inside a call of libdtrun and does not come back from it."""

    def watch():
        stand_inside(threading.main_thread())
        print("standing", flush=True)

    threading.Thread(target=watch, daemon=True).start()


def stay():
    """Rank 1 until rank 0 has gone on: what ended rank 0's call was not the end of this one."""
    print("standing", flush=True)
    try:
        while True:
            time.sleep(60)
    except KeyboardInterrupt:
        print("rank 1 was interrupted", flush=True)
        while not os.path.exists(sys.argv[2] + ".over"):
            time.sleep(0.001)
        raise


def handler_of_the_program(world):
    """A program that handles SIGINT by itself is left alone."""
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    if world.rank == 0:
        tell()
        world.recv(numpy.ones(1), 1)
    else:
        print("standing", flush=True)
        while not seen:
            time.sleep(0.001)
        time.sleep(1)  # longer than a watcher would look
        world.send(numpy.ones(1), 0)
    until = time.monotonic() + 10
    while not seen:
        assert time.monotonic() < until
    world.barrier()
    print(f"rank {world.rank} handled it", flush=True)


def interrupt(call):
    world = dtrun.init()
    if world.rank == 1:
        if call == "free":
            world.subset([0, 1])
        stay()
    try:
        tell()
        CALLS[call](world)
    except KeyboardInterrupt:
        late = time.time() - os.stat(sys.argv[2]).st_mtime  # the file has the time of the signal
        if call != "free":  # that of the world goes on
            refused(world.barrier, "rank 0 was interrupted (SIGINT)", error=dtrun.Aborted)
        print(f"rank 0 was interrupted after {late:.3f} s", flush=True)
        raise
    finally:
        open(sys.argv[2] + ".over", "w").close()


if sys.argv[1] == "handler":
    handler_of_the_program(dtrun.init())
elif sys.argv[1] != "init":
    interrupt(sys.argv[1])
elif os.environ["RANK"] == "1":
    open(sys.argv[2] + ".over", "w").close()
    stay()
else:
    tell()
    dtrun.init()  # waits for rank 1
