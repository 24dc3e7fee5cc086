"""horovod.tensorflow over dtrun: `import dtrun.horovod.tensorflow as hvd`."""

try:
    import tensorflow  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "tensorflow":
        raise
    import sys

    raise ModuleNotFoundError(
        f"dtrun: {__name__}: {sys.executable} has no TensorFlow; install it there, as in `pip install tensorflow`",
        name="tensorflow",
    ) from None

from ..basics import *  # noqa: F403
from ..exceptions import HorovodInternalError, HostsUpdatedInterrupt
from ..submit import barrier
from ..util import gpu_available, split_list
from ..util import num_rank_is_power_2 as check_num_rank_power_of_2
from . import elastic
from .bridge import OperationError
from .compression import Compression
from .functions import (
    allgather_object,
    broadcast_,
    broadcast_global_variables,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
)
from .grouped import grouped_allgather, grouped_allreduce, grouped_reducescatter
from .operations import (
    allgather,
    allreduce,
    alltoall,
    broadcast,
    join,
    local_rank_op,
    local_size_op,
    process_set_included_op,
    rank_op,
    reducescatter,
    size_op,
)
from .optimizer import DistributedOptimizer, PartialDistributedOptimizer
from .sync_batch_norm import SyncBatchNormalization
from .tape import DistributedGradientTape, PartialDistributedGradientTape

__all__ = [name for name in dir() if not name.startswith("_")]
