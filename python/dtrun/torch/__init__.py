"""torch.distributed over dtrun's communicators: `import dtrun.torch` registers the backend "dtrun".

    import dtrun.torch
    import torch.distributed as dist

    dist.init_process_group("dtrun")

See docs/torch-backend.md for what works. With `backend.torch = "dtrun"` in the config, scripts that ask for gloo, or for
no backend, get it without a change: torch calls _autoload() by the entry point `dtrun = "dtrun.torch:_autoload"` of the
group `torch.backends`.
"""


def _autoload():
    """Entry point of the group torch.backends. torch calls it at the end of its import, which may be the one below."""
    from .selection import autoload

    autoload()


import torch.distributed as dist  # noqa: E402

from .create import create  # noqa: E402
from .group import Group  # noqa: E402

__all__ = ["Group", "_autoload"]

NAME = "dtrun"

if NAME.upper() not in dist.Backend._plugins:
    dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])
