"""The frameworks that `tools/setup frameworks` has fetched from PyPI, and what dtrun sets so that torch uses its communicator."""

import functools
import shutil
import subprocess
import unittest

from support.job import BUILD, SOURCE, skip

PLACE = SOURCE / "build/frameworks"
PYTHON = PLACE / "bin/python3"
SCRIPTS = SOURCE / "tests/frameworks"
TORCH_BACKENDS = ("gloo", "dtrun")  # of scripts that ask for gloo


@functools.lru_cache(maxsize=None)
def has(module: str) -> bool:
    finds = f"import importlib.util as u, sys; sys.exit(not u.find_spec('{module}'))"
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", finds], check=False).returncode == 0


def needs(module: str):
    return unittest.skipUnless(has(module), f"{PLACE} has no {module}")


needs_compiler = unittest.skipUnless(shutil.which("g++"), "DeepSpeed compiles its part for CPUs at first, and there is no g++")


def require() -> None:
    """For the end of a test file: skips all of it where nothing has been fetched."""
    if not PYTHON.exists():
        skip(f"{PLACE} is missing: `tools/setup frameworks` fetches PyTorch 2, Lightning, TensorFlow and others from PyPI")


def settings(torch_backend: str) -> "list[str]":
    """Of a job with this backend of torch."""
    # ccache would leave its folder among those that are checked after each test.
    sets = [f"job.env.TORCH_EXTENSIONS_DIR={PLACE}/extensions", "job.env.CCACHE_DISABLE=1"]
    if torch_backend == "dtrun":
        sets += ["backend.torch=dtrun", f"job.env.DTRUN_LIBRARY={BUILD}/lib/libdtrun.so.1",
                 f"job.env.PYTHONPATH={SOURCE}/python:{BUILD}/python"]
    return sets
