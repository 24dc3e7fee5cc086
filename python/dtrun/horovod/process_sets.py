"""Process sets: groups of ranks with their own operations."""

from typing import TYPE_CHECKING, Any, Iterable, List, Optional

if TYPE_CHECKING:
    from .controller import Controller


class ProcessSet:
    """`ranks` of the job. Operations take it as process_set=, once init() or add_process_set() knows it."""

    def __init__(self, ranks: Iterable[int]) -> None:
        if not isinstance(ranks, Iterable):
            raise ValueError(f"ProcessSet: {ranks!r} is not a list of ranks; MPI communicators are not supported")
        chosen = list(ranks)
        if any(not isinstance(rank, int) for rank in chosen):
            raise ValueError(f"ProcessSet: ranks are whole numbers, not {chosen}")
        self.ranks: List[int] = sorted(chosen)
        if len(set(self.ranks)) < len(self.ranks):
            raise ValueError(f"ProcessSet: a rank is named twice in {self.ranks}")
        self.process_set_id: Optional[int] = None
        self.mpi_comm = None
        self.controller: Optional["Controller"] = None  # of members only
        self._own_rank = -1

    def bind(self, number: int, own_rank: int, controller: Optional["Controller"]) -> None:
        self.process_set_id, self._own_rank, self.controller = number, own_rank, controller

    def unbind(self) -> None:
        self.process_set_id, self.controller = None, None

    def size(self) -> Optional[int]:
        """The number of its ranks; None before it is known."""
        return None if self.process_set_id is None else len(self.ranks)

    def rank(self) -> Optional[int]:
        """This rank's place in it; None before it is known, -1 for ranks outside."""
        if self.process_set_id is None:
            return None
        return self.ranks.index(self._own_rank) if self.included() else -1

    def included(self) -> Optional[bool]:
        """Whether this rank is in it; None before it is known."""
        return None if self.process_set_id is None else self._own_rank in self.ranks

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


def check_process_set(kind: str, value: Any) -> None:
    """Raises ValueError if it is no process set."""
    if not isinstance(value, ProcessSet):
        raise ValueError(
            f"{kind}: process_set is {value!r} ({type(value).__name__}); pass a ProcessSet that hvd.add_process_set() returned"
        )


def check_root(kind: str, root_rank: int, process_set: ProcessSet) -> None:
    if process_set.ranks and root_rank not in process_set.ranks:
        raise ValueError(f"{kind}: root_rank {root_rank} is not in {process_set}")


global_process_set = ProcessSet([])
