"""The fake accelerator of sdk/fake as a device of torch in Python. Importing it registers it, as torch.cuda is for CUDA.

FAKE_TORCH names the library, which is built for the libtorch of the same torch.
"""

import contextlib
import ctypes
import os
import sys

import torch

library = ctypes.CDLL(os.environ["FAKE_TORCH"])
for name in ("fake_current_stream", "fake_make_stream"):
    getattr(library, name).restype = ctypes.c_int64
    getattr(library, name).argtypes = [ctypes.c_int]
library.fake_host_waits.restype = ctypes.c_uint64
library.fake_set_stream.argtypes = [ctypes.c_int, ctypes.c_int64]
library.fake_wait_stream.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
library.fake_used_on.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int64]
library.fake_set_delays.argtypes = [ctypes.c_uint64, ctypes.c_int]

NAME = "fake" if hasattr(torch._C, "_get_privateuse1_backend_name") else "privateuseone"


class Stream:
    def __init__(self, device=None, stream_id=None):
        self.device = torch.device(NAME, _index(device))
        self.stream_id = library.fake_make_stream(self.device.index) if stream_id is None else stream_id

    def wait_stream(self, other):
        library.fake_wait_stream(self.device.index, self.stream_id, other.stream_id)


def _index(device):
    index = device if isinstance(device, int) or device is None else torch.device(device).index
    return current_device() if index is None else index


def current_device():
    return library.fake_current_device()


def set_device(device):
    library.fake_set_device(_index(device))


def device_count():
    return library.fake_devices()


def is_available():
    return True


def current_stream(device=None):
    return Stream(device, library.fake_current_stream(_index(device)))


@contextlib.contextmanager
def stream(stream):
    """Makes its device current, too, as torch.cuda.stream does."""
    before, device = current_stream(stream.device), current_device()
    set_device(stream.device)
    library.fake_set_stream(stream.device.index, stream.stream_id)
    try:
        yield
    finally:
        library.fake_set_stream(stream.device.index, before.stream_id)
        set_device(device)


def record_stream(tensor, stream):
    library.fake_used_on(tensor.storage().data_ptr(), stream.device.index, stream.stream_id)


def host_waits():
    return library.fake_host_waits()


torch._register_device_module(NAME, sys.modules[__name__])
