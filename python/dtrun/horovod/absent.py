"""The error for an import of a part of Horovod that is missing here."""

import sys
from typing import Any, Iterable


class _Absent:
    """Last on sys.meta_path, so it runs only if no other finder has found the part."""

    def __init__(self, package: str, path: Iterable[str], parts: str) -> None:
        self._package, self._path, self._parts = package, path, parts

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith(f"{self._package}.") and path is not None and list(path) == list(self._path):
            raise ModuleNotFoundError(
                f"dtrun: {name}: dtrun's horovod has {self._parts}, and not this; use Horovod itself "
                '(job.dialects = ["horovod"]) for it',
                name=name,
            )


def name_absent_parts(package: str, path: Iterable[str], parts: str) -> None:
    """Declares that `package`, with that __path__, has `parts` and no others."""
    sys.meta_path.append(_Absent(package, path, parts))
