"""torch.distributed over dtrun's communicators: `import dtrun.torch` registers the backend "dtrun".

    import dtrun.torch
    import torch.distributed as dist

    dist.init_process_group("dtrun")

See docs/torch-backend.md for what works. With `backend.torch = "dtrun"` in the config, scripts that ask for gloo, or for
no backend, get it without a change: torch calls _autoload() by the entry point `dtrun = "dtrun.torch:_autoload"` of the
group `torch.backends`.
"""

import torch.distributed as dist

from .create import create
from .group import Group
from .selection import autoload as _autoload

__all__ = ["Group", "_autoload"]

NAME = "dtrun"

if NAME.upper() not in dist.Backend._plugins:
    dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])

