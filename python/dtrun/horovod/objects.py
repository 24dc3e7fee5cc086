"""Python objects between ranks, pickled: the same for every framework."""

import pickle
from typing import Any, List, Optional

from .. import errors
from ..objects import dump
from .exceptions import HorovodInternalError
from .process_sets import ProcessSet, global_process_set
from .runtime import rank
from .submit import submit_arrays


def broadcast_object(
    obj: Any = None, root_rank: int = 0, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """`obj` of `root_rank`, pickled, on every rank."""
    import numpy  # here: a job of torch may have no numpy and never call this

    here, data, failure = rank() == root_rank, b"", None
    if here:
        try:
            data = dump(obj, "broadcast_object")
        except errors.InvalidArgument as cannot:
            failure = cannot
    length = numpy.array([-1 if failure else len(data)])
    _broadcast(length, root_rank, name and f"{name}.size", process_set)
    if failure:
        raise failure
    if length[0] < 0:
        raise HorovodInternalError(f"broadcast_object: rank {root_rank} could not pickle its object; its own error says why")
    payload = numpy.frombuffer(bytearray(data) if here else bytearray(int(length[0])), numpy.uint8)
    _broadcast(payload, root_rank, name and f"{name}.data", process_set)
    return obj if here else pickle.loads(payload.tobytes())


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """The `obj` of every rank, pickled, in a list on every rank."""
    import numpy

    data, failure = b"", None
    try:
        data = dump(obj, "allgather_object")
    except errors.InvalidArgument as cannot:
        failure = cannot
    lengths = _allgather(numpy.array([-1 if failure else len(data)]), name and f"{name}.size", process_set).tolist()
    if failure:
        raise failure
    if -1 in lengths:
        bad = process_set.ranks[lengths.index(-1)]
        raise HorovodInternalError(f"allgather_object: rank {bad} could not pickle its object; its own error says why")
    every = _allgather(numpy.frombuffer(data, numpy.uint8), name and f"{name}.data", process_set)
    ends = numpy.cumsum(lengths)
    return [pickle.loads(every[end - length : end]) for end, length in zip(ends, lengths)]


def _broadcast(array: Any, root: int, name: Optional[str], process_set: ProcessSet) -> None:
    """In place."""
    if process_set.ranks and root not in process_set.ranks:
        raise ValueError(f"broadcast_object: root_rank {root} is not in {process_set}")
    submit_arrays("broadcast", [array], [array], name, process_set, root=root).wait()


def _allgather(array: Any, name: Optional[str], process_set: ProcessSet) -> Any:
    return submit_arrays("allgather", [array], None, name, process_set).wait()[0]
