"""Negotiation: finds the operations that every rank has submitted, in one order for all.

Every rank keeps this table and feeds it the same announcements in the same order, so all make the same decisions. There is no
coordinator, and no answer to wait for. The table does not communicate itself.
"""

import time
from typing import Dict, Iterable, List, NamedTuple, Optional

from . import reductions
from .signature import Signature, mismatch


class Decision(NamedTuple):
    """A decision: an operation that starts, or fails, on every rank."""

    name: str
    signatures: Dict[int, Signature]  # by rank; ranks that have joined are not in it
    joined: int  # how many ranks have joined
    last: int = -1  # the rank that joined last, of the decision that ends a join
    error: Optional[str] = None
    since: float = 0.0  # time.monotonic() of the first announcement

    @property
    def signature(self) -> Signature:
        """The signature of any rank; ranks agree on all shared fields."""
        return next(iter(self.signatures.values()))


class _Entry:
    def __init__(self) -> None:
        self.signatures: Dict[int, Signature] = {}
        self.since = time.monotonic()
        self.warned = False


class Stall(NamedTuple):
    """An operation that some ranks have submitted and others have not, for `age` seconds."""

    kind: str
    name: str
    submitted: List[int]
    missing: List[int]
    age: float


class Negotiation:
    """The table of one process set. Ranks here are those of the set, from 0."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: Dict[str, _Entry] = {}
        self._joined: Dict[int, Signature] = {}  # in the order of joining
        self._aborted: Dict[str, str] = {}

    def receive(self, rank: int, signatures: Iterable[Signature]) -> None:
        """Adds the announcements of `rank` in this round. Called for every rank, in the order of ranks."""
        for signature in signatures:
            if signature.kind == "join":
                self._joined[rank] = signature
            elif signature.kind == "abort":  # of an operation that stalled for too long
                self._aborted[signature.name] = f"it stalled: {self._missing_text(signature.name)}"
            else:
                self._entries.setdefault(signature.name, _Entry()).signatures[rank] = signature

    def decide(self) -> List[Decision]:
        """Removes and returns the operations that every rank has submitted."""
        decisions = []
        for name, entry in list(self._entries.items()):
            error = self._aborted.pop(name, None)
            if error is None and len(entry.signatures.keys() | self._joined.keys()) < self._size:
                continue
            del self._entries[name]
            error = error or mismatch(entry.signatures) or self._refuse_joined(entry.signatures)
            decisions.append(Decision(name, entry.signatures, len(self._joined), error=error, since=entry.since))
        self._aborted.clear()
        if len(self._joined) == self._size:
            decisions.append(Decision("join", dict(self._joined), self._size, last=list(self._joined)[-1]))
            self._joined.clear()
        return decisions

    def _refuse_joined(self, signatures: Dict[int, Signature]) -> Optional[str]:
        absent = sorted(self._joined.keys() - signatures.keys())
        if not absent:
            return None
        signature = next(iter(signatures.values()))
        if signature.kind == "allreduce" and signature.op in (reductions.Sum, reductions.Average):
            return None
        what = f"an allreduce of {reductions.NAMES[signature.op]}" if signature.kind == "allreduce" else signature.kind
        return f"rank {absent[0]} has called hvd.join(), and then {what} has no meaning; only Sum and Average have"

    def everyone_waits(self) -> bool:
        """Whether every rank has an entry in the table; then no rank delays the next round."""
        waiting = set(self._joined)
        for entry in self._entries.values():
            waiting.update(entry.signatures)
            if len(waiting) == self._size:
                return True
        return len(waiting) == self._size

    def stalls(self, age: float, again: bool = False) -> List[Stall]:
        """Operations that have waited for longer than `age`; each is returned once, or every time with `again`."""
        now, found = time.monotonic(), []
        for name, entry in self._entries.items():
            if now - entry.since < age or (entry.warned and not again):
                continue
            entry.warned = entry.warned or not again
            submitted = sorted(entry.signatures)
            kind = entry.signatures[submitted[0]].kind
            found.append(Stall(kind, name, submitted, self._missing(entry), now - entry.since))
        return found

    def _missing(self, entry: _Entry) -> List[int]:
        return [rank for rank in range(self._size) if rank not in entry.signatures and rank not in self._joined]

    def _missing_text(self, name: str) -> str:
        entry = self._entries.get(name)
        missing = self._missing(entry) if entry else []
        return f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))} did not submit it"
