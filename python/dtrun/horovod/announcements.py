"""Announcements: send the signatures that a rank submits to all others, in one round of all ranks.

A repeated signature, such as that of a gradient in every step, travels as a number: each rank numbers the signatures that it
has sent, and the others keep the same table.
"""

import pickle
from typing import Any, Dict, List, Sequence, Tuple, Union

from ..communicator import Communicator
from .signature import Signature

SLOT = 512  # bytes of each rank in every round: the length of its announcement, then its beginning
_HEAD = 4

_Item = Union[int, Tuple[Any, ...]]


class Announcements:
    """Rounds on one communicator."""

    def __init__(self, comm: Communicator, capacity: int) -> None:
        self._comm = comm
        self._capacity = capacity
        self._numbers: Dict[Signature, int] = {}
        self._tables: List[List[Signature]] = [[] for _ in range(comm.size)]
        self._every = bytearray(SLOT * comm.size)

    def exchange(self, signatures: Sequence[Signature]) -> List[List[Signature]]:
        """Announces `signatures`; returns the announcements of all ranks in this round."""
        data = pickle.dumps([self._encode(s) for s in signatures], protocol=4) if signatures else b""
        slot = bytearray(len(data).to_bytes(_HEAD, "little") + data[: SLOT - _HEAD])
        slot.extend(bytes(SLOT - len(slot)))
        self._comm.allgather(slot, self._every)
        parts = [bytes(self._every[SLOT * r : SLOT * (r + 1)]) for r in range(self._comm.size)]
        lengths = [int.from_bytes(part[:_HEAD], "little") for part in parts]
        rests = [max(0, length - (SLOT - _HEAD)) for length in lengths]
        if any(rests):
            more = bytearray(sum(rests))
            self._comm.allgather(data[SLOT - _HEAD :], more, rests)
        begin, announced = 0, []
        for rank, (part, length, rest) in enumerate(zip(parts, lengths, rests)):
            whole = part[_HEAD : _HEAD + min(length, SLOT - _HEAD)]
            if rest:
                whole += bytes(more[begin : begin + rest])
                begin += rest
            announced.append([self._decode(rank, item) for item in pickle.loads(whole)] if whole else [])
        return announced

    def _encode(self, signature: Signature) -> _Item:
        number = self._numbers.get(signature)
        if number is not None:
            return number
        if signature.repeats and len(self._numbers) < self._capacity:
            self._numbers[signature] = len(self._numbers)
        return tuple(signature)

    def _decode(self, rank: int, item: _Item) -> Signature:
        table = self._tables[rank]
        if isinstance(item, int):
            return table[item]
        signature = Signature(*item)
        if signature.repeats and len(table) < self._capacity:
            table.append(signature)
        return signature
