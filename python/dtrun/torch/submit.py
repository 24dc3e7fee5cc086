"""One operation of a group's communicator, from tensors to libdtrun."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_uint64, c_void_p

from .. import _library, errors, work
from . import streams
from .following import await_turn, overtakers
from .tensors import NUMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Sequence

    import torch

    from ..communicator import Communicator

_SIZEOF_OP = ctypes.sizeof(_library.Op)
_BYTES = 7  # uint8
_SET_BY = "set another timeout in init_process_group or new_group, or backend.timeout in the config"


_THREADS = (
    "of this rank call operations of one process group, so that their order may differ between ranks: make a group for one of them "
    "on all ranks first, as in group = torch.distributed.new_group(), then async_save(..., process_group=group)"
)


def submit(
    comm: Communicator, what: str, kind: int, send: Optional[torch.Tensor], recv: Optional[torch.Tensor], *, wait: bool,
    timeout_ns: int = 0, count: int = 0, reduce: int = 0, root: int = -1, peer: int = -1, tag: int = 0,
    send_counts: Optional[Sequence[int]] = None, recv_counts: Optional[Sequence[int]] = None,
    source: Optional[ctypes.c_int32] = None,
) -> Optional[Started]:  # fmt: skip
    """Starts it. Returns a dtrun.Work, or None if it blocked (`wait`); on a device only torch's current stream blocks.
    Tensors are dense. A type that dtrun lacks is moved as bytes and cannot be reduced."""
    if overtakers:
        await_turn(what, timeout_ns / 1e9)
    tensor = recv if send is None else send
    number, width = _BYTES, 1
    if tensor is not None:
        if recv is not None and recv is not tensor and recv.device != tensor.device:
            raise errors.InvalidArgument(f"{what}: the input is on {tensor.device} and the output on {recv.device}")
        known = NUMBERS.get(tensor.dtype)
        if known is not None:
            number = known
        elif reduce:
            raise errors.Unsupported(
                f"{what}: {tensor.dtype} cannot be reduced; convert the tensor first, as in tensor.float()"
            )
        else:
            width = tensor.element_size()
    op = _library.Op(
        _SIZEOF_OP, 0, kind, number, reduce, root, peer, tag, 0, count * width, _address(send), _address(recv), timeout_ns
    )
    kept: List[Any] = [send, recv]
    for name, counts in (("send_counts", send_counts), ("recv_counts", recv_counts)):
        if counts is not None:
            array = (c_uint64 * len(counts))(*(n * width for n in counts))
            setattr(op, name, ctypes.addressof(array))
            kept.append(array)
    if source is not None:
        op.source = ctypes.pointer(source)
        kept.append(source)
    if threading.get_ident() not in comm._callers:
        _note_caller(comm)
    handle = None if wait else c_void_p()
    out = None if handle is None else byref(handle)
    library = _library.library()
    if tensor is None or tensor.is_cpu:
        status = library.dtrun_submit(comm._live(), byref(op), out, _library.error())
    else:
        place = streams.Place(tensor.device)
        stream = place.native(place.current())
        status = library.dtrun_submit_on(comm._live(), byref(op), byref(stream), out, _library.error())
    if status:
        raise explained(comm._failure(what, status), comm)
    return None if handle is None else Started(handle, None, kept, what, source, comm)


class Started(work.Work):
    """A dtrun.Work of tensors."""

    __slots__ = ()

    def _end(self, status: int) -> None:
        super()._end(status)
        if self._failure is not None:
            self._failure = explained(self._failure, self._comm)

    def orders_on_host(self, kind: int) -> bool:
        """Whether wait_on() blocks until the data has arrived; `kind` is that of its device."""
        if self._comm is None or self._handle is None:
            return False
        return bool(_library.library().dtrun_comm_orders_on_host(self._comm._live(), kind))

    def tensors(self) -> List[torch.Tensor]:
        """Its tensors; none after its end was seen."""
        return [kept for kept in (self._kept or ())[:2] if kept is not None]


def _note_caller(comm: Communicator) -> None:
    comm._callers[threading.get_ident()] = threading.current_thread().name


def explained(failure: errors.Error, comm: Optional[Communicator] = None) -> errors.Error:
    """Adds to a timeout what set it, and to calls that differ whether several threads of this rank made them."""
    if comm is not None:
        _note_caller(comm)
    if isinstance(failure, errors.Timeout):
        more = _SET_BY
    elif isinstance(failure, errors.Mismatch) and comm is not None and len(_callers(comm)) > 1:
        more = f"the threads {' and '.join(_callers(comm))} {_THREADS}"
    else:
        return failure
    return failure if more in str(failure) else failure.reworded(f"{failure}; {more}")


def _callers(comm: Communicator) -> List[str]:
    """The program's threads that have called operations of `comm`, without those of dtrun and of torch's C++."""
    return sorted({name for name in comm._callers.values() if not name.startswith(("dtrun-", "Dummy-"))})[:4]


def _address(tensor: Optional[torch.Tensor]) -> Optional[int]:
    return None if tensor is None else tensor.data_ptr()
