"""Operations of hvd on arrays of numpy, which need no framework: what TensorFlow's face submits, and objects."""

import numpy as np

from dtrun.horovod import basics as hvd
from dtrun.horovod.layers import NUMPY, layer_of
from dtrun.horovod.objects import allgather_object, broadcast_object
from dtrun.horovod.signature import Signature
from dtrun.horovod.submit import barrier, join, rows_for_each, submit_arrays

hvd.init()
rank, size = hvd.rank(), hvd.size()
everyone = range(size)
TYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8"]


def array(of, dtype="float32"):
    """What rank `of` submits."""
    return (np.arange(6).reshape(2, 3) + 2 * of + 1).astype(dtype)


def same(result, expected):
    expected = np.asarray(expected)
    assert result.dtype == expected.dtype and result.shape == expected.shape and np.array_equal(result, expected), (result, expected)


def run(kind, *arrays, **aspects):
    found = submit_arrays(kind, list(arrays), **aspects).wait()
    return found if len(found) > 1 else found[0]


def reductions():
    totals = {hvd.Sum: np.sum, hvd.Average: np.mean, hvd.Product: np.prod, hvd.Min: np.min, hvd.Max: np.max}
    for dtype in TYPES:
        for op, total in totals.items():
            if dtype == "int8" and op == hvd.Product:
                continue  # it has no room for the products
            expected = total(np.stack([array(r, "float64") for r in everyone]), 0).astype(dtype)
            same(run("allreduce", array(rank, dtype), op=op), expected)
    negative = -array(rank, "int32")  # averages are cut towards 0
    expected = np.trunc(-sum(array(r, "int32") for r in everyone) / size).astype("int32")
    same(run("allreduce", negative, op=hvd.Average), expected)
    for dtype in ("float16", "float32", "int32"):
        scaled = run("allreduce", array(rank, dtype), op=hvd.Sum, prescale=0.5, postscale=4.0)
        same(scaled, 4 * sum((array(r, dtype) * 0.5).astype(dtype) for r in everyone))
    one, two = run("allreduce", array(rank), array(rank, "int64"), op=hvd.Sum)
    same(one, sum(array(r) for r in everyone))
    same(two, sum(array(r, "int64") for r in everyone))
    rows = np.arange(2.0 * size + 1).reshape(-1, 1) + rank  # one row more than the ranks divide
    total = size * np.arange(2.0 * size + 1).reshape(-1, 1) + sum(everyone)
    begin = 2 * rank + min(rank, 1)
    for op, divisor in ((hvd.Sum, 1), (hvd.Average, size)):
        same(run("reducescatter", rows, op=op), total[begin : begin + 2 + (rank < 1)] / divisor)


def together():
    """Many that start at once travel as one, each with its own result."""
    requests = [submit_arrays("allreduce", [np.full(i + 1, rank + i, "float32")], op=hvd.Sum) for i in range(50)]
    for i, request in enumerate(requests):
        same(request.wait()[0], np.full(i + 1, sum(everyone) + size * i, "float32"))


def movements():
    same(run("allgather", np.full((rank + 1, 2), rank)), np.concatenate([np.full((r + 1, 2), r) for r in everyone]))
    same(run("broadcast", array(rank), root=size - 1), array(size - 1))
    rows = np.array([[rank, to] for to in everyone for _ in range(to + 1)])
    got, received = run("alltoall", rows, splits=rows_for_each([to + 1 for to in everyone], len(rows), size))
    same(got, [[of, rank] for of in everyone for _ in range(rank + 1)])
    assert received == [rank + 1] * size
    assert rows_for_each(None, 2 * size, size) == (2,) * size


def adasum():
    """As by the formula, pair by pair."""

    def combined(a, b):
        return a * (1 - (a * b).sum() / (2 * (a * a).sum())) + b * (1 - (a * b).sum() / (2 * (b * b).sum()))

    gradients = [np.random.default_rng(r).normal(size=33) for r in everyone]
    call = lambda dtype="float64": run("allreduce", gradients[rank].astype(dtype), op=hvd.Adasum)  # noqa: E731
    if size & (size - 1):
        fails(NotImplementedError, f"hvd.Adasum of {size} ranks; it needs a power of two", call)
        return
    expected = gradients
    while len(expected) > 1:
        expected = [combined(a, b) for a, b in zip(expected[::2], expected[1::2])]
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5), ("float16", 1e-2)):
        found = call(dtype)
        assert found.dtype == dtype and np.allclose(found, expected[0], rtol=0, atol=tolerance), (found, expected[0])
        assert all(np.array_equal(found, other) for other in allgather_object(found))  # the same bits on every rank
    same(run("allreduce", np.zeros(3), op=hvd.Adasum), np.zeros(3))
    fails(ValueError, "hvd.Adasum of int32", lambda: run("allreduce", np.ones(2, "int32"), op=hvd.Adasum))


def fails(kind, text, call):
    try:
        call()
    except kind as failure:
        assert text in str(failure), failure
    else:
        raise AssertionError(f"no {kind.__name__}: {text}")


def joining():
    for step in range(rank):  # rank r has data for r steps
        same(run("allreduce", np.ones(3), op=hvd.Sum, name=f"step.{step}"), np.full(3, size - 1.0 - step))
    assert join() == size - 1
    barrier()
    assert allgather_object({"rank": rank}) == [{"rank": r} for r in everyone]
    assert broadcast_object([rank] * 300, size - 1) == [size - 1] * 300


def refusals():
    fails(ValueError, "3 rows, which 2 ranks do not divide", lambda: rows_for_each(None, 3, 2))
    fails(ValueError, "splits [1, 5] for 2 ranks and 3 rows", lambda: rows_for_each([1, 5], 3, 2))
    fails(ValueError, "without dimensions has no rows", lambda: run("allgather", np.array(1.0)))
    fails(ValueError, "broadcast 'w': the tensor has elements of type str", lambda: run("broadcast", np.array(["a"]), name="w", root=0))
    fails(ValueError, "allreduce: name is 5 (int); pass a str, such as name='5'", lambda: run("allreduce", np.ones(1), name=5))
    fails(ValueError, "'p': prescale_factor is 'x' (str); pass a number", lambda: run("allreduce", np.ones(1), name="p", prescale="x"))
    fails(ValueError, "'o': op 9 is none of hvd.", lambda: run("allreduce", np.ones(1), name="o", op=9))
    fails(ValueError, "'b': root_rank is 'a' (str); pass an int", lambda: run("broadcast", np.ones(1), name="b", root="a"))
    same(run("allreduce", np.ones(1), name="o", op=hvd.Sum), [float(size)])
    assert layer_of(Signature("allreduce", "x", (("float32", (2,), NUMPY),))).itemsize("float16") == 2


for part in (reductions, together, movements, adasum, joining, refusals):
    part()
print(f"rank {rank} of {size} is done")
