"""Signature: a rank's description of a submitted operation. Ranks compare signatures before the operation starts."""

from typing import Dict, List, NamedTuple, Optional, Tuple

from .printable import printable
from . import reductions

Tensor = Tuple[str, Tuple[int, ...], str]  # element type, shape, kind of device


def called(kind: str, name: str) -> str:
    """The name of an operation in messages, also for an invalid name."""
    return f"{kind} '{printable(str(name))}'"


class Signature(NamedTuple):
    """One submitted operation. Plain values only: it travels between ranks and is a key of their tables."""

    kind: str  # "allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "barrier", "join", "add_process_set", ...
    name: str
    tensors: Tuple[Tensor, ...] = ()
    op: int = reductions.Sum
    root: int = -1  # a rank of the job
    prescale: float = 1.0
    postscale: float = 1.0
    splits: Tuple[int, ...] = ()  # rows of an alltoall for each rank; ranks of a process set

    @property
    def called(self) -> str:
        """Its name in messages."""
        return called(self.kind, self.name)

    @property
    def repeats(self) -> bool:
        """Whether it gets a number in the table; names that were made for one call do not repeat."""
        return ".noname." not in self.name


# Kinds in which tensors may differ in their first dimension.
RAGGED = ("allgather", "alltoall")


def mismatch(signatures: Dict[int, Signature]) -> Optional[str]:
    """The difference between the signatures of one name, by rank; None if they agree."""
    for what, describe in _ASPECTS:
        said: Dict[str, List[int]] = {}
        for rank, signature in signatures.items():
            said.setdefault(describe(signature), []).append(rank)
        if len(said) > 1:
            values = ", ".join(f"{_ranks(ranks)} {value}" for value, ranks in said.items())
            return f"{what} {values}; submit the same on every rank, or give each operation a name of its own"
    return None


def _ranks(ranks: List[int]) -> str:
    ranks = sorted(ranks)
    return f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} have"


def _shapes(signature: Signature) -> str:
    shapes = [shape for _, shape, _ in signature.tensors]
    if signature.kind in RAGGED:
        return ", ".join("(*" + "".join(f", {extent}" for extent in shape[1:]) + ")" for shape in shapes)
    return ", ".join(map(str, shapes))


_ASPECTS = (
    ("the operations differ:", lambda s: s.kind),
    ("the numbers of tensors differ:", lambda s: str(len(s.tensors))),
    ("the element types differ:", lambda s: ", ".join(dtype for dtype, _, _ in s.tensors)),
    ("the shapes differ:", _shapes),
    ("the devices differ:", lambda s: ", ".join(device for _, _, device in s.tensors)),
    ("the reductions differ:", lambda s: reductions.NAMES[s.op]),
    ("the root ranks differ:", lambda s: str(s.root)),
    ("the scale factors differ:", lambda s: f"{s.prescale:g} before, {s.postscale:g} after"),
    ("the process sets differ:", lambda s: str(s.splits) if s.kind.endswith("_process_set") else ""),
)
