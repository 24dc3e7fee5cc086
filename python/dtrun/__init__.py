"""dtrun: collectives and messages between the ranks of a program.

    import dtrun, numpy

    with dtrun.init() as world:
        x = numpy.full(4, world.rank + 1.0)
        world.allreduce(x)
        print(world.rank, "of", world.size, x)

Start it with `dtrun -n 4 python train.py`. In a plain `python train.py` it is a world of one rank. Operations use arrays
of numpy, torch and DLPack in place, without copies. See Communicator for the operations, `dtrun.torch` for
torch.distributed, `dtrun.horovod` for Horovod's API, and `dtrun.run` to start functions as ranks.
"""

from __future__ import annotations

import importlib

from ._version import __version__
from .communicator import Communicator
from .errors import (
    Aborted,
    Error,
    FailedPrecondition,
    InvalidArgument,
    LibraryError,
    Mismatch,
    NotFound,
    RemoteFailure,
    Timeout,
    Unsupported,
)
from .operations import ANY_SOURCE
from .process import finalize, init, is_initialized, local_rank, local_size, metric, rank, size, world
from .work import Work

__all__ = [
    "ANY_SOURCE", "Aborted", "Communicator", "Error", "FailedPrecondition", "InvalidArgument", "LibraryError", "Mismatch",
    "NotFound", "RemoteFailure", "Timeout", "Unsupported", "Work", "__version__", "finalize", "init", "is_initialized", "local_rank",
    "local_size", "metric", "rank", "size", "world",
]  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

# Loaded at first use, so that `import dtrun` takes only milliseconds.
_LATER: Dict[str, str] = {"Distributor": ".spark", "JobFailed": ".functions", "run": ".functions"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name], __name__), name)
    raise AttributeError(f"module 'dtrun' has no attribute '{name}'")
