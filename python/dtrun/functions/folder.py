"""A folder that goes with the Python that has made it, however that one ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import Iterator

REMOVE_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "remove_folder.py")


@contextlib.contextmanager
def going_with_us(folder: str) -> Iterator[str]:
    """Removes `folder`, which is there already, at the end."""
    # A session of its own: what kills a whole process group leaves it.
    with subprocess.Popen([sys.executable, "-I", "-S", REMOVE_FOLDER, folder], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          start_new_session=True):  # fmt: skip
        yield folder
