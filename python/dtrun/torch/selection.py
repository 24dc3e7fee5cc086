"""dtrun in place of gloo, for scripts that dtrun started with `backend.torch = "dtrun"`.

torch calls autoload() at the end of its own import. Where the variable of that option is set, every process group that a
script asks for as "gloo", "cpu:gloo" or without a name is made by the backend "dtrun"; other names mean what they say.
torch makes all its groups, those of DeviceMesh too, in one function of its own, which is what is replaced here.
"""

import functools
import os

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

VARIABLE = "DTRUN_TORCH_BACKEND"
_PLAIN = ("gloo", "cpu:gloo")


def autoload():
    """Does what the variable says."""
    if os.environ.get(VARIABLE) == "dtrun" and dist.is_available():
        _take_over()


def chosen(backend):
    """The backend for what a script asked for."""
    name = str(backend).lower()
    if name in _PLAIN or (name == "undefined" and not torch.accelerator.is_available()):
        return dist.Backend("dtrun")
    return backend


def _take_over():
    make = c10d._new_process_group_helper
    if hasattr(make, "of_dtrun"):
        return

    @functools.wraps(make)
    def make_chosen(size, rank, ranks, backend, *rest, **named):
        return make(size, rank, ranks, chosen(backend), *rest, **named)

    make_chosen.of_dtrun = True
    c10d._new_process_group_helper = make_chosen
    _monitor()


def _monitor():
    """torch lets monitored_barrier through for gloo alone; scripts that ask for gloo may call it."""
    of_torch = dist.monitored_barrier

    @functools.wraps(of_torch)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        from .group import Group

        own = group or c10d._get_default_group()
        if isinstance(own, Group):
            return own.monitored_barrier(timeout, wait_all_ranks)
        return of_torch(group, timeout, wait_all_ranks)

    dist.monitored_barrier = c10d.monitored_barrier = monitored_barrier
