"""`import horovod.torch` for scripts that know only Horovod: the modules of dtrun.horovod under Horovod's names.

This folder's parent is on PYTHONPATH where the config says `python.horovod = "shim"`. Horovod itself is left alone, and
cannot be used in the same process.
"""

import sys

if any(name.startswith("horovod.") and getattr(module, "__file__", None) for name, module in sys.modules.items()):
    raise ImportError("dtrun: modules of another horovod are loaded in this process; import dtrun's shim first, or unset python.horovod")

__version__ = "0.28.1+dtrun"
