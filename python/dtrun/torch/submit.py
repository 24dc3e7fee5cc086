"""One operation of a group's communicator, from tensors to libdtrun."""

import ctypes
from ctypes import byref, c_uint64, c_void_p

from .. import _library
from ..work import Work as Started
from .tensors import NUMBERS

_SIZEOF_OP = ctypes.sizeof(_library.Op)


def submit(comm, what, kind, send, recv, *, wait, timeout_ns=0, count=0, reduce=0, root=-1, peer=-1, tag=0, send_counts=None,
           recv_counts=None, source=None):  # fmt: skip
    """Starts it: a dtrun.Work, or None where it blocked (`wait`). Tensors are dense; one of a type that dtrun lacks is moved
    as bytes, and cannot be reduced."""
    tensor = recv if send is None else send
    number, width = 7, 1  # uint8
    if tensor is not None:
        number = NUMBERS.get(tensor.dtype)
        if number is None:
            number, width = (7, tensor.element_size()) if not reduce else (_no_type(what, tensor), 1)
    op = _library.Op(
        _SIZEOF_OP, 0, kind, number, reduce, root, peer, tag, 0, count * width, _address(send), _address(recv), timeout_ns
    )
    kept = [send, recv]
    for name, counts in (("send_counts", send_counts), ("recv_counts", recv_counts)):
        if counts is not None:
            array = (c_uint64 * len(counts))(*(n * width for n in counts))
            setattr(op, name, ctypes.addressof(array))
            kept.append(array)
    if source is not None:
        op.source = ctypes.pointer(source)
        kept.append(source)
    handle = None if wait else c_void_p()
    status = _library.library().dtrun_submit(comm._live(), byref(op), None if wait else byref(handle), _library.error())
    if status:
        raise comm._failure(what, status)
    return None if wait else Started(handle, None, kept, what, source)


def _address(tensor):
    return None if tensor is None else tensor.data_ptr()


def _no_type(what, tensor):
    from .. import errors

    raise errors.Unsupported(f"{what}: {tensor.dtype} cannot be reduced; convert the tensor first, as in tensor.float()")
