"""A script that knows only Horovod."""

import numpy as np
import tensorflow as tf

import horovod.keras
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
from horovod.common.exceptions import HorovodInternalError
from horovod.keras.callbacks import MetricAverageCallback
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.keras.callbacks import BroadcastGlobalVariablesCallback
from horovod.tensorflow.keras.elastic import KerasState
from horovod.tensorflow.mpi_ops import allgather, rank

hvd.init()
assert HorovodInternalError is hvd.HorovodInternalError and Compression is hvd.Compression
assert KerasState is hvd_keras.elastic.KerasState and horovod.keras.rank is rank is hvd.rank
assert hvd.gloo_built() and not hvd.mpi_built()
assert hvd.gpu_available("tensorflow") == bool(tf.config.list_physical_devices("GPU")) and hvd.check_num_rank_power_of_2(2)
tf.keras.utils.set_random_seed(hvd.rank())
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
optimizer = hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size()), compression=hvd.Compression.none)
model.compile(loss="mse", optimizer=optimizer)
data = np.random.rand(8, 4), np.random.rand(8, 1)
model.fit(*data, batch_size=2, epochs=2, verbose=0, callbacks=[BroadcastGlobalVariablesCallback(0), MetricAverageCallback()])
weights = allgather(tf.transpose(model.weights[0]))
assert np.array_equal(weights, np.repeat(weights[:1], hvd.size(), 0)), weights
print(f"rank {hvd.rank()} of {hvd.size()} is done")
