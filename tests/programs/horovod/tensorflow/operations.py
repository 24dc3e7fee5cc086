"""Every operation of dtrun.horovod.tensorflow against a reference computed here, eagerly and in a tf.function."""

import numpy as np
import tensorflow as tf

import dtrun.horovod.tensorflow as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
everyone = range(size)
TYPES = [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8]


def tensor(of, dtype=tf.float32):
    """What rank `of` submits."""
    return tf.cast(tf.reshape(tf.range(6), (2, 3)) + 2 * of + 1, dtype)


def same(result, expected, dtype=None):
    expected = tf.convert_to_tensor(expected, dtype)
    assert result.dtype == expected.dtype and result.shape == expected.shape, (result, expected)
    assert np.array_equal(result.numpy(), expected.numpy()), (result, expected)


def both(function, *inputs):
    """The eager result of `function`; checks that a graph, with shapes that may be unknown, gives the same."""
    eager = tf.nest.flatten(function(*inputs))
    graph = tf.nest.flatten(tf.function(function, autograph=False)(*inputs))
    loose = [tf.TensorSpec([None] * x.shape.rank, x.dtype) for x in inputs]
    unknown = tf.nest.flatten(tf.function(function, input_signature=loose, autograph=False)(*inputs))
    for one, two, three in zip(eager, graph, unknown):
        same(one, two)
        same(one, three)
    return eager if len(eager) > 1 else eager[0]


def reduced(op, dtype):
    parts = np.stack([tensor(r, tf.float64).numpy() for r in everyone])
    totals = {hvd.Sum: parts.sum(0), hvd.Average: parts.mean(0), hvd.Product: parts.prod(0), hvd.Min: parts.min(0)}
    return tf.cast(tf.constant({**totals, hvd.Max: parts.max(0)}[op]), dtype)


def reductions():
    for dtype in TYPES:
        for op in (hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product):
            same(hvd.allreduce(tensor(rank, dtype), op=op), reduced(op, dtype))
    same(both(lambda x: hvd.allreduce(x, op=hvd.Sum), tensor(rank)), reduced(hvd.Sum, tf.float32))
    scaled = both(lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0), tensor(rank))
    same(scaled, 2 * reduced(hvd.Sum, tf.float32))
    same(hvd.allreduce(tensor(rank), op=hvd.Sum, compression=hvd.Compression.fp16), reduced(hvd.Sum, tf.float32))
    same(hvd.allreduce(tf.Variable(tensor(rank)), op=hvd.Sum), reduced(hvd.Sum, tf.float32))
    same(hvd.allreduce(tf.constant(float(rank)), op=hvd.Sum), float(sum(everyone)))
    same(hvd.allreduce(tf.zeros([0, 2]), op=hvd.Sum), tf.zeros([0, 2]))
    two = both(lambda x, y: hvd.grouped_allreduce([x, y], op=hvd.Sum), tensor(rank), tensor(rank, tf.int32))
    same(two[0], reduced(hvd.Sum, tf.float32))
    same(two[1], reduced(hvd.Sum, tf.int32))
    total = [[2 * i * size + sum(everyone)] for i in range(2 * size + 1)]
    rows = tf.constant([[2.0 * i + rank] for i in range(2 * size + 1)])  # one row more than the ranks divide
    begin = 2 * rank + min(rank, 1)
    mine = tf.constant(total[begin : begin + 2 + (rank < 1)], tf.float32)
    same(both(lambda x: hvd.reducescatter(x, op=hvd.Sum), rows), mine)
    same(hvd.reducescatter(rows), mine / size)
    same(both(lambda x: hvd.grouped_reducescatter([x, 2 * x], op=hvd.Sum), rows)[1], 2 * mine)


def movements():
    for dtype in [*TYPES, tf.bool, tf.int16]:
        ragged = [tf.cast(tf.fill([r + 1, 3], r % 2), dtype) for r in everyone]
        same(hvd.allgather(ragged[rank]), tf.concat(ragged, 0))
        for root in everyone:
            same(hvd.broadcast(tf.cast(tf.fill([2], root % 2), dtype), root), tf.cast(tf.fill([2], root % 2), dtype))
    ragged = [tf.fill([r + 1, 3], r) for r in everyone]
    same(both(hvd.allgather, ragged[rank]), tf.concat(ragged, 0))
    same(both(lambda x: hvd.broadcast(x, size - 1), tensor(rank)), tensor(size - 1))
    rows = tf.constant([[rank, to] for to in everyone for _ in range(to + 1)])
    splits = tf.constant([to + 1 for to in everyone])
    got, received = both(lambda x, s: hvd.alltoall(x, s), rows, splits)
    same(got, [[of, rank] for of in everyone for _ in range(rank + 1)])
    same(received, [rank + 1] * size)
    same(both(hvd.alltoall, tf.constant([10 * rank + to for to in everyone])), [10 * of + rank for of in everyone])
    one, two = both(lambda x, y: hvd.grouped_allgather([x, y]), tf.fill([rank + 1], rank), tf.constant([rank]))
    same(one, [r for r in everyone for _ in range(r + 1)])
    same(two, list(everyone))
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([rank, size]), tf.constant([size + 1, 1]))
    for op, divisor in ((hvd.Sum, 1), (hvd.Average, size)):
        for found in (hvd.allreduce(slices, op=op), hvd.grouped_allreduce([slices], op=op)[0]):
            same(tf.convert_to_tensor(found), tf.constant([[1.0]] * size + [[2.0 * size]]) / divisor)


def order_of_a_function():
    """Operations of a tf.function without names, in loops and branches, are in one order on every rank."""

    @tf.function
    def several(x):
        total = tf.zeros_like(x)
        for i in tf.range(3):
            if i % 2 == 0:
                total += hvd.allreduce(x, op=hvd.Sum)
            else:
                total += hvd.broadcast(x, 0)
        return total, hvd.allgather(x), hvd.allreduce(x, op=hvd.Max)

    for _ in range(5):
        total, gathered, largest = several(tf.constant([float(rank)]))
        same(total, [2.0 * sum(everyone)])
        same(gathered, [float(r) for r in everyone])
        same(largest, [size - 1.0])


def adasum():
    if size & (size - 1):
        fails(NotImplementedError, "a power of two", lambda: hvd.allreduce(tensor(rank), op=hvd.Adasum))
        return
    orthogonal = tf.one_hot(rank, size)
    same(hvd.allreduce(orthogonal, op=hvd.Adasum), tf.ones(size))  # nothing in common: the sum
    same(hvd.allreduce(tensor(1), op=hvd.Adasum), tensor(1))  # the same: the average
    same(hvd.allreduce(tf.zeros(3), op=hvd.Adasum), tf.zeros(3))


def sets():
    evens = hvd.add_process_set([r for r in everyone if r % 2 == 0])
    if evens.included():
        same(hvd.allreduce(tf.constant([rank]), op=hvd.Sum, process_set=evens), [sum(range(0, size, 2))])
        same(hvd.size_op(evens.process_set_id), (size + 1) // 2)
    same(hvd.process_set_included_op(evens.process_set_id), int(evens.included()))
    assert hvd.remove_process_set(evens)


def gradients():
    def of(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    same(both(lambda x: of(lambda x: hvd.allreduce(x, op=hvd.Sum), x), tensor(rank)), tf.fill([2, 3], float(size)))
    weights = tf.reshape(tf.range(sum(r + 1.0 for r in everyone)), (-1, 1))
    begin = sum(r + 1 for r in range(rank))
    mine = tf.repeat(weights[begin : begin + rank + 1], 3, axis=1)
    same(both(lambda x: of(lambda x: hvd.allgather(x) * weights, x), tf.ones([rank + 1, 3])), mine)
    same(of(lambda x: hvd.grouped_allgather([x, x])[1] * weights, tf.ones([rank + 1, 3])), mine)
    back = both(lambda x: of(lambda x: hvd.broadcast(x, 0), x), tensor(rank))
    same(back, tf.fill([2, 3], 1.0 if rank == 0 else 0.0))
    same(both(lambda x: of(lambda x: hvd.alltoall(x) * (rank + 1), x), tf.ones(size)), [r + 1.0 for r in everyone])
    splits = tf.ones(size, tf.int32)  # one row of two stays here
    unsent = of(lambda x: hvd.alltoall(x, splits)[0] * (rank + 1), tf.ones(2 * size))
    same(unsent, [r + 1.0 for r in everyone] + [0.0] * size)
    same(of(lambda x: hvd.reducescatter(x, op=hvd.Sum) * (rank + 1), tf.ones(size)), [size * (r + 1.0) for r in everyone])
    same(of(lambda x: hvd.grouped_allreduce([x, 2 * x], op=hvd.Sum)[1], tf.ones(2)), tf.fill([2], 2.0 * size))


def states():
    variables = [tf.Variable(tensor(rank)), tf.Variable(rank, dtype=tf.int64)]
    hvd.broadcast_variables(variables, root_rank=size - 1)
    same(variables[0], tensor(size - 1))
    same(variables[1], size - 1, tf.int64)
    variables[0].assign(tensor(rank))
    tf.function(lambda: hvd.broadcast_variables(variables, root_rank=0))()
    same(variables[0], tensor(0))
    assert hvd.allgather_object({"rank": rank}) == [{"rank": r} for r in everyone]
    assert hvd.broadcast_object([rank] * 300, size - 1) == [size - 1] * 300


def fails(kind, text, call):
    try:
        call()
    except kind as failure:
        assert text in str(failure), failure
    else:
        raise AssertionError(f"no {kind}")


def errors():
    for kind in (hvd.HorovodInternalError, tf.errors.FailedPreconditionError):
        fails(kind, "the shapes differ", lambda: hvd.allreduce(tf.zeros(rank + 1), name="odd"))
        fails(kind, "the element types differ", lambda: hvd.allgather(tf.zeros(1, tf.int32 if rank else tf.int64)))
        fails(kind, "the root ranks differ", lambda: hvd.broadcast(tf.zeros(1), rank))
    fails(tf.errors.OpError, "the shapes differ", lambda: tf.function(hvd.allreduce)(tf.zeros(rank + 1)))
    for kind in (ValueError, tf.errors.InvalidArgumentError):
        fails(kind, "give each rank its part", lambda: hvd.alltoall(tf.zeros(3), tf.fill([size], 4)))
    fails(ValueError, "has no rows", lambda: hvd.allgather(tf.constant(1.0)))
    one = tf.ones(1)
    for kind in (ValueError, tf.errors.InvalidArgumentError):
        fails(kind, "allreduce: name is 5 (int); pass a str, such as name='5'", lambda: hvd.allreduce(one, name=5))
        fails(kind, "'p': prescale_factor is 'x' (str); pass a number", lambda: hvd.allreduce(one, prescale_factor="x", name="p"))
        fails(kind, "'p': postscale_factor is None (NoneType)", lambda: hvd.reducescatter(one, postscale_factor=None, name="p"))
        fails(kind, "elements of type object", lambda: hvd.broadcast(tf.constant(["a"]), 0))
    for factor in ("prescale_factor", "postscale_factor"):
        for call in (hvd.grouped_allreduce, hvd.grouped_reducescatter):
            fails(ValueError, f"{factor} is 'x' (str); pass a number", lambda: call([one], **{factor: "x"}))
    fails(ValueError, "allreduce: tensor is a NoneType, of which TensorFlow makes no tensor", lambda: hvd.allreduce(None))
    for call, kind in ((hvd.grouped_allreduce, "grouped_allreduce"), (hvd.grouped_allgather, "grouped_allgather")):
        fails(ValueError, f"{kind}: tensors is 5 (int); pass a list", lambda: call(5))
        fails(ValueError, f"{kind}: tensors[1] is a object, of which", lambda: call([one, object()]))
    fails(ValueError, "broadcast_variables: variables is 5 (int); pass a list", lambda: hvd.broadcast_variables(5, 0))
    fails(ValueError, "broadcast_variables: variables[0] is a NoneType", lambda: hvd.broadcast_variables([None], 0))
    same(hvd.allreduce(one, op=hvd.Sum), size * one)
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    fails(NotImplementedError, "hvd.Max of tf.IndexedSlices", lambda: hvd.allreduce(slices, op=hvd.Max))
    with tf.Graph().as_default():
        fails(NotImplementedError, "graph of TensorFlow 1", lambda: hvd.allreduce(tf.zeros(1)))
    fails(RuntimeError, "hvd.broadcast_variables(", lambda: hvd.broadcast_global_variables(0))


def joining():
    for step in range(rank):  # rank r has data for r steps
        same(hvd.allreduce(tf.ones(3), op=hvd.Sum, name=f"step.{step}"), tf.fill([3], size - 1.0 - step))
    same(hvd.join(), size - 1)
    hvd.barrier()


for part in (reductions, movements, order_of_a_function, adasum, sets, gradients, states, errors, joining):
    part()
same(tf.function(lambda: hvd.rank_op() + hvd.local_rank_op() + hvd.size_op() + hvd.local_size_op())(), 2 * rank + 2 * size)
hvd.shutdown()
hvd.init()
same(hvd.allreduce(tf.ones(1), op=hvd.Sum), [float(size)])
print(f"rank {rank} of {size} is done")
