"""horovod.common.util: the part that scripts import. dtrun itself does not use it."""

import contextlib
import os
from typing import Any, Iterator, List, Optional, Sequence

from .basics import ccl_built, ddl_built, gloo_built, mpi_built, nccl_built

__all__ = ["ccl_built", "ddl_built", "env", "extension_available", "gloo_built", "gpu_available", "mpi_built", "nccl_built",
           "num_rank_is_power_2", "split_list"]  # fmt: skip

_HERE = ("torch", "tensorflow")


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether hvd supports this framework."""
    return ext_base_name in _HERE


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether the framework, "torch" or "tensorflow", has a GPU in this process."""
    if ext_base_name == "torch":
        import torch

        return torch.cuda.is_available()
    if ext_base_name == "tensorflow":
        import tensorflow  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return bool(tensorflow.config.list_physical_devices("GPU"))
    return False


@contextlib.contextmanager
def env(**variables: Optional[str]) -> Iterator[None]:
    """Sets variables of the environment inside the block; None leaves a variable unchanged."""
    given = {name: value for name, value in variables.items() if value is not None}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def num_rank_is_power_2(num_rank: int) -> bool:
    """Whether Adasum supports this number of ranks."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l: Sequence[Any], n: int) -> List[Sequence[Any]]:  # noqa: E741, as Horovod calls it
    """`n` parts in order; their lengths differ by at most one."""
    size, longer = divmod(len(l), n)
    ends = [(part + 1) * size + min(part + 1, longer) for part in range(n)]
    return [l[begin:end] for begin, end in zip([0, *ends], ends)]
