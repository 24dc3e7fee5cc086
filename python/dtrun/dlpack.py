"""DLPack: the memory behind an object's `__dlpack__()` capsule, for libraries that buffers.py does not know by name.

Source of the layout: https://dmlc.github.io/dlpack/latest/c_api.html (DLManagedTensor, unversioned).
"""

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p

from . import errors
from .buffers import CUDA, DTYPES, HOST, ROCM, Buffer


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_KINDS = {1: HOST, 3: HOST, 2: CUDA, 10: ROCM}  # kDLCPU, kDLCUDAHost, kDLCUDA, kDLROCM
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]


def describe(array):
    """The Buffer of `array`, which lives as long as its capsule: the capsule is not consumed, and frees it at its end."""
    capsule = array.__dlpack__()
    tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    name = _CODES.get(tensor.code, "?") + ("" if tensor.code == 6 else str(tensor.bits))
    where = f"{type(array).__module__}.{type(array).__qualname__}"
    if name not in DTYPES or tensor.lanes != 1:
        raise errors.InvalidArgument(f"{where} has the type {name}, which no operation has")
    if tensor.device_type not in _KINDS:
        raise errors.InvalidArgument(f"{where} is on a device of DLPack's kind {tensor.device_type}, which dtrun does not move")
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    count = 1
    for extent in shape:
        count *= extent
    if tensor.strides and count:
        expected = 1
        for extent, stride in zip(reversed(shape), [tensor.strides[i] for i in reversed(range(tensor.ndim))]):
            if extent != 1 and stride != expected:
                raise errors.InvalidArgument(f"{where} of shape {tuple(shape)} is not contiguous; pass a copy")
            expected *= extent
    kind = _KINDS[tensor.device_type]
    device = (kind, -1 if kind == HOST else tensor.device_id)
    return Buffer((tensor.data or 0) + tensor.byte_offset, count, DTYPES[name], device, (array, capsule))
