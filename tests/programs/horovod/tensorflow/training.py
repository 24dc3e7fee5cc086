"""DistributedGradientTape and DistributedOptimizer on the rows of each rank equal one process on all rows."""

import os
import tempfile

import numpy as np
import tensorflow as tf

import dtrun.horovod.tensorflow as hvd
import dtrun.horovod.tensorflow.keras as hvd_keras

hvd.init()
rank, size = hvd.rank(), hvd.size()
ROWS = 12
random = np.random.default_rng(7)
INPUTS, TARGETS = random.normal(size=(6, ROWS, 5)), random.normal(size=(6, ROWS, 1))
PER_RANK = ROWS // size
MINE = slice(rank * PER_RANK, (rank + 1) * PER_RANK)
ALL = slice(0, ROWS)
layers = tf.keras.layers


def network(norm=None):
    tf.keras.utils.set_random_seed(3)
    norm = [norm(dtype="float64")] if norm else []
    dense = [layers.Dense(4, dtype="float64"), *norm, layers.Activation("tanh", dtype="float64"), layers.Dense(1, dtype="float64")]
    net = tf.keras.Sequential([tf.keras.Input((5,), dtype="float64"), *dense])
    return net


def optimizer_of(kind="SGD", **options):
    return getattr(tf.keras.optimizers, kind)(0.05, **options)


def weights(net):
    return np.concatenate([value.flatten() for value in net.get_weights()])


def close(result, expected, tolerance=1e-10):
    assert np.allclose(result, expected, rtol=0, atol=tolerance), np.abs(result - expected).max()


def loss_of(net, step, rows):
    return tf.reduce_mean(tf.square(net(INPUTS[step, rows], training=True) - TARGETS[step, rows]))


def by_tape(net, rows, wrap, function):
    optimizer = optimizer_of(momentum=0.9)
    optimizer.build(net.trainable_variables)

    def one(step):
        with tf.GradientTape() as tape:
            loss = loss_of(net, step, rows)
        optimizer.apply_gradients(zip(wrap(tape).gradient(loss, net.trainable_variables), net.trainable_variables))

    for step in range(6):
        tf.function(one, autograph=False)(step) if function else one(step)
    return weights(net)


def tapes():
    expected = by_tape(network(), ALL, lambda tape: tape, False)
    net = network()
    first = lambda: [[net.trainable_variables[0], net.trainable_variables[2]]]  # noqa: E731
    for options in ({}, {"groups": 2}, {"gradient_predivide_factor": 2.0}, {"groups": first}, {"compression": hvd.Compression.fp16}):
        for function in (False, True):
            net = network()
            chosen = {key: value() if value is first else value for key, value in options.items()}
            found = by_tape(net, MINE, lambda tape: hvd.DistributedGradientTape(tape, **chosen), function)
            close(found, expected, 2e-2 if "compression" in options else 1e-10)
    with hvd.DistributedGradientTape(tf.GradientTape(persistent=True)) as tape:
        x = tf.Variable(1.0)
        y = x * (rank + 1.0)
    assert tape.gradient(y, x).numpy() == (size + 1) / 2
    assert tape.gradient(y, {"one": [x], "none": tf.Variable(0.0)})["none"] is None


def local_layers():
    """Their gradients stay this rank's, divided by the number of ranks."""
    net = network()
    with tf.GradientTape(persistent=True) as tape:
        loss = loss_of(net, 0, MINE)
    own = tape.gradient(loss, net.trainable_variables)
    partial = hvd.PartialDistributedGradientTape(tape, local_layers=net.layers[0])
    shared = partial.gradient(loss, net.trainable_variables)
    for i in (0, 1):
        close(shared[i], own[i] / size)
    every = hvd.allgather_object(shared[2].numpy())
    assert all(np.array_equal(one, every[0]) for one in every)
    local, shared = partial.get_local_and_global_gradients(loss, net.trainable_variables)
    assert [variable is net.trainable_variables[i] for i, (variable, _) in enumerate(local)] == [True, True] and len(shared) == 2


def by_fit(net, optimizer, rows, callbacks=(), epochs=1, **options):
    net.compile(loss=tf.keras.losses.MeanSquaredError(), optimizer=optimizer, jit_compile=False, **options)
    data = tf.data.Dataset.from_tensor_slices((INPUTS[:, rows], TARGETS[:, rows]))
    return net.fit(data, epochs=epochs, verbose=0, callbacks=list(callbacks), shuffle=False)


def fits():
    for kind in ("SGD", "Adam"):
        alone, net = network(), network()
        by_fit(alone, optimizer_of(kind), ALL)
        wrapped = hvd_keras.DistributedOptimizer(optimizer_of(kind))
        assert isinstance(wrapped, getattr(tf.keras.optimizers, kind)) and type(wrapped).__name__ == kind
        by_fit(net, wrapped, MINE)
        close(weights(net), weights(alone), 1e-6)  # the loss of Keras is in single precision
    alone, net = network(layers.BatchNormalization), network(hvd.SyncBatchNormalization)
    by_fit(alone, optimizer_of(), ALL)
    by_fit(net, hvd.DistributedOptimizer(optimizer_of()), MINE)
    close(weights(net), weights(alone), 1e-6)


def several_passes():
    """As one step with the sum or the average of the gradients of three steps."""
    for average in (False, True):
        for eager in (False, True):
            alone, net = network(), network()
            optimizer = optimizer_of()
            for step in (0, 3):
                with tf.GradientTape() as tape:
                    loss = sum(loss_of(alone, step + i, ALL) for i in range(3)) / (3 if average else 1)
                optimizer.apply_gradients(zip(tape.gradient(loss, alone.trainable_variables), alone.trainable_variables))
            wrapped = hvd.DistributedOptimizer(optimizer_of(), backward_passes_per_step=3, average_aggregated_gradients=average)
            by_fit(net, wrapped, MINE, run_eagerly=eager)
            close(weights(net), weights(alone), 1e-6)  # the loss of Keras is in single precision
            assert int(wrapped.iterations) == 6


def old_optimizers():
    x = tf.Variable(1.0)
    optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0))
    optimizer.minimize(lambda: x * (rank + 1.0))
    assert x.numpy() == 1 - (size + 1) / 2


def embeddings():
    for dense in (False, True):
        tf.keras.utils.set_random_seed(1)
        table = layers.Embedding(size + 1, 2)
        table.build([])
        before = table.get_weights()[0]
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(table(tf.constant([rank, size])))
        gradients = hvd.DistributedGradientTape(tape, sparse_as_dense=dense).gradient(loss, table.trainable_variables)
        assert isinstance(gradients[0], tf.IndexedSlices) != dense
        tf.keras.optimizers.SGD(1.0).apply_gradients(zip(gradients, table.trainable_variables))
        close(before - table.get_weights()[0], [[1 / size] * 2] * size + [[1.0] * 2], 1e-6)


def callbacks():
    """Ranks start with other weights and end with the same; metrics are averages; the learning rate warms up."""
    tf.keras.utils.set_random_seed(rank)
    net = tf.keras.Sequential([tf.keras.Input((5,), dtype="float64"), layers.Dense(1, dtype="float64")])
    rates = []

    class Rates(tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            rates.append(float(tf.convert_to_tensor(self.model.optimizer.learning_rate)))

    made = [
        hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd_keras.callbacks.MetricAverageCallback(),
        hvd_keras.callbacks.LearningRateWarmupCallback(initial_lr=0.1, warmup_epochs=2),
        hvd_keras.callbacks.LearningRateScheduleCallback(initial_lr=0.1, multiplier=0.5, start_epoch=2),
        Rates(),
    ]
    history = by_fit(net, hvd_keras.DistributedOptimizer(optimizer_of("Adam")), MINE, made, epochs=4).history
    every = hvd.allgather_object((net.get_weights(), history["loss"]))
    for found, losses in every:
        assert all(np.array_equal(a, b) for a, b in zip(found, every[0][0])) and losses == every[0][1]
    warm = [0.1 * ((step + 1) / 6 * (size - 1) / 2 + 1) / size for step in range(12)]
    if rates:
        close(rates, warm + [0.1] * 6 + [0.05] * 6, 1e-6)
    close(history["lr"], [warm[5], warm[11], 0.1, 0.05], 1e-6)


def saved_models():
    """A model saved with a DistributedOptimizer loads without Horovod, and with it keeps the state of the optimizer."""
    net = network()
    by_fit(net, hvd_keras.DistributedOptimizer(optimizer_of("Adam")), MINE)
    for suffix in ("keras", "h5"):
        path = os.path.join(tempfile.gettempdir(), f"{size}-{rank}.{suffix}")
        net.save(path)
        assert type(tf.keras.models.load_model(path).optimizer) is tf.keras.optimizers.Adam
        loaded = hvd_keras.load_model(path)
        assert type(loaded.optimizer) is not tf.keras.optimizers.Adam and type(loaded.optimizer).__name__ == "Adam"
        assert int(loaded.optimizer.iterations) == 6
        if suffix == "h5":  # Keras 3 cannot train on such a model: it builds the optimizer without its variables
            continue
        loaded.fit(INPUTS[0, MINE], TARGETS[0, MINE], verbose=0)
        every = hvd.allgather_object(weights(loaded))
        assert all(np.array_equal(one, every[0]) for one in every)


for part in (tapes, local_layers, fits, several_passes, old_optimizers, embeddings, callbacks, saved_models):
    part()
print(f"rank {rank} of {size} is done")
