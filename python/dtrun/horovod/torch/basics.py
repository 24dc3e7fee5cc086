"""init and the queries of horovod.torch."""

from typing import Iterable, List, Optional, Union

from .. import runtime
from ..process_sets import ProcessSet
from ..runtime import (
    add_process_set,
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    remove_process_set,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from .execute import execute

__all__ = [
    "add_process_set", "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "gloo_built", "gloo_enabled", "init",
    "is_homogeneous", "is_initialized", "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported",
    "nccl_built", "rank", "remove_process_set", "rocm_built", "shutdown", "size", "start_timeline", "stop_timeline",
]  # fmt: skip


def init(comm: Optional[List[int]] = None, process_sets: Union[None, str, Iterable[ProcessSet]] = None) -> None:
    """Joins the job; see runtime.init."""
    runtime.init(execute, comm, process_sets)


# Horovod has transports built in; dtrun's is chosen by the config, and any of them may carry tensors. These answer for
# scripts that ask which of Horovod's own are there.


def mpi_built() -> bool:
    return False


def mpi_enabled() -> bool:
    return False


def mpi_threads_supported() -> bool:
    return False


def gloo_built() -> bool:
    """True: as with Horovod's Gloo, tensors of the host travel without MPI, and init() may follow shutdown()."""
    return True


def gloo_enabled() -> bool:
    return True


def nccl_built() -> int:
    """0: dtrun loads NCCL at run time, when the config has it."""
    return 0


def ddl_built() -> bool:
    return False


def ccl_built() -> bool:
    return False


def cuda_built() -> bool:
    return False


def rocm_built() -> bool:
    return False
