"""Messages between two ranks. Each starts at once; futures complete in any order."""

from __future__ import annotations

import ctypes

from ..arguments import integer
from ..operations import ANY_SOURCE, RECV, SEND
from . import tensors as t
from .launching import Launching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

    import torch

    from .work import Work


class Messages(Launching):
    def send(self, tensors: List[torch.Tensor], peer: int, tag: int = 0) -> Work:
        """Sends to `peer`, which receives the same number of elements with the same tag."""
        dense = t.source("send", t.single("send", tensors))
        return self._launch(
            "send", None, SEND, dense, None, [], list(tensors), ordered=False, count=dense.numel(), peer=peer,
            tag=_checked("send", tag),
        )  # fmt: skip

    def recv(self, tensors: List[torch.Tensor], peer: int, tag: int = 0) -> Work:
        """Receives from `peer`."""
        return self._recv(tensors, peer, tag)

    def recv_anysource(self, tensors: List[torch.Tensor], tag: int = 0) -> Work:
        """Receives from any rank that sends with this tag; the Work's source_rank() is the sender."""
        return self._recv(tensors, ANY_SOURCE, tag, ctypes.c_int32(-1))

    def _recv(self, tensors: List[torch.Tensor], peer: int, tag: int, source: Optional[ctypes.c_int32] = None) -> Work:
        dense, finish = t.target("recv", t.single("recv", tensors))
        return self._launch(
            "recv", None, RECV, None, dense, [finish], list(tensors), ordered=False,
            count=dense.numel(), peer=peer, tag=_checked("recv", tag), source=source,
        )  # fmt: skip


def _checked(what: str, tag: int) -> int:
    """Checks a tag: torch allows 64 bits, dtrun's messages 32."""
    return integer(what, "tag", tag, 0, 2**32 - 1)
