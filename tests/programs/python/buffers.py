"""A rank: which memory operations take, and what they say of memory that they refuse."""

import array
import ctypes
import itertools

import numpy
from checks import equal, refused

import dtrun

INVALID = dtrun.InvalidArgument


def frozen(values):
    result = numpy.array(values)
    result.flags.writeable = False
    return result


def read_only(world):
    constant, total = frozen([1.0, 2.0]), numpy.zeros(2)
    equal(world.allreduce(constant, total), [world.size, 2.0 * world.size])
    equal(constant, [1, 2])
    for wait in (True, False):
        refused(lambda: world.allreduce(constant, wait=wait), "numpy.ndarray of shape (2,) is read-only", "pass a copy", error=INVALID)
        refused(lambda: world.allreduce(total, constant, wait=wait), "read-only", error=INVALID)
    refused(lambda: world.allgather(total, frozen([0.0] * 2 * world.size)), "read-only", error=INVALID)
    refused(lambda: world.recv(constant, 0), "read-only", error=INVALID)
    refused(lambda: world.recv(b"abcd", 0), "bytes is read-only", "pass a bytearray", error=INVALID)
    mine = constant if world.rank == 0 else numpy.zeros(2)
    equal(world.broadcast(mine, 0), [1, 2])  # the root's is only read


def scalars(world):
    equal(world.allgather(numpy.float32(world.rank)), numpy.arange(world.size))
    refused(lambda: world.allreduce(numpy.float64(1)), "numpy.float64 is a scalar", "numpy.array([value])", error=INVALID)
    assert str(refused(lambda: world.allreduce(1.0), error=INVALID)).startswith("float is not an array: pass")
    got = numpy.empty(world.size)  # temporaries live as long as the operation
    works = [world.allgather(numpy.float64(i + world.rank), got.copy(), wait=False) for i in range(200)]
    filler = [numpy.full(1, -1.0) for _ in range(1000)]
    for i, work in enumerate(works):
        equal(work.wait(), i + numpy.arange(world.size))
    del filler


def strides(world):
    matrix = numpy.arange(12.0).reshape(3, 4)
    refused(lambda: world.allreduce(matrix[:, ::2]), "of shape (3, 2) is not C-contiguous", "ascontiguousarray", error=INVALID)
    refused(lambda: world.allreduce(matrix.T), "of shape (4, 3) is not C-contiguous", error=INVALID)
    refused(lambda: world.send(memoryview(bytearray(8))[::2], 0), "not contiguous", error=INVALID)
    equal(world.allreduce(matrix[1:2]), world.size * numpy.array([[4.0, 5, 6, 7]]))
    equal(matrix[2], [8, 9, 10, 11])
    assert world.allreduce(numpy.zeros((0, 3))).shape == (0, 3)


def counts(world):
    n = world.size
    refused(lambda: world.allgather(numpy.ones(2), numpy.ones(2 * n + 1)), f"recv has {2 * n + 1} elements, and needs {2 * n}", error=INVALID)
    refused(lambda: world.allgather(numpy.ones(2), counts=[2] * (n + 1)), f"counts has {n + 1} entries", f"has {n} ranks", error=INVALID)
    refused(lambda: world.allgather(numpy.ones(2), counts=[-1] * n), "a negative entry: -1", error=INVALID)
    refused(lambda: world.alltoall(numpy.ones(n), send_counts=[1] * n), "go together", error=INVALID)
    if n > 1:
        refused(lambda: world.reduce_scatter(numpy.ones(n + 1)), f"{n} ranks do not divide; give counts", error=INVALID)
        refused(lambda: world.alltoall(numpy.ones(n + 1)), "give send_counts and recv_counts", error=INVALID)


def types(world):
    for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "complex64", "complex128"):  # fmt: skip
        equal(world.allreduce(numpy.ones(3, name)), numpy.full(3, world.size, name))
    equal(world.allreduce(numpy.array([True, False])), [True, False])
    refused(lambda: world.allreduce(numpy.ones(1, ">f4")), "has the type >f4", "convert it", error=INVALID)
    refused(lambda: world.allreduce(numpy.array(["a"])), "has the type <U1", error=INVALID)
    refused(lambda: world.allreduce(numpy.ones(1, "O")), "has the type object", error=INVALID)
    refused(lambda: world.allgather(numpy.ones(1), numpy.ones(world.size, "f4")), "float64 and float32", error=INVALID)


def plain_buffers(world):
    for kind in "bBhHiIlLqQfd":
        equal(world.allreduce(array.array(kind, [1, 2])), [world.size, 2 * world.size])
    growing = bytearray(b"\x01")
    work = world.allreduce(growing, wait=False)
    if not work.done():
        refused(lambda: growing.extend(b"12345678"), "cannot be re-sized", error=BufferError)
    work.wait()
    growing.extend(b"2")
    doubles = (ctypes.c_double * 2)(1, 2)
    equal(world.allreduce(doubles), [world.size, 2 * world.size])
    equal(world.allreduce(memoryview(bytearray(2))), [0, 0])
    assert world.allreduce(bytearray()) == b""
    refused(lambda: world.allgather(bytearray(2)), "bytearray has no shape: pass recv", error=INVALID)


def allocated(world):
    """Memory of the transport goes with its last view, not before an operation on it has ended."""

    def pages():
        return int(open("/proc/self/statm").read().split()[0])

    def use():
        mine = numpy.frombuffer(world.alloc(8 << 20), "f8")
        assert not mine.any()
        mine[:] = 1
        return world.allreduce(mine[1:], wait=False)

    equal(use().wait()[-3:], [world.size] * 3)
    before = pages()
    for _ in range(30):
        assert use().wait()[0] == world.size
    assert pages() - before < (120 << 20) // 4096, "memory of alloc was not freed"


def scales(world):
    expected = [sum(range(1, world.size + 1))] * 2
    for wait in (True, False):
        def end(given, wait=wait):
            return given if wait else given.wait()

        equal(end(world.allreduce(numpy.ones(2), scale=world.rank + 1, wait=wait)), expected)
        equal(end(world.allreduce(numpy.ones(2), op="premul_sum", wait=wait)), [world.size] * 2)
        equal(end(world.allreduce(numpy.ones(2), op="premul_sum", scale=0, wait=wait)), [0, 0])
        equal(end(world.allreduce(numpy.full(2, world.rank * 2.0), op="avg", wait=wait)), [world.size - 1.0] * 2)
        reduced = end(world.reduce(numpy.ones(2), root=0, scale=world.rank + 1, wait=wait))
        assert (reduced is None) == (world.rank != 0)
        if world.rank == 0:
            equal(reduced, expected)
        equal(end(world.reduce_scatter(numpy.ones(world.size), scale=world.rank + 1, wait=wait)), expected[:1])
    refused(lambda: world.allreduce(numpy.ones(2), op="max", scale=2), "scale goes with op 'sum', not with 'max'", error=INVALID)
    refused(lambda: world.allreduce(numpy.ones(2), op="mean"), "op 'mean' is none of sum, prod", error=INVALID)
    refused(lambda: world.allreduce(numpy.ones(2, int), op="avg"), "avg", "int64", error=dtrun.Error)


def names(world):
    """What libdtrun says, in Python's names and once."""
    for call, text in (
        (lambda: world.subset([]), "subset: the list of ranks is empty"),
        (lambda: world.allreduce(numpy.ones(2, int), op="avg"), "allreduce: avg of int64: "),
        (lambda: world.broadcast(numpy.ones(1), 9), "broadcast: root 9 is outside 'world'"),
        (lambda: world.alloc(2**63 - 1), f"alloc: {2**63 - 1} bytes do not fit"),
    ):
        assert str(refused(call, error=dtrun.Error)).startswith(text)


def numbers(world):
    one = numpy.ones(1)
    for call, text in (
        (lambda: world.split("a"), "split: color is 'a', a str; give an integer"),
        (lambda: world.split(2**40), f"split: color is {2**40}; give one from"),
        (lambda: world.split(0, 1.5), "split: key is 1.5, a float"),
        (lambda: world.subset(["a"]), "subset: ranks[0] is 'a', a str"),
        (lambda: world.subset(0), "subset: ranks is 0, of type int; give a list of integers"),
        (lambda: world.subset(range(10**12)), f"subset: ranks has {10**12} entries, and world has {world.size} ranks"),
        (lambda: world.subset(range(10**30)), "subset: ranks has "),
        (lambda: world.subset(itertools.count()), f"subset: ranks has more than {world.size} entries, and world has {world.size} ranks"),
        (lambda: world.allgather(one, counts=range(10**12)), f"allgather: counts has {10**12} entries, and world has {world.size} ranks"),
        (lambda: world.alloc(-1), "alloc: size is -1; give one from 0"),
        (lambda: world.broadcast(one, root="0"), "broadcast: root is '0', a str"),
        (lambda: world.reduce(one, root=None), "reduce: root is None, a NoneType"),
        (lambda: world.broadcast(one, root=2**32), f"broadcast: root is {2**32}; give one from"),
        (lambda: world.send(one, 0, tag=-1), "send: tag is -1; give one from 0"),
        (lambda: world.allgather(one, counts="a" * world.size), "allgather: counts[0] is 'a', a str"),
        (lambda: world.allreduce(one, scale="a"), "allreduce: scale is 'a', a str; give a number"),
    ):
        assert str(refused(call, error=INVALID)).startswith(text), text
    equal(world.broadcast(one, root=numpy.int64(0)), [1])
    assert world.split(-1) is None  # as None


with dtrun.init() as world:
    for check in (read_only, scalars, strides, counts, types, plain_buffers, allocated, scales, names, numbers):
        check(world)
    world.barrier()
    print(f"rank {world.rank} of {world.size} is done")
