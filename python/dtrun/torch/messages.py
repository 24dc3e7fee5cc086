"""Messages between two ranks. Each is on its way at once; their futures come in any order."""

import ctypes

from ..operations import ANY_SOURCE, RECV, SEND
from . import tensors as t


class Messages:
    def send(self, tensors, peer, tag=0):
        """To `peer`, which receives as many elements with the same tag."""
        dense = t.source("send", t.single("send", tensors))
        return self._message("send", SEND, dense, None, None, tensors, peer, tag)

    def recv(self, tensors, peer, tag=0):
        """From `peer`."""
        dense, finish = t.target("recv", t.single("recv", tensors))
        return self._message("recv", RECV, None, dense, finish, tensors, peer, tag)

    def recv_anysource(self, tensors, tag=0):
        """From whoever sends with this tag; the Work's source_rank() is who did."""
        dense, finish = t.target("recv", t.single("recv", tensors))
        return self._message("recv", RECV, None, dense, finish, tensors, ANY_SOURCE, tag, source=ctypes.c_int32(-1))

    def _message(self, what, kind, send, recv, finish, tensors, peer, tag, source=None):
        dense = recv if send is None else send
        return self._launch(
            what, None, kind, send, recv, [finish], list(tensors), ordered=False,
            count=dense.numel(), peer=peer, tag=tag, source=source,
        )  # fmt: skip
