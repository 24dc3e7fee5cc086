"""Distributor: TorchDistributor's interface over dtrun."""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any, Callable

from .. import errors
from ..functions import launch


class Distributor:
    """Runs a function or a Python file on several processes, on this machine or on Spark's executors.

    num_processes: ranks of the job
    local_mode: on this machine; else as barrier tasks of the active Spark session (dtrun.spark)
    use_gpu: each rank needs a GPU; False hides them from the ranks
    """

    def __init__(self, num_processes: int = 1, local_mode: bool = True, use_gpu: bool = True) -> None:
        self.num_processes = launch.check_number("dtrun: Distributor", "num_processes", num_processes)
        self.local_mode, self.use_gpu = local_mode, use_gpu
        if use_gpu and local_mode and (found := visible_gpus()) < num_processes:
            processes, gpus = counted(num_processes, "process", "processes"), counted(found, "GPU", "GPUs")
            fewer = f", or num_processes={found}" if found else ""
            raise errors.FailedPrecondition(
                f"dtrun: Distributor: use_gpu=True with {processes}, but this machine shows {gpus}; pass use_gpu=False{fewer}"
            )

    def run(self, train_object: Callable | str, *args: Any, **kwargs: Any) -> Any:
        """Calls a function with the arguments, or runs a file with them as its command line. Returns the result of rank 0."""
        if isinstance(train_object, (str, os.PathLike)):
            if kwargs:
                raise errors.InvalidArgument(
                    f"dtrun: Distributor.run: '{train_object}' is a file and takes words as arguments; {next(iter(kwargs))}= is for functions"
                )
            if self.local_mode and not os.path.isfile(train_object):
                raise errors.InvalidArgument(
                    f"dtrun: Distributor.run: there is no file '{os.fspath(train_object)}' in {os.getcwd()}; give a path from there, "
                    "an absolute one, or a function"
                )
            train_object, args = run_file, (os.fspath(train_object), [str(word) for word in args])
        env = {} if self.use_gpu else {"CUDA_VISIBLE_DEVICES": ""}
        if self.local_mode:
            return launch.run(train_object, args, kwargs, np=self.num_processes, env=env)[0]
        from .launch import run

        return run(train_object, args, kwargs, num_proc=self.num_processes, env=env, use_gpu=self.use_gpu)[0]


def run_file(file: str, words: list) -> None:
    """As `python file words...`."""
    sys.argv[:] = [file, *words]
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    runpy.run_path(file, run_name="__main__")


setattr(run_file, "may_exit", True)  # a program may end in any way, and has no result


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def visible_gpus() -> int:
    """The number of GPUs that a CUDA program of this process would see."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        return len([word for word in listed.split(",") if word.strip() not in ("", "-1")])
    folder = "/proc/driver/nvidia/gpus"
    return len(os.listdir(folder)) if os.path.isdir(folder) else 0
