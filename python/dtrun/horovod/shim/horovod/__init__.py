"""`import horovod.torch` for scripts that know only Horovod: the modules of dtrun.horovod under Horovod's names.

`python -m dtrun.horovod SCRIPT` puts this folder's parent first on the path. Horovod itself may be installed, but cannot be used in
the same process.
"""

import importlib.util
import os
import sys


def _find_dtrun() -> None:
    """With python.horovod = "shim" and no dtrun in this Python, uses the dtrun that contains this folder."""
    found = importlib.util.find_spec("dtrun")
    if found is not None and found.origin is not None:  # None: any folder of that name
        return
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    spec = importlib.util.spec_from_file_location(
        "dtrun", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None and spec.loader is not None
    sys.modules["dtrun"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


_find_dtrun()

from dtrun.horovod.absent import name_absent_parts  # noqa: E402
from dtrun.horovod.runtime import refuse_horovod_itself  # noqa: E402

refuse_horovod_itself()

__version__ = "0.28.1+dtrun"
name_absent_parts(__name__, __path__, "horovod.torch, horovod.tensorflow, horovod.keras and horovod.common")


def run(*args, **kwargs):  # type: ignore[no-untyped-def]
    """Horovod's way to start functions as ranks; an error here, because dtrun starts scripts."""
    raise NotImplementedError("dtrun: horovod.run: start the script with `dtrun -n RANKS python -m dtrun.horovod SCRIPT` instead")
