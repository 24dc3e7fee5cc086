"""The memory of operations: arrays of other libraries, used without copies by address, number of elements and type; and memory of
the transport, which is freed with its last view; free() and finalize() wait for that.

Understands torch tensors, numpy arrays, everything that exports DLPack (JAX, CuPy, TensorFlow, ...) and Python's own
buffers (bytearray, array.array, memoryview). None of those libraries is imported here. Arrays are C-contiguous; what
is received into must be writable. A Buffer keeps its memory alive.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import namedtuple

from . import _library, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

    from .communicator import Communicator

HOST, CUDA, ROCM = 0, 1, 2

# Names of element types in numpy to numbers in dtrun/abi/types.h.
DTYPES = {
    "float16": 1, "bfloat16": 2, "float32": 3, "float64": 4, "int32": 5, "int64": 6, "uint8": 7, "int8": 8, "int16": 9,
    "uint16": 10, "uint32": 11, "uint64": 12, "bool": 13, "complex64": 14, "complex128": 15,
}  # fmt: skip
NAMES = {number: name for name, number in DTYPES.items()}
COMPLEX = DTYPES["complex64"]  # and above
_BUFFER_FORMATS = {
    "e": "float16", "f": "float32", "d": "float64", "b": "int8", "B": "uint8", "c": "uint8", "h": "int16", "H": "uint16",
    "i": "int32", "I": "uint32", "?": "bool", "Zf": "complex64", "Zd": "complex128",
}  # fmt: skip


# `pointer`: address; `count`: elements; `dtype`: number of the type; `device`: (kind, index), (0, -1) on the host;
# `owner` keeps the memory alive.
Buffer = namedtuple("Buffer", "pointer count dtype device owner")

_HOST = (HOST, -1)


def describe(array: Any, writable: bool = True) -> Buffer:
    """The Buffer of `array`. Raises InvalidArgument with the reason."""
    kind = type(array)
    module = kind.__module__
    if module == "torch" or hasattr(array, "data_ptr"):
        return _of_torch(array)
    if module == "numpy" or (hasattr(array, "__array_interface__") and hasattr(array, "dtype")):
        return _of_numpy(array, writable)
    if hasattr(array, "__dlpack__"):
        from . import dlpack

        return dlpack.describe(array, writable)
    return _of_buffer(array, writable)


def bad(array: Any, what: str) -> errors.InvalidArgument:
    kind = type(array)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return errors.InvalidArgument(f"{name} {what}")


_torch_dtypes: Dict[Any, int] = {}


def _of_torch(tensor: Any) -> Buffer:
    number = _torch_dtypes.get(tensor.dtype)
    if number is None:
        number = DTYPES.get(str(tensor.dtype).rpartition(".")[2])
        if number is None:
            raise bad(tensor, f"has the type {tensor.dtype}, which no operation has; convert it first")
        _torch_dtypes[tensor.dtype] = number
    if tensor.is_sparse:
        raise bad(tensor, f"of shape {tuple(tensor.shape)} is sparse; pass tensor.to_dense()")
    if tensor.is_neg() or (number >= COMPLEX and tensor.is_conj()):
        raise bad(tensor, "is a lazy conjugate or negative: its memory holds other values; pass tensor.resolve_conj().resolve_neg()")
    if not tensor.is_contiguous():
        raise bad(tensor, f"of shape {tuple(tensor.shape)} is not contiguous; pass tensor.contiguous()")
    device = _HOST if tensor.is_cpu else _device_of_torch(tensor)
    return Buffer(tensor.data_ptr(), tensor.numel(), number, device, tensor)


def _device_of_torch(tensor: Any) -> Tuple[int, int]:
    if tensor.device.type == "cuda":
        import torch

        return (ROCM if getattr(torch.version, "hip", None) else CUDA, tensor.device.index)
    raise bad(tensor, f"is on {tensor.device}; dtrun moves tensors of cpu and cuda")


_numpy_dtypes: Dict[Any, int] = {}
_address, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer


def _of_numpy(array: Any, writable: bool) -> Buffer:
    dtype = array.dtype
    number = _numpy_dtypes.get(dtype)
    if number is None:
        number = DTYPES.get(dtype.name)
        if number is None or not dtype.isnative:
            raise bad(array, f"has the type {dtype}, which no operation has; convert it, as in array.astype('float32')")
        _numpy_dtypes[dtype] = number
    try:  # the fast path; fails for read-only, non-contiguous or empty arrays
        return Buffer(_address(_from_buffer(array)), array.size, number, _HOST, array)
    except (TypeError, ValueError, BufferError):
        return _of_odd_numpy(array, number, writable)


def _of_odd_numpy(array: Any, number: int, writable: bool) -> Buffer:
    """Handles arrays that are read-only, empty or no numpy.ndarray, and raises the error for non-contiguous ones."""
    import numpy

    if isinstance(array, numpy.generic):
        if writable:
            raise bad(array, "is a scalar, and the result would go there; pass an array, as in numpy.array([value])")
        array = numpy.array(array)  # a scalar has no memory of its own that would last
    interface = array.__array_interface__
    if interface["strides"] is not None:
        raise bad(array, f"of shape {array.shape} is not C-contiguous; pass numpy.ascontiguousarray(array)")
    pointer, read_only = interface["data"]
    if writable and read_only:
        raise bad(array, f"of shape {array.shape} is read-only, and the result would go there; pass a copy")
    return Buffer(pointer, array.size, number, _HOST, array)


def _of_buffer(array: Any, writable: bool) -> Buffer:
    try:
        view = memoryview(array)
    except TypeError:
        raise bad(
            array, "is not an array: pass a torch tensor, a numpy array, an object with __dlpack__, or a bytearray; objects go "
            "through allgather_object, broadcast_object and their like"
        ) from None  # fmt: skip
    name = _BUFFER_FORMATS.get(view.format.lstrip("@=<"))
    if name is None and view.format.lstrip("@=<") in ("l", "q", "L", "Q", "n", "N"):
        name = ("uint" if view.format[-1].isupper() else "int") + str(8 * view.itemsize)
    if name is None:
        raise bad(array, f"has elements of format '{view.format}', which no operation has")
    if not view.c_contiguous:
        raise bad(array, "is not contiguous; pass a copy")
    holder: Any  # keeps the memory in place: while it lives, a bytearray cannot be resized
    if view.readonly:
        if writable:
            raise bad(array, "is read-only, and the result would go there; pass a bytearray")
        holder = array if type(array) is bytes else bytes(view)
        pointer = ctypes.cast(ctypes.c_char_p(holder), ctypes.c_void_p).value or 0
    else:
        holder = _from_buffer(array) if view.nbytes else None
        pointer = _address(holder) if holder is not None else 0
    return Buffer(pointer, view.nbytes // view.itemsize, DTYPES[name], _HOST, (array, holder))


def shape_of(array: Any) -> Tuple[int, ...]:
    """The shape of `array`; new results derive their shape from it."""
    if not hasattr(array, "shape"):
        raise bad(array, "has no shape: pass recv, a writable buffer for the result")
    return tuple(array.shape)


def like(array: Any, shape: Sequence[int]) -> Any:
    """A new array of `shape` of the same library, type and device, for a result."""
    if hasattr(array, "new_empty"):
        return array.new_empty(shape)
    if type(array).__module__ == "numpy" or hasattr(array, "__array_interface__"):
        import numpy

        return numpy.empty(shape, array.dtype)
    raise bad(array, "needs the argument recv: only results of numpy and torch are allocated")


# ---- memory of the transport

_living: Dict[object, Tuple[Communicator, Any, int]] = {}  # (communicator, handle, bytes) of memory with views
_waiting: List[Tuple[Optional[Communicator], Callable[[], None]]] = []  # ends that wait for the last view


def allocate(comm: Communicator, size: int) -> memoryview:
    """Zeroed memory of the transport."""
    out = ctypes.c_void_p()
    with comm._inside:
        handle = comm._live()
        status = _library.library().dtrun_alloc(handle, size, ctypes.byref(out), _library.error())
        if status:
            raise comm._failure("alloc", status, False)
        address = out.value or 0
        memory = (ctypes.c_char * size).from_address(address)
        key = object()  # the address is another block's as soon as libdtrun has freed this one
        _living[key] = (comm, handle, size)
        weakref.finalize(memory, _free, key, address).atexit = False
    return memoryview(memory).cast("B")


def in_use(comm: Optional[Communicator] = None) -> List[int]:
    """The bytes of each block with a view: of `comm`, or of all communicators."""
    return [size for owner, _, size in list(_living.values()) if comm is None or owner is comm]


def when_unused(comm: Optional[Communicator], end: Callable[[], None]) -> None:
    """Calls `end` when memory of `comm`, or of any communicator, has no view: now, or with the last view."""
    if in_use(comm):
        _waiting.append((comm, end))
    else:
        end()


def forget() -> None:
    """The library frees all blocks, whatever shows them: the program ends."""
    _living.clear()
    _waiting.clear()


def _free(key: object, address: int) -> None:
    if key not in _living:
        return
    _library.library().dtrun_free(_living[key][1], address)
    _living.pop(key, None)  # last: until then its communicator stays
    for waits in list(_waiting):
        if not in_use(waits[0]):
            _waiting.remove(waits)
            waits[1]()
