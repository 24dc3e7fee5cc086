"""DLPack: the memory behind an object's `__dlpack__()` capsule, for libraries that buffers.py does not know by name.

Reads DLPack 1 (DLManagedTensorVersioned, with flags for read-only memory and copies) if the object exports it, and
otherwise the older DLManagedTensor. Source of the layouts: https://dmlc.github.io/dlpack/latest/c_api.html
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

from ._library import fields
from .buffers import CUDA, DTYPES, HOST, ROCM, Buffer, bad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Tensor(ctypes.Structure):
    """DLTensor"""

    _fields_ = fields(
        c_void_p, "data", c_int32, "device_type device_id ndim", c_uint8, "code bits", c_uint16, "lanes",
        POINTER(c_int64), "shape strides", c_uint64, "byte_offset",
    )  # fmt: skip


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned"""

    _fields_ = fields(c_uint32, "major minor", c_void_p, "manager deleter", c_uint64, "flags", _Tensor, "tensor")


_MAJOR = 1
_READ_ONLY, _COPIED = 1, 2  # bits of flags
_KINDS = {1: HOST, 3: HOST, 2: CUDA, 10: ROCM}  # kDLCPU, kDLCUDAHost, kDLCUDA, kDLROCM
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]


def describe(array: Any, writable: bool = True) -> Buffer:
    """The Buffer of `array`. It holds the capsule without consuming it; the capsule frees the memory when it is deleted."""
    capsule = _export(array)
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != _MAJOR:
            raise bad(array, f"exports version {versioned.major} of DLPack, and dtrun reads version {_MAJOR} and older")
        if writable and versioned.flags & _READ_ONLY:
            raise bad(array, "is read-only, and the result would go there; pass a copy")
        if writable and versioned.flags & _COPIED:
            raise bad(array, "exports a copy of its memory, where a result would be lost; pass another array")
        tensor = versioned.tensor
    else:
        tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    return _buffer(array, tensor, capsule)


def _export(array: Any) -> Any:
    try:
        try:
            return array.__dlpack__(max_version=(_MAJOR, 0))
        except TypeError:  # from before DLPack 1
            return array.__dlpack__()
    except BufferError as failure:
        raise bad(array, f"does not export its memory: {failure}; pass a copy") from failure


def _buffer(array: Any, tensor: _Tensor, capsule: Any) -> Buffer:
    name = _CODES.get(tensor.code, "?") + ("" if tensor.code == 6 else str(tensor.bits))
    if name not in DTYPES or tensor.lanes != 1:
        raise bad(array, f"has the type {name}, which no operation has; convert it first")
    if tensor.device_type not in _KINDS:
        raise bad(array, f"is on a device of DLPack's kind {tensor.device_type}, which dtrun does not move")
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    count = 1
    for extent in shape:
        count *= extent
    if tensor.strides and count:
        expected = 1
        for axis in reversed(range(tensor.ndim)):
            if shape[axis] != 1 and tensor.strides[axis] != expected:
                raise bad(array, f"of shape {tuple(shape)} is not contiguous; pass a copy")
            expected *= shape[axis]
    kind = _KINDS[tensor.device_type]
    device = (kind, -1 if kind == HOST else tensor.device_id)
    return Buffer((tensor.data or 0) + tensor.byte_offset, count, DTYPES[name], device, (array, capsule))
