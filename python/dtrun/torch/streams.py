"""Devices of tensors: those that dtrun supports, and torch's streams there.

A device's module (torch.cuda, or what torch._register_device_module has been given) has current_stream(), Stream and
stream(), as torch.cuda has them, and may have record_stream(tensor, stream) where Tensor's does not take its streams.
*Not yet run on a GPU*: tests use the fake accelerator of sdk/fake.
"""

from __future__ import annotations

import ctypes

import torch

from .. import buffers, errors
from .._library import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

OTHER = 32  # DTRUN_DEVICE_OTHER: torch's PrivateUse1


def _private() -> str:
    """torch's current name for devices of PrivateUse1; a backend may rename them."""
    name = getattr(torch._C, "_get_privateuse1_backend_name", None)
    return str(name()) if name else "privateuseone"


def kind_of(kind: str) -> Optional[int]:
    """dtrun's number for torch's type of device; None: dtrun moves no memory of it."""
    if kind == "cpu":
        return buffers.HOST
    if kind == "cuda":
        return buffers.ROCM if getattr(torch.version, "hip", None) else buffers.CUDA
    return OTHER if kind == _private() else None


def _handle(stream: Any) -> int:
    """A stream as libdtrun takes it: cudaStream_t, or the number that torch gave it."""
    return int(stream.cuda_stream if hasattr(stream, "cuda_stream") else stream.stream_id)


class Place:
    """A device in this process. One for each device."""

    _known: Dict[torch.device, Place] = {}
    device: torch.device
    _module: Any
    kind: int  # dtrun's number
    _side: Any

    def __new__(cls, device: torch.device) -> Place:
        place = cls._known.get(device)
        if place is None:
            place = super().__new__(cls)
            place._open(device)
            cls._known[device] = place
        return place

    def _open(self, device: torch.device) -> None:
        kind, self.device, self._side = kind_of(device.type), device, None
        self._module = getattr(torch, device.type, None)
        if kind is None or not hasattr(self._module, "current_stream"):
            raise errors.Unsupported(
                f"torch.{device.type} has no current_stream(), which dtrun needs for tensors of {device}; "
                "register the device's module by torch._register_device_module"
            )
        self.kind = kind

    def current(self) -> Any:
        """torch's current stream, of the calling thread."""
        return self._module.current_stream(self.device)

    def native(self, stream: Any) -> Stream:
        """The same for libdtrun."""
        return Stream(ctypes.sizeof(Stream), 0, self.kind, self.device.index or 0, _handle(stream))

    def use(self, tensor: torch.Tensor, stream: Any) -> None:
        """Tells the allocator that `stream` uses the tensor, so that its memory is not reused before that use ends."""
        record = getattr(self._module, "record_stream", torch.Tensor.record_stream)
        record(tensor, stream)

    def on_side(self) -> Any:
        """`with place.on_side():` makes a private stream current, where waits block no other work."""
        return self._module.stream(self.side())

    def side(self) -> Any:
        """That stream."""
        if self._side is None:
            self._side = self._module.Stream(self.device)
        return self._side
