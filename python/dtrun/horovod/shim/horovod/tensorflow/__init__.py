"""horovod.tensorflow: dtrun.horovod.tensorflow."""

import sys

import dtrun.horovod.tensorflow
from dtrun.horovod.tensorflow import *  # noqa: F403
from dtrun.horovod.tensorflow import compression, elastic, functions, keras, sync_batch_norm

# The same modules and classes under the names that scripts import.
for _name, _module in {
    "compression": compression, "elastic": elastic, "functions": functions, "keras": keras, "keras.callbacks": keras.callbacks,
    "keras.elastic": keras.elastic, "mpi_ops": dtrun.horovod.tensorflow, "sync_batch_norm": sync_batch_norm,
}.items():  # fmt: skip
    sys.modules[f"{__name__}.{_name}"] = _module
