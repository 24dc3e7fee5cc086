"""DDP's built-in C++ hooks over groups of dtrun.

FP16_COMPRESS needs a future with a C++ list of tensors, which Python cannot make: the future of a Python group holds a
Python object. torch has the same hook in Python, with the same arithmetic, which replaces it. ALLREDUCE takes both kinds.
"""

from __future__ import annotations

import functools

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .group import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def replace() -> None:
    """Makes FP16_COMPRESS of a model over a Group use the Python hook."""
    ddp: Any = DistributedDataParallel
    of_torch = ddp._register_builtin_comm_hook
    if hasattr(of_torch, "of_dtrun"):
        return

    @functools.wraps(of_torch)
    def register(self: Any, comm_hook_type: Any) -> None:
        if comm_hook_type != dist.BuiltinCommHookType.FP16_COMPRESS or not isinstance(self.process_group, Group):
            of_torch(self, comm_hook_type)
            return
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

        self.register_comm_hook(self.process_group, fp16_compress_hook)

    register.of_dtrun = True  # type: ignore[attr-defined]
    ddp._register_builtin_comm_hook = register
