"""A rank that ends without finalize, as its argument says, while an operation has not ended."""

import sys
import time

import numpy
from checks import refused

import dtrun

world = dtrun.init()
mine = numpy.zeros(1 << 20)
if world.rank == 1 and sys.argv[1] not in ("differ", "open"):
    # No rank sends that. The interpreter frees the module's Work at its end; the other is dropped.
    work = world.recv(mine, 0, tag=9, wait=False)
    world.recv(numpy.zeros(1 << 20), 0, tag=8, wait=False)
if sys.argv[1] == "open":  # the interpreter ends the block, when the communicator has ended
    other = world.split(0)
    block = world.group()
    block.__enter__()
    world.allreduce(numpy.ones(1))
    other.barrier()
    print(f"rank {world.rank} of {world.size} is done", flush=True)
elif sys.argv[1] == "return":
    if world.rank == 1:  # what was started does end
        world.send(numpy.zeros(1), 0)
    else:
        world.recv(numpy.zeros(1), 1)
        world.send(mine, 1, tag=9)
        world.send(mine, 1, tag=8)
    print(f"rank {world.rank} of {world.size} is done", flush=True)
elif sys.argv[1] == "finalize":
    if world.rank == 1:
        for call in (dtrun.finalize, work.wait):
            failure = refused(call, error=dtrun.RemoteFailure)
            assert (failure.id, failure.ranks, failure.peer) == ("comm.peer_failed", (0,), 0), vars(failure)
        assert str(failure).count("recv from rank 0") == 1, failure
        assert not dtrun.is_initialized()
    print(f"rank {world.rank} of {world.size} is done", flush=True)
elif sys.argv[1] == "differ":
    failure = refused(lambda: world.broadcast(numpy.ones(1 + world.rank)), error=dtrun.Mismatch)
    assert (failure.id, sorted(failure.ranks)) == ("comm.calls_differ", [0, 1]), vars(failure)
    for name, *arguments in (("allgather", mine), ("barrier",), ("alloc", 8), ("split", 0)):
        again = refused(lambda: getattr(world, name)(*arguments), f"{name}: 'world' has failed before: ", error=dtrun.Mismatch)
        assert (again.id, again.ranks) == (failure.id, failure.ranks), vars(again)
    print(f"rank {world.rank} of {world.size} is done", flush=True)
elif sys.argv[1] == "abort" and world.rank == 1:
    world.abort("bad batch")
    time.sleep(1000)
elif sys.argv[1] == "group" and world.rank == 1:
    with world.group():
        world.recv(mine, 0, tag=7)  # no rank sends that
        raise ValueError("bad batch")
elif world.rank == 1:
    raise ValueError("bad batch")
else:
    world.barrier()
