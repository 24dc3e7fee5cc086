"""Python objects between ranks, pickled: the same for every framework."""

import pickle
from typing import Any, List, Optional, Tuple

from .. import errors
from ..objects import dump
from .exceptions import HorovodInternalError
from .process_sets import ProcessSet, check_root, global_process_set
from .runtime import rank
from .submit import submit_arrays


def broadcast_object(
    obj: Any = None, root_rank: int = 0, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """`obj` of `root_rank`, pickled, on every rank."""
    import numpy  # here: a job of torch may have no numpy and never call this

    def broadcast(array: Any, part: str) -> None:
        """Works in place."""
        check_root("broadcast_object", root_rank, process_set)
        submit_arrays("broadcast", [array], [array], name and f"{name}.{part}", process_set, root=root_rank).wait()

    here = rank() == root_rank
    data, failure = _dumped(obj, "broadcast_object") if here else (b"", None)
    length = numpy.array([-1 if failure else len(data)])
    broadcast(length, "size")
    _raise("broadcast_object", failure, root_rank if length[0] < 0 else None)
    payload = numpy.frombuffer(bytearray(data) if here else bytearray(int(length[0])), numpy.uint8)
    broadcast(payload, "data")
    return obj if here else pickle.loads(payload.tobytes())


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """The `obj` of every rank, pickled, in a list on every rank."""
    import numpy

    def allgather(array: Any, part: str) -> Any:
        return submit_arrays("allgather", [array], None, name and f"{name}.{part}", process_set).wait()[0]

    data, failure = _dumped(obj, "allgather_object")
    lengths = allgather(numpy.array([-1 if failure else len(data)]), "size").tolist()
    _raise("allgather_object", failure, process_set.ranks[lengths.index(-1)] if -1 in lengths else None)
    every = allgather(numpy.frombuffer(data, numpy.uint8), "data")
    ends = numpy.cumsum(lengths)
    return [pickle.loads(every[end - length : end]) for end, length in zip(ends, lengths)]


def _dumped(obj: Any, what: str) -> Tuple[bytes, Optional[errors.Error]]:
    try:
        return dump(obj, what), None
    except errors.InvalidArgument as cannot:
        return b"", cannot


def _raise(what: str, failure: Optional[errors.Error], bad: Optional[int]) -> None:
    """`bad`: a rank that could not pickle its object; `failure`: why, on that rank."""
    if failure:
        raise failure
    if bad is not None:
        raise HorovodInternalError(f"{what}: rank {bad} could not pickle its object; its own error says why")
