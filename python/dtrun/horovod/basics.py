"""The part that is common to all of Horovod's APIs: init, queries, process sets, the timeline."""

from .process_sets import ProcessSet, global_process_set
from .reductions import Adasum, Average, Max, Min, Product, Sum
from .runtime import (
    add_process_set,
    cross_rank,
    cross_size,
    init,
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

__all__ = [
    "Adasum", "Average", "Max", "Min", "ProcessSet", "Product", "Sum", "add_process_set", "ccl_built", "cross_rank", "cross_size",
    "cuda_built", "ddl_built", "global_process_set", "gloo_built", "gloo_enabled", "init", "is_homogeneous", "is_initialized",
    "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built", "rank", "remove_process_set",
    "rocm_built", "shutdown", "size", "start_timeline", "stop_timeline",
]  # fmt: skip


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
