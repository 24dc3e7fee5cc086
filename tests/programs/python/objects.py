"""A rank: objects, those that cannot be pickled, and those that only some ranks know."""

import sys
import threading
import types

import numpy
from checks import equal, refused

import dtrun

INVALID = dtrun.InvalidArgument


class Part:
    def __init__(self, **members):
        self.__dict__.update(members)


def values(world):
    mine = {"rank": world.rank, "array": numpy.arange(world.rank * 1000), "text": "é" * world.rank}
    every = world.allgather_object(mine)
    assert [each["rank"] for each in every] == list(range(world.size))
    equal(every[-1]["array"], numpy.arange((world.size - 1) * 1000))
    assert world.broadcast_object("root's" if world.rank == 1 else None, root=1) == "root's"
    gathered = world.gather_object(world.rank, root=1)
    assert gathered == (list(range(world.size)) if world.rank == 1 else None)
    assert world.scatter_object([(r, None) for r in range(world.size)] if world.rank == 0 else None) == (world.rank, None)
    if world.rank == 0:
        world.send_object(mine, 1, tag=3)
    elif world.rank == 1:
        assert world.recv_object(0, tag=3)["rank"] == 0


class OutOfMemory:
    def __reduce__(self):
        raise MemoryError


def nested(levels):
    """A list in a list in a list ..., which pickle gives up with RecursionError."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


def culprits(world):
    lock = threading.Lock()
    cycle = Part(good=1)
    cycle.itself, cycle.bad = cycle, [lock]
    for value, place in (
        (lock, "the object (_thread.lock) cannot be pickled"),
        ({"a": [1, (2, lambda: 0)]}, "['a'][1][1] (builtins.function) cannot be pickled"),
        (Part(model=Part(layers=[1, {"hook": lock}])), ".model.layers[1]['hook'] (_thread.lock)"),
        ([[[[[[[[lock]]]]]]]], ": " + "[0]" * 8),
        (cycle, ".bad[0] (_thread.lock)"),
        ({lock: 1}, "key <unlocked _thread.lock"),
        ({"a": OutOfMemory()}, "['a'] (__main__.OutOfMemory) cannot be pickled: MemoryError"),
        ({"a": {"b": nested(100000)}}, "['a']['b'] (builtins.list) cannot be pickled: it is nested too deeply"),
        (nested(100000), "the object (builtins.list) cannot be pickled: it is nested too deeply"),
        ([x for x in [1]] and (x for x in [1]), "(builtins.generator)"),
    ):
        if world.rank == 0:
            refused(lambda: world.send_object(value, 1, tag=4), "send_object: ", place, error=INVALID)
        elif world.rank == 1:
            got = refused(lambda: world.recv_object(0, tag=4), "recv_object: rank 0 could not pickle", error=dtrun.RemoteFailure)
            assert got.peer == 0
    # One rank fails: it says why, and the others name it instead of waiting.
    for call in (world.allgather_object, world.gather_object):
        for bad in (lock, nested(100000), OutOfMemory()):
            if world.rank == 1:
                refused(lambda: call({"bad": bad}), "['bad']", error=INVALID)
            else:
                assert refused(lambda: call(1), "rank 1 could not pickle", error=dtrun.RemoteFailure).peer == 1
    for call in (lambda: world.broadcast_object(lock), lambda: world.scatter_object([lock] * world.size), lambda: world.scatter_object([])):
        refused(call, error=INVALID if world.rank == 0 else dtrun.RemoteFailure)
    if world.rank == 0:
        refused(lambda: world.scatter_object(None), "no values for", error=INVALID)
    else:
        refused(lambda: world.scatter_object(None), "rank 0 had no values", error=dtrun.RemoteFailure)


def unknown_class(world):
    """A class that rank 1 has and the others do not."""
    value = 1
    if world.rank == 1:
        module = sys.modules["only_here"] = types.ModuleType("only_here")
        module.Part = type("Part", (Part,), {"__module__": "only_here"})
        value = module.Part()
    if world.rank == 1:
        world.allgather_object(value)
    else:
        refused(lambda: world.allgather_object(value), "the object of rank 1 cannot be unpickled here", "only_here", error=INVALID)


def groups(world):
    other = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    got = numpy.zeros(1)
    with world.group():
        refused(lambda: world.allgather_object(1), "allgather_object: objects do not go in a group", error=dtrun.FailedPrecondition)
        world.send(numpy.array([float(world.rank)]), other[0])
        world.recv(got, other[1])
    equal(got, [other[1]])


with dtrun.init() as world:
    for check in (values, culprits, unknown_class, groups):
        check(world)
    world.barrier()
    print(f"rank {world.rank} of {world.size} is done")
