"""torch.distributed over dtrun's communicators: `import dtrun.torch` registers the backend "dtrun".

    import dtrun.torch
    import torch.distributed as dist

    dist.init_process_group("dtrun")

See docs/torch-backend.md for what works. With `backend.torch = "dtrun"` in the config, scripts that ask for gloo, or for
no backend, get this backend without a change: torch calls _autoload() by the entry point `dtrun = "dtrun.torch:_autoload"` of the
group `torch.backends`.
"""

from __future__ import annotations

import inspect
from typing import Any


def _autoload() -> None:
    """Entry point of the group torch.backends. torch calls it at the end of its import, which may be the one below."""
    from . import patches, recorder

    recorder.start()
    patches.autoload()


import torch.distributed as dist  # noqa: E402

from . import patches  # noqa: E402
from .create import create  # noqa: E402
from .group import Group  # noqa: E402

__all__ = ["Group", "_autoload"]

if "DTRUN" not in dist.Backend._plugins:
    register: Any = dist.Backend.register_backend
    knows_devices = "devices" in inspect.signature(register).parameters  # torch 1.13 does not
    with_devices = {"devices": ["cpu", "cuda"]} if knows_devices else {}
    register("dtrun", create, extended_api=True, **with_devices)
    patches.apply(own_barrier=not knows_devices)
