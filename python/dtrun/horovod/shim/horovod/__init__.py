"""`import horovod.torch` for scripts that know only Horovod: the modules of dtrun.horovod under Horovod's names.

`python -m dtrun.horovod SCRIPT` puts this folder's parent first on the path. Horovod itself may be installed; it is left
alone, and cannot be used in the same process.
"""

from dtrun.horovod.absent import name_absent_parts
from dtrun.horovod.runtime import refuse_horovod_itself

refuse_horovod_itself()

__version__ = "0.28.1+dtrun"
name_absent_parts(__name__, __path__, "horovod.torch, horovod.tensorflow, horovod.keras and horovod.common")


def run(*args, **kwargs):  # type: ignore[no-untyped-def]
    """Horovod starts functions as ranks with this; dtrun starts scripts."""
    raise NotImplementedError("dtrun: horovod.run: start the script with `dtrun -n RANKS python -m dtrun.horovod SCRIPT` instead")
