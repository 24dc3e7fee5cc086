"""test_torch_backend.py with the torch 2 of `tools/setup frameworks`, or of the Python that DTRUN_TEST_TORCH names."""

import os

from support.job import SOURCE
from test_torch_backend import Calls, InPlaceOfGloo, Misuse, run

__all__ = ["Calls", "InPlaceOfGloo", "Misuse"]  # what unittest runs

if __name__ == "__main__":
    places = [os.environ.get("DTRUN_TEST_TORCH"), SOURCE / "build/frameworks/bin/python3"]
    run(places, (2, 0), "`tools/setup frameworks` fetches it")
