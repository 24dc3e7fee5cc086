"""A rank: operations that run while the program goes on, drops their Work, or waits from several threads."""

import gc
import threading
import time
import weakref

import numpy
from checks import equal, refused

import dtrun
from dtrun import work as internals

MANY = 1 << 20


class Values(numpy.ndarray):
    """An array that can be watched."""


def values(value):
    return numpy.full(MANY, value).view(Values)


def until(condition, what):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.001)


def results(world):
    works = [world.allreduce(numpy.full(4, float(i)), wait=False) for i in range(20)]
    for i in reversed(range(20)):
        equal(works[i].wait(), [i * world.size] * 4)
        assert works[i].done() and works[i].wait() is works[i].wait()
    assert "allreduce: done" in repr(works[0])


def time_out(world):
    if world.rank == 1:
        mine = numpy.zeros(3)
        work = world.recv(mine, 0, wait=False)
        refused(lambda: work.wait(0.01), "recv still runs after 0.01 s", error=TimeoutError)
        assert not work.done() and "running" in repr(work)
        world.send(numpy.zeros(1), 0)  # now rank 0 sends
        assert work.wait(30) is mine
        equal(mine, [1, 2, 3])
    elif world.rank == 0:
        world.recv(numpy.zeros(1), 1)
        world.send(numpy.array([1.0, 2, 3]), 1)


def limits(world):
    """Infinity and more seconds than clocks count are no limit; what is no number is refused, whether it runs or has ended."""
    for timeout in (float("inf"), 1e300, 10**400, numpy.float32(1e30), 2**33 - 1, None):
        equal(world.allreduce(numpy.ones(1), wait=False).wait(timeout), [world.size])
    work = world.allreduce(numpy.ones(1), wait=False)
    for timeout in (float("nan"), "a", "1", b"1", [], 1j):
        text = f"wait of allreduce: timeout is {timeout!r}, a {type(timeout).__name__}; give a number of seconds, or None"
        refused(lambda: work.wait(timeout), text, error=dtrun.InvalidArgument)
        if timeout == "1":
            equal(work.wait(), [world.size])
    if world.rank == 0 < world.size - 1:  # a limit that is over
        work = world.recv(numpy.zeros(1), 1, wait=False)
        for timeout in (0, -1, float("-inf"), -(10**400)):
            refused(lambda: work.wait(timeout), "recv still runs after", error=TimeoutError)
        world.send(numpy.zeros(1), 1, tag=2)
        work.wait(float("inf"))
    elif world.rank == 1:
        world.recv(numpy.zeros(1), 0, tag=2)
        world.send(numpy.zeros(1), 0)
    world.barrier()


def dropped(world):
    """An operation keeps its memory when its Work and array are gone; it is freed after the end."""
    if world.rank == 1:
        mine = values(0.0)
        watched = weakref.ref(mine)
        begin = time.monotonic()
        world.recv(mine, 0, wait=False)  # the Work is dropped at once
        assert time.monotonic() - begin < 10, "dropping a Work waited for it"
        del mine
        gc.collect()
        assert watched() is not None and len(internals._dropped) == 1
        other = numpy.full(MANY, -1.0)  # would lie where the array lay
        world.send(numpy.zeros(1), 0)
        ended = watched()
        until(lambda: ended[-1] == 7, "the dropped operation did not go on")
        equal(other, numpy.full(MANY, -1.0))
        del ended

        def is_freed():
            world.send(numpy.zeros(1), 0, tag=1, wait=False).wait()
            return watched() is None

        until(is_freed, "the memory of the dropped operation was not freed")
        world.send(numpy.ones(1), 0, tag=1)
    elif world.rank == 0:
        world.recv(numpy.zeros(1), 1)
        world.send(values(7.0), 1)
        last = numpy.zeros(1)
        while last[0] == 0:
            world.recv(last, 1, tag=1)
    world.barrier()


def threads(world):
    """Several threads wait for one Work, and all get its result."""
    if world.rank == 1:
        mine, got = numpy.zeros(1), []
        work = world.recv(mine, 0, wait=False)
        waiting = [threading.Thread(target=lambda: got.append(work.wait())) for _ in range(4)]
        for thread in waiting:
            thread.start()
        refused(lambda: work.wait(0.01), "still runs", error=TimeoutError)
        world.send(numpy.zeros(1), 0)
        for thread in waiting:
            thread.join(30)
        assert len(got) == 4 and all(each is mine for each in got)
    elif world.rank == 0:
        world.recv(numpy.zeros(1), 1)
        world.send(numpy.zeros(1), 1)
    world.barrier()


def communicators_of_threads(world):
    """Each thread has a communicator of its own, some handles are kept and some dropped."""
    failures = []

    def run(comm, number):
        try:
            for i in range(300):
                mine = numpy.full(100, float(number + i))
                if i % 3 == 0:
                    comm.allreduce(numpy.ones(100), wait=False)
                got = comm.allreduce(mine, wait=i % 2 == 0)
                equal(got if i % 2 == 0 else got.wait(), (number + i) * comm.size)
        except BaseException as failure:
            failures.append(failure)

    parts = [world.split(0) for _ in range(4)]
    running = [threading.Thread(target=run, args=(part, number)) for number, part in enumerate(parts)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not failures, failures
    for part in parts:
        part.free()


def freed(world):
    """A communicator's end waits for the operations under way, held or dropped."""
    with world.split(0) as part:
        mine = numpy.zeros(1)
        held = None
        if part.rank == 1:
            held = part.recv(numpy.zeros(1), 0, tag=9, wait=False)
        part.allreduce(mine, wait=False)
        if part.rank == 0:
            time.sleep(0.3)  # rank 1 is in free() by now
            part.send(numpy.full(1, 9.0), 1, tag=9)
    assert not internals._dropped
    if held is not None:
        equal(held.wait(), [9])
    refused(lambda: part.allreduce(mine), "has ended", "free()", error=dtrun.FailedPrecondition)


with dtrun.init() as world:
    for check in (results, time_out, limits, dropped, threads, communicators_of_threads, freed):
        check(world)
    world.barrier()
    print(f"rank {world.rank} of {world.size} is done")
