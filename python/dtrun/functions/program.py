"""Finds the program `dtrun`."""

from __future__ import annotations

import os
import shutil

from .. import errors


def candidates() -> list[str]:
    """The places to look in, first beside the libdtrun that this package uses."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = []
    if library := os.environ.get("DTRUN_LIBRARY"):
        places.append(os.path.join(os.path.dirname(os.path.abspath(library)), "..", "bin"))
    places.append(os.path.join(package, "native", "bin"))  # of the wheel
    places += [os.path.join(package, *[".."] * up, "bin") for up in (4, 3)]  # PREFIX/lib/python3/dist-packages/dtrun
    return [os.path.normpath(os.path.join(place, "dtrun")) for place in places]


def said(path: str, printed: str) -> str:
    """The output of dtrun; without output it may not be dtrun."""
    return printed.strip() or f"it printed nothing: `{path} --version` tells whether that is dtrun; if not, set DTRUN_BIN to dtrun's path"


def find() -> str:
    """The path of `dtrun`: from DTRUN_BIN, this installation, or PATH."""
    if chosen := os.environ.get("DTRUN_BIN"):
        if not os.access(chosen, os.X_OK) or os.path.isdir(chosen):
            raise errors.LibraryError(f"dtrun: DTRUN_BIN: '{chosen}' is not a program; set it to the path of dtrun, or unset it")
        return chosen
    for path in candidates():
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    if path := shutil.which("dtrun", path=os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))):  # not of the current folder
        return path
    raise errors.LibraryError(
        f"dtrun: the program 'dtrun' is neither at {', '.join(candidates())} nor in PATH; install it (pip install dtrun), or set "
        "DTRUN_BIN to its path"
    )
