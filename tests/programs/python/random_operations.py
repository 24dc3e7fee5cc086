"""A rank: random operations of seeds FIRST to LAST, on random types, sizes and communicators, against numpy.

All ranks draw the same program from the seed; each waits for its handles in an order of its own.
"""

import random
import sys

import numpy

import dtrun

FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ARITHMETIC = ("sum", "prod", "min", "max")
BITS = ("band", "bor", "bxor", "land", "lor")
SIZES = (0, 1, 2, 3, 17, 256, 1000, 40000)


def reductions(dtype):
    if dtype in FLOATS:
        return (*ARITHMETIC, "avg", "premul_sum")
    return ("sum", "prod", "avg", "premul_sum") if dtype in COMPLEX else (*ARITHMETIC, *BITS)


def reference(op, parts, scales):
    """The reduction of `parts`, one for each rank, by numpy."""
    with numpy.errstate(all="ignore"):
        if parts[0].dtype == bool:
            op = {"sum": "lor", "prod": "land", "min": "land", "max": "lor"}.get(op, op)
        if op == "premul_sum":
            return sum((part * scale for part, scale in zip(parts, scales)), numpy.zeros_like(parts[0])).astype(parts[0].dtype)
        if op == "avg":
            return (sum(parts, numpy.zeros_like(parts[0])) / len(parts)).astype(parts[0].dtype)
        function = {"sum": numpy.add, "prod": numpy.multiply, "min": numpy.minimum, "max": numpy.maximum,
                    "band": numpy.bitwise_and, "bor": numpy.bitwise_or, "bxor": numpy.bitwise_xor,
                    "land": numpy.logical_and, "lor": numpy.logical_or}[op]  # fmt: skip
        result = parts[0] if op not in ("land", "lor") else parts[0] != 0
        for part in parts[1:]:
            result = function(result, part)
        return result.astype(parts[0].dtype)


class Program:
    """What one seed does. `shared` draws alike on every rank, `own` does not."""

    def __init__(self, world, seed):
        self.world, self.shared, self.own = world, random.Random(seed), random.Random(f"{seed} {world.rank}")
        self.seed, self.step, self.open = seed, 0, []
        color = [self.shared.randrange(2) for _ in range(world.size)]
        members = self.shared.sample(range(world.size), self.shared.randint(1, world.size))
        self.made = [world.split(color[world.rank], -world.rank)]
        mine = [r for r in reversed(range(world.size)) if color[r] == color[world.rank]]
        self.comms = [[(world, list(range(world.size)))], [(self.made[0], mine)], []]
        if world.rank in members:
            self.made.append(world.subset(members))
            self.comms[2].append((self.made[1], members))

    def data(self, rank, count, dtype, op="sum"):
        draw = numpy.random.default_rng([self.seed, self.step, rank])
        if dtype == "bool":
            return draw.random(count) < 0.7
        if dtype in INTEGERS:
            limits = numpy.iinfo(dtype)
            return draw.integers(limits.min, limits.max, count, dtype, endpoint=True)
        values = draw.choice([-2, -1, 1, 2], count) if op == "prod" else draw.integers(-8, 9, count)
        values = values.astype(dtype)
        if op in ("min", "max") and count and draw.random() < 0.1:
            values[draw.integers(count)] = numpy.nan
        return values + 1j * draw.integers(-8, 9, count).astype(values.real.dtype) if dtype in COMPLEX and op != "prod" else values

    def run(self, steps):
        for self.step in range(steps):
            where = self.shared.choices(self.comms, (5, 3, 2))[0]
            state = self.shared.getrandbits(64)
            if where:
                self.operation(*where[0], random.Random(f"{state} {where[0][1]}"))
            while self.open and self.own.random() < 0.3:
                self.end(self.open.pop(self.own.randrange(len(self.open))))
        self.own.shuffle(self.open)
        for each in self.open:
            self.end(each)
        for comm in self.made:
            comm.free()

    def operation(self, comm, ranks, draw):
        kind = draw.choice([name for name in dir(self) if name.startswith("on_")])
        dtype, wait = draw.choice((*FLOATS, *COMPLEX, *INTEGERS, "bool")), draw.random() < 0.4
        self.draw, self.wait = draw, wait
        self.what = f"seed {self.seed}, step {self.step}: {kind[3:]} of {dtype} on {comm.name} of ranks {ranks}"
        given, expected = getattr(self, kind)(comm, ranks, dtype)
        entry = (self.what, given, expected)
        if wait or not isinstance(given, dtrun.Work):
            self.compare(*entry)
        else:
            self.open.append(entry)

    def end(self, entry):
        what, work, expected = entry
        if self.own.random() < 0.3:
            work.done()
        self.compare(what, work.wait(), expected)

    @staticmethod
    def compare(what, got, expected):
        if expected is None:
            assert got is None, f"{what}: {got} instead of None"
            return
        close = 1e-2 if got.dtype == numpy.float16 else 1e-5
        exact = got.dtype.kind in "iub"
        assert got.dtype == expected.dtype and got.size == expected.size, f"{what}: {got.dtype} {got.shape}, {expected.dtype} {expected.shape}"
        same = numpy.array_equal if exact else lambda a, b: numpy.allclose(a, b, close, close, equal_nan=True)
        assert same(got.ravel(), expected.ravel()), f"{what}: {got} instead of {expected}"

    def reduction(self, ranks, dtype, counts=None):
        op, size = self.draw.choice(reductions(dtype)), self.draw.choice(SIZES) if counts is None else sum(counts)
        parts = [self.data(r, size, dtype, op) for r in ranks]
        scales = [self.draw.choice((0.5, 2.0, -1.0)) for _ in ranks]
        scale = scales[ranks.index(self.world.rank)] if op == "premul_sum" else None
        return parts, parts[ranks.index(self.world.rank)], {"op": op, "scale": scale, "wait": self.wait}, reference(op, parts, scales)

    def counts(self, ranks):
        return [self.draw.choice(SIZES[:6]) for _ in ranks] if self.draw.random() < 0.5 else None

    def on_allreduce(self, comm, ranks, dtype):
        _, mine, options, expected = self.reduction(ranks, dtype)
        return comm.allreduce(mine, numpy.empty_like(mine) if self.own.random() < 0.5 else None, **options), expected

    def on_reduce(self, comm, ranks, dtype):
        _, mine, options, expected = self.reduction(ranks, dtype)
        root = self.draw.randrange(comm.size)
        return comm.reduce(mine, root=root, **options), expected if comm.rank == root else None

    def on_reduce_scatter(self, comm, ranks, dtype):
        counts = self.counts(ranks)
        even = counts or [self.draw.choice(SIZES[:6])] * comm.size
        _, mine, options, expected = self.reduction(ranks, dtype, even)
        begin = sum(even[: comm.rank])
        return comm.reduce_scatter(mine, counts=counts, **options), expected[begin : begin + even[comm.rank]]

    def on_broadcast(self, comm, ranks, dtype):
        root, size = self.draw.randrange(comm.size), self.draw.choice(SIZES)
        mine = self.data(self.world.rank, size, dtype)
        return comm.broadcast(mine, root, wait=self.wait), self.data(ranks[root], size, dtype)

    def parts(self, ranks, dtype):
        counts = self.counts(ranks)
        even = counts or [self.draw.choice(SIZES[:6])] * len(ranks)
        return counts, [self.data(r, count, dtype) for r, count in zip(ranks, even)]

    def on_allgather(self, comm, ranks, dtype):
        counts, parts = self.parts(ranks, dtype)
        return comm.allgather(parts[comm.rank], counts=counts, wait=self.wait), numpy.concatenate(parts)

    def on_gather(self, comm, ranks, dtype):
        (counts, parts), root = self.parts(ranks, dtype), self.draw.randrange(comm.size)
        given = comm.gather(parts[comm.rank], root=root, counts=counts, wait=self.wait)
        return given, numpy.concatenate(parts) if comm.rank == root else None

    def on_scatter(self, comm, ranks, dtype):
        (counts, parts), root = self.parts(ranks, dtype), self.draw.randrange(comm.size)
        send = numpy.concatenate(parts) if comm.rank == root else None
        return comm.scatter(send, numpy.empty_like(parts[comm.rank]), root, counts, wait=self.wait), parts[comm.rank]

    def on_alltoall(self, comm, ranks, dtype):
        n, uneven = comm.size, self.draw.random() < 0.5
        size = self.draw.choice(SIZES[:6])
        table = [[self.draw.choice(SIZES[:6]) if uneven else size for _ in ranks] for _ in ranks]  # from, to
        sent = [self.data(r, sum(table[i]), dtype) for i, r in enumerate(ranks)]
        expected = [sent[i][sum(table[i][: comm.rank]) :][: table[i][comm.rank]] for i in range(n)]
        counts = (table[comm.rank], [row[comm.rank] for row in table]) if uneven else (None, None)
        return comm.alltoall(sent[comm.rank], None, *counts, wait=self.wait), numpy.concatenate(expected)

    def on_ring(self, comm, ranks, dtype):
        """To the next rank, from the one before: in a group, or by a handle."""
        if comm.size == 1:
            return comm.barrier(), None
        following, before, size = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size, self.draw.choice(SIZES)
        tag, mine, got = self.step, self.data(self.world.rank, size, dtype), numpy.empty(size, dtype)
        expected = self.data(ranks[before], size, dtype)
        if self.wait:
            with comm.group():
                comm.send(mine, following, tag)
                comm.recv(got, before, tag)
            return got, expected
        comm.send(mine, following, tag, wait=False)  # dropped: it goes on
        del mine
        return comm.recv(got, before, tag, wait=False), expected

    def on_object(self, comm, ranks, dtype):
        mine = (self.data(self.world.rank, comm.rank, dtype), {"step": self.step})
        every = comm.allgather_object(mine)
        assert [len(values) for values, _ in every] == list(range(comm.size)), f"{self.what}: {every}"
        assert comm.broadcast_object(mine[1], 0) == {"step": self.step}, self.what
        return comm.barrier(wait=self.wait), None


with dtrun.init() as world:
    for seed in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
        Program(world, seed).run(40)
    world.barrier()
    print(f"rank {world.rank} of {world.size} is done")
