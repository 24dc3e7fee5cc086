"""A rank: init and finalize, twice and out of order, and children."""

import os
import sys
import time

import numpy
from checks import equal, refused

import dtrun

OVER = dtrun.FailedPrecondition


def in_a_child(world):
    child = os.fork()
    if child == 0:
        try:
            for call in (dtrun.init, lambda: world.allreduce(numpy.ones(1)), lambda: world.allreduce(numpy.ones(1), wait=False)):
                refused(call, "fork", error=OVER)
            assert not dtrun.is_initialized()
            dtrun.finalize()
        except BaseException as failure:
            print(f"in the child: {failure!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    equal(world.allreduce(numpy.ones(1)), [world.size])


def after_the_end(world, part, work):
    for comm in (world, part):
        for call in (comm.barrier, lambda: comm.allreduce(numpy.ones(1)), lambda: comm.split(0), lambda: comm.alloc(8), comm.abort):
            refused(call, f"communicator {comm.name} has ended", "finalize()", error=OVER)
        comm.free()
        assert "ended" in repr(comm)
    equal(work.wait(), [5])  # finalize() has waited for it
    assert work.done()
    refused(dtrun.world, "dtrun.init() has not been called", error=OVER)
    refused(dtrun.rank, error=OVER)


dtrun.finalize()  # without an init it does nothing
refused(dtrun.size, "dtrun.init()", error=OVER)
world = dtrun.init()
assert dtrun.init() is world and dtrun.world() is world and dtrun.is_initialized()
assert (dtrun.rank(), dtrun.size()) == (world.rank, world.size) == (dtrun.local_rank(), dtrun.local_size())[:2]
dtrun.finalize()
assert dtrun.is_initialized()  # counted: one is left
in_a_child(world)
part = world.split(world.rank % 2, -world.rank)
assert world.split(None) is None
work = part.allreduce(numpy.ones(1), wait=False)
work.wait()
late = world.allreduce(numpy.zeros(1), wait=False)
if world.rank == 1:
    late = world.recv(numpy.zeros(1), 0, tag=5, wait=False)
    world.recv(numpy.zeros(1), 0, tag=6, wait=False)  # dropped
world.barrier()
if world.rank == 0:
    time.sleep(0.3)  # rank 1 is in finalize() by now
    late = world.send(numpy.full(1, 5.0), 1, tag=5, wait=False)
    world.send(numpy.full(1, 6.0), 1, tag=6)
view = numpy.frombuffer(world.alloc(80))
view[:] = 3
with world.split(0) as free_early:
    part_view = numpy.frombuffer(free_early.alloc(8 << 20))
    part_view[:] = 4
equal(part_view[-2:], [4, 4])
dtrun.finalize()
dtrun.finalize()
assert not dtrun.is_initialized()
equal(view, [3] * 10)
refused(dtrun.init, f"(80, {8 << 20} bytes)", "drop them (del)", error=OVER)
del view
equal(part_view[-2:], [4, 4])
del part_view
if world.rank == 1:
    after_the_end(world, part, late)
again = dtrun.init()
equal(again.allreduce(numpy.ones(1)), [again.size])
shown = again.alloc(8)  # at the end of the program
print(f"rank {world.rank} of {world.size} is done", flush=True)
