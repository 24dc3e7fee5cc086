"""An ordinary MultiWorkerMirroredStrategy script, which reads TF_CONFIG: nothing in it knows of dtrun."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
with strategy.scope():
    weight = tf.Variable(1.0)


@tf.function
def total():
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: weight * (resolver.task_id + 1.0)), axis=None)


print(f"worker {resolver.task_id} of {strategy.num_replicas_in_sync}: sum {total().numpy():g}", flush=True)
