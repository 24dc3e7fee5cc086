"""horovod.tensorflow.keras over dtrun: for tf.keras, of Keras 3 or 2 (TF_USE_LEGACY_KERAS=1)."""

from typing import Any, Optional

import tensorflow as tf

from ...basics import *  # noqa: F403
from ...exceptions import HorovodInternalError
from ...process_sets import ProcessSet, global_process_set
from ...reductions import Average
from .. import functions, operations
from ..compression import Compression
from ..functions import allgather_object, broadcast_global_variables, broadcast_object, broadcast_variables
from ..optimizer import DistributedOptimizer, PartialDistributedOptimizer
from . import callbacks, elastic


def allreduce(
    value: Any, name: Optional[str] = None, average: Optional[bool] = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, op: Optional[int] = None, compression: Any = Compression.none,
) -> Any:  # fmt: skip
    """As hvd.allreduce of dtrun.horovod.tensorflow, for any value that converts to a tensor."""
    return operations.allreduce(
        tf.convert_to_tensor(value), average, compression=compression, op=op, prescale_factor=prescale_factor,
        postscale_factor=postscale_factor, name=name,
    )  # fmt: skip


def allgather(value: Any, name: Optional[str] = None) -> Any:
    return operations.allgather(value, name)


def broadcast(value: Any, root_rank: int, name: Optional[str] = None) -> Any:
    return operations.broadcast(value, root_rank, name)


def reducescatter(value: Any, name: Optional[str] = None, op: int = Average) -> Any:
    return operations.reducescatter(value, name=name, op=op)


def load_model(
    filepath: Any, custom_optimizers: Any = None, custom_objects: Any = None, compression: Any = Compression.none,
    legacy_opts: bool = False,
) -> Any:  # fmt: skip
    """Loads a saved model; its optimizer, with its saved state, becomes a DistributedOptimizer."""
    named = {kind.__name__: kind for kind in custom_optimizers or []}
    model = tf.keras.models.load_model(filepath, custom_objects={**named, **(custom_objects or {})})
    if getattr(model, "optimizer", None) is not None:
        model.optimizer = DistributedOptimizer(model.optimizer, compression=compression)
    return model


__all__ = [name for name in dir() if not name.startswith("_")]
