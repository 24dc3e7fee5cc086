"""A training loop of Keras under MultiWorkerMirroredStrategy, as TensorFlow's guide has it: nothing in it knows of dtrun."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
task, workers = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.01)
x = np.random.default_rng(0).standard_normal((4 * 8 * workers, 8), np.float32)
data = tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1, keepdims=True))).batch(8 * workers)


def replica_step(batch):
    features, labels = batch
    with tf.GradientTape() as tape:
        errors = tf.reduce_mean(tf.square(model(features, training=True) - labels), axis=1)
        loss = tf.nn.compute_average_loss(errors, global_batch_size=8 * workers)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


@tf.function
def step(batch):
    strategy.run(replica_step, args=(batch,))


@tf.function
def furthest():
    """How far this worker's weights are from the mean of all."""
    mine = tf.concat([tf.reshape(weight, [-1]) for weight in model.trainable_variables], 0)
    mean = strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(lambda: mine), axis=None)
    return tf.reduce_max(tf.abs(mine - mean))


steps = 0
for batch in strategy.experimental_distribute_dataset(data):
    step(batch)
    steps += 1
assert float(furthest()) < 1e-6, "workers differ"
print(f"worker {task} of {workers} took {steps} steps", flush=True)
