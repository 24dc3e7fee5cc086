"""An ordinary ParameterServerStrategy script, which reads TF_CONFIG: servers and workers wait for ever."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                                  protocol="grpc", start=True)
    print(f"{resolver.task_type} {resolver.task_id} serves", flush=True)
    server.join()

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)


@tf.function
def step():
    total.assign_add(1.0)


for _ in range(10):
    coordinator.schedule(step)
coordinator.join()
print(f"chief: {total.numpy():g} steps on {total.device}", flush=True)
