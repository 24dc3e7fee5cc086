"""A temporary folder that is removed when the Python process that made it ends in any way."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import Iterator

REMOVE_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "remove_folder.py")


@contextlib.contextmanager
def going_with_us(folder: str) -> Iterator[str]:
    """Removes the existing `folder` at the end."""
    # A separate session survives signals to the whole process group.
    with subprocess.Popen([sys.executable, "-I", "-S", REMOVE_FOLDER, folder], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          start_new_session=True):  # fmt: skip
        yield folder
