"""`import horovod.torch` for scripts that know only Horovod: the modules of dtrun.horovod under Horovod's names.

`python -m dtrun.horovod SCRIPT` puts this folder's parent first on the path. Horovod itself may be installed; it is left
alone, and cannot be used in the same process.
"""

import sys

from dtrun.horovod.runtime import refuse_horovod_itself

refuse_horovod_itself()

__version__ = "0.28.1+dtrun"


class _Absent:
    """Says what is missing, where nobody else has found a part of horovod."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name.startswith(f"{__name__}.") and path is not None and list(path) == list(__path__):
            raise ModuleNotFoundError(
                f"dtrun: {name}: dtrun's horovod has horovod.torch and horovod.common, and not this; use Horovod itself "
                '(job.dialects = ["horovod"]) for it',
                name=name,
            )


sys.meta_path.append(_Absent())  # type: ignore[arg-type]


def run(*args, **kwargs):  # type: ignore[no-untyped-def]
    """Horovod starts functions as ranks with this; dtrun starts scripts."""
    raise NotImplementedError("dtrun: horovod.run: start the script with `dtrun -n RANKS python -m dtrun.horovod SCRIPT` instead")
