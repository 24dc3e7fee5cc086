"""Training that a lost rank ends in the middle, and that continues from the last commit."""

import os

import numpy as np
import tensorflow as tf

import dtrun.horovod.tensorflow.keras as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
generation = int(os.environ["DTRUN_GENERATION"])
tf.keras.utils.set_random_seed(rank)
model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
model.compile(loss="mse", optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.1)))
state = hvd.elastic.KerasState(model, epoch=0, batch=0, weights=None)


class Loses(tf.keras.callbacks.Callback):
    """Before the commit of the third epoch."""

    def on_epoch_end(self, epoch, logs=None):
        if generation == 0 and state.epoch == 3:
            if rank == size - 1:
                os._exit(3)
            hvd.broadcast_object(None, size - 1)  # never arrives, so no rank commits
        state.weights = [value.tolist() for value in model.get_weights()]


@hvd.elastic.run
def train(state):
    print(f"generation {generation}: rank {rank} starts at epoch {state.epoch}, step {int(model.optimizer.iterations)}", flush=True)
    if generation:
        assert all(np.allclose(a, b) for a, b in zip(model.get_weights(), state.weights))
    callbacks = [hvd.elastic.UpdateEpochStateCallback(state), Loses(), hvd.elastic.CommitStateCallback(state, 1000)]
    model.fit(np.ones((4, 2)), np.ones((4, 1)), batch_size=2, epochs=5 - state.epoch, verbose=0, callbacks=callbacks)


train(state)
assert state.epoch == 5 and int(model.optimizer.iterations) == 10
every = hvd.allgather_object([value.tolist() for value in model.get_weights()])
assert every == [every[0]] * size
print(f"rank {rank} of {size} continued")
