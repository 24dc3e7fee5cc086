"""Python objects between ranks: sizes first, then pickles. The functions are methods of Communicator.

Unpickling runs code of the sender, so use these only between ranks of your own program.
"""

from __future__ import annotations

from . import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Sequence, Set, Tuple

    from .communicator import Communicator

    _Culprit = Tuple[str, Any, Exception]

_DEEPEST = 40  # levels after which parts that are nested too deeply are not followed


def dumps(value: Any) -> bytes:
    import pickle  # at its first use: `import dtrun` takes milliseconds

    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def dump(value: Any, what: str, dumps: Callable[[Any], bytes] = dumps) -> bytes:
    """The pickle of `value` by `dumps`. Raises InvalidArgument, which names the part that cannot be pickled."""
    try:
        return dumps(value)
    except Exception as failure:
        try:
            place, part, reason = culprit(value, failure, dumps=dumps)
        except Exception:  # the search fails as pickling does; other ranks wait for the length
            place, part, reason = "", value, failure
        kind = f"{type(part).__module__}.{type(part).__qualname__}"
        raise errors.InvalidArgument(
            f"{what}: {place or 'the object'} ({kind}) cannot be pickled: {reason_of(reason)}"
        ) from failure


def reason_of(failure: Exception) -> str:
    """The text for an error of pickle."""
    if _too_deep(failure):
        return f"it is nested too deeply ({failure}); pass a flatter one, or raise sys.setrecursionlimit"
    return str(failure) or type(failure).__name__


def _too_deep(failure: Exception) -> bool:
    return isinstance(failure, RecursionError) or isinstance(failure.__cause__, RecursionError)  # cloudpickle has its own


def load(data: Any, what: str, sender: int) -> Any:
    import pickle

    try:
        return pickle.loads(data)
    except (Exception, SystemExit) as failure:  # what is unpickled may call sys.exit
        raise errors.InvalidArgument(
            f"{what}: the object of rank {sender} cannot be unpickled here: {type(failure).__name__}: {failure}; every rank "
            "needs the modules and classes of the sender"
        ) from failure


def culprit(
    value: Any, failure: Exception, place: str = "", dumps: Callable[[Any], bytes] = dumps
) -> _Culprit:
    """The innermost part of `value` that cannot be pickled: (its place, the part, why).

    If the nesting is too deep, the part where it begins.
    """
    path = [(place, value, failure)]
    seen = {id(value)}
    while len(path) < _DEEPEST or not _too_deep(path[-1][2]):
        found = _failing_part(*path[-1][:2], seen, dumps)
        if found is None:
            return path[-1]
        path.append(found)
        seen.add(id(found[1]))
    kinds = {type(part) for _, part, _ in path[-_DEEPEST // 2 :]}
    while len(path) > 1 and type(path[-2][1]) in kinds:
        path.pop()
    return path[-1]


def _failing_part(place: str, value: Any, above: Set[int], dumps: Callable[[Any], bytes]) -> Optional[_Culprit]:
    for name, part in _parts(value, place):
        if id(part) in above:
            continue  # a cycle
        try:
            dumps(part)
        except Exception as failure:
            return name, part, failure
    return None


def _parts(value: Any, place: str) -> List[Tuple[str, Any]]:
    if isinstance(value, dict):
        keys = [(f"{place} key {key!r}".lstrip(), key) for key in value]
        return keys + [(f"{place}[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"{place}[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [(f"{place} element {item!r}".lstrip(), item) for item in value]
    if isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type) and not callable(value):
        return [(f"{place}.{key}", item) for key, item in vars(value).items()]
    return []


# Sent instead of a length if the object cannot be pickled, so that the other ranks do not wait.
_FAILED = 2**63


def _packed(lengths: Sequence[int]) -> bytearray:
    return bytearray(b"".join(length.to_bytes(8, "little") for length in lengths))


def _unpacked(data: bytearray) -> List[int]:
    return [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]


def _alone(comm: Communicator, what: str) -> None:
    if comm._in_group is not None:
        raise errors.FailedPrecondition(f"{what}: objects do not go in a group, since they take two operations; call it outside")


def _try_dump(value: Any, what: str) -> Tuple[bytes, int, Optional[errors.Error]]:
    """The pickle, the length to send, and the failure."""
    try:
        data = dump(value, what)
        return data, len(data), None
    except errors.InvalidArgument as failure:
        return b"", _FAILED, failure


def _check(length: int, what: str, rank: int, failure: Optional[errors.Error], lacked: str = "could not pickle its object") -> None:
    """Raises this rank's failure, or the error for one of `rank`."""
    if failure:
        raise failure
    if length == _FAILED:
        raise errors.RemoteFailure(f"{what}: rank {rank} {lacked}; its own error says why", rank)


def _agreed(comm: Communicator, value: Any, what: str) -> Tuple[bytes, List[int]]:
    """The pickle, and the lengths of all ranks. If a rank could not pickle its object, all ranks raise an error that names it."""
    _alone(comm, what)
    data, length, failure = _try_dump(value, what)
    every = bytearray(8 * comm.size)
    comm.allgather(_packed([length]), every)
    lengths = _unpacked(every)
    bad = lengths.index(_FAILED) if _FAILED in lengths else 0
    _check(lengths[bad], what, bad, failure)
    return data, lengths


def allgather_object(comm: Communicator, value: Any) -> List[Any]:
    """The `value` of every rank, in a list on every rank."""
    data, lengths = _agreed(comm, value, "allgather_object")
    every = bytearray(sum(lengths))
    comm.allgather(data, every, lengths)
    return _split(every, lengths, "allgather_object")


def gather_object(comm: Communicator, value: Any, root: int = 0) -> Optional[List[Any]]:
    """The `value` of every rank, in a list on `root`; None elsewhere."""
    data, lengths = _agreed(comm, value, "gather_object")
    every = bytearray(sum(lengths)) if comm.rank == root else None
    comm.gather(data, every, root, lengths)
    return None if every is None else _split(every, lengths, "gather_object")


def broadcast_object(comm: Communicator, value: Any = None, root: int = 0) -> Any:
    """The `value` of `root`, on every rank; other ranks' `value` is not used."""
    _alone(comm, "broadcast_object")
    data, length, failure = _try_dump(value, "broadcast_object") if comm.rank == root else (b"", 0, None)
    header = _packed([length])
    comm.broadcast(header, root)
    (length,) = _unpacked(header)
    _check(length, "broadcast_object", root, failure)
    if comm.rank == root:
        comm.broadcast(data, root)
        return value
    buffer = bytearray(length)
    comm.broadcast(buffer, root)
    return load(buffer, "broadcast_object", root)


def scatter_object(comm: Communicator, values: Optional[Sequence[Any]] = None, root: int = 0) -> Any:
    """values[r] of `root`, on rank r."""
    _alone(comm, "scatter_object")
    parts, lengths = [b""] * comm.size, [0] * comm.size
    failure: Optional[errors.Error] = None
    if comm.rank == root:
        if values is None or len(values) != comm.size:
            given = "no values" if values is None else f"{len(values)} values"
            failure = errors.InvalidArgument(f"scatter_object: {given} for {comm.size} ranks of {comm.name}; one for each is needed")
        else:
            for r, value in enumerate(values):
                parts[r], lengths[r], bad = _try_dump(value, f"scatter_object, values[{r}]")
                failure = failure or bad
    header = _packed([_FAILED] * comm.size if failure else lengths)
    comm.broadcast(header, root)
    lengths = _unpacked(header)
    _check(lengths[0], "scatter_object", root, failure, "had no values to scatter")
    mine = bytearray(lengths[comm.rank])
    comm.scatter(b"".join(parts) if comm.rank == root else None, mine, root, lengths)
    return load(mine, "scatter_object", root)


def send_object(comm: Communicator, value: Any, peer: int, tag: int = 0) -> None:
    """Sends to `peer`, which calls recv_object. Blocks at most until the peer has received it, or an error instead."""
    _alone(comm, "send_object")
    data, length, failure = _try_dump(value, "send_object")
    comm.send(_packed([length]), peer, tag)
    _check(length, "send_object", comm.rank, failure)
    comm.send(data, peer, tag)


def recv_object(comm: Communicator, peer: int, tag: int = 0) -> Any:
    """Receives an object that `peer` sends with send_object."""
    _alone(comm, "recv_object")
    header = bytearray(8)
    comm.recv(header, peer, tag)
    (length,) = _unpacked(header)
    _check(length, "recv_object", peer, None)
    data = bytearray(length)
    comm.recv(data, peer, tag)
    return load(data, "recv_object", peer)


def _split(data: bytearray, lengths: List[int], what: str) -> List[Any]:
    view, values, begin = memoryview(data), [], 0
    for rank, length in enumerate(lengths):
        values.append(load(view[begin : begin + length], what, rank))
        begin += length
    return values
