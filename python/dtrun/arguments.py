"""What a communicator checks of a call's arguments before it starts anything."""

from __future__ import annotations

from . import errors
from .buffers import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List

    from .buffers import Buffer


class Checks:
    """Of Communicator, whose `name` and `size` go into the errors."""

    name: str
    size: int

    def _counts(self, what: str, counts: Iterable[int], name: str = "counts") -> List[int]:
        counts = [int(count) for count in counts]
        if len(counts) != self.size:
            raise errors.InvalidArgument(f"{what}: {name} has {len(counts)} entries, and {self.name} has {self.size} ranks")
        if min(counts) < 0:
            raise errors.InvalidArgument(f"{what}: {name} has a negative entry: {min(counts)}")
        return counts

    def _part(self, what: str, send: Buffer, instead: str) -> int:
        if send.count % self.size:
            raise errors.InvalidArgument(
                f"{what}: send has {send.count} elements, which {self.size} ranks do not divide; give {instead}"
            )
        return int(send.count // self.size)

    @staticmethod
    def _elements(what: str, name: str, buffer: Buffer, count: int) -> None:
        if buffer.count != count:
            raise errors.InvalidArgument(f"{what}: {name} has {buffer.count} elements, and needs {count}")

    def _same(self, what: str, a: Buffer, b: Buffer, count: int, name: str = "recv") -> None:
        self._elements(what, name, b, count)
        if a.dtype != b.dtype:
            raise errors.InvalidArgument(f"{what}: send and recv are of different types: {NAMES[a.dtype]} and {NAMES[b.dtype]}")
        if a.device != b.device:
            raise errors.InvalidArgument(f"{what}: send and recv are on different devices")
