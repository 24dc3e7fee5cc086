"""Objects of Python between ranks: pickled, their sizes first. The functions are methods of Communicator.

Both sides are your own program: unpickling runs what the sender put there, so nothing here is for data of strangers.
"""

import pickle

from . import errors


def dumps(value):
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def dump(value, what, dumps=dumps):
    """The pickle of `value`. Raises InvalidArgument, which names the part that cannot be pickled."""
    try:
        return dumps(value)
    except Exception as failure:
        place, part, reason = culprit(value, failure, dumps=dumps)
        raise errors.InvalidArgument(
            f"{what}: {place or 'the object'} ({type(part).__module__}.{type(part).__qualname__}) cannot be pickled: {reason}"
        ) from failure


def culprit(value, failure, place="", depth=4, dumps=dumps):
    """The innermost part of `value` that cannot be pickled: (its place, the part, why)."""
    if isinstance(value, dict):
        parts = [(f"{place}[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"{place}[{i}]", item) for i, item in enumerate(value)]
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type) and not callable(value):
        parts = [(f"{place}.{key}", item) for key, item in vars(value).items()]
    else:
        parts = []
    for name, part in parts if depth else ():
        try:
            dumps(part)
        except Exception as inner:
            return culprit(part, inner, name, depth - 1, dumps)
    return place, value, failure


def _lengths(comm, mine):
    mine = bytearray(int(mine).to_bytes(8, "little"))
    every = bytearray(8 * comm.size)
    comm.allgather(mine, every)
    return [int.from_bytes(every[8 * r : 8 * r + 8], "little") for r in range(comm.size)]


def _length(comm, length, root):
    buffer = bytearray(int(length).to_bytes(8, "little"))
    comm.broadcast(buffer, root)
    return int.from_bytes(buffer, "little")


# What a rank sends instead of a length when its object cannot be pickled: the others do not wait for it then.
_FAILED = 2**63


def _agreed(comm, data, failure, what):
    """Lengths of every rank; a rank that could not pickle its object is named on all of them."""
    lengths = _lengths(comm, _FAILED if failure else len(data))
    if failure:
        raise failure
    bad = [rank for rank, length in enumerate(lengths) if length == _FAILED]
    if bad:
        raise errors.RemoteFailure(f"{what}: rank {bad[0]} could not pickle its object; its own error says why", bad[0])
    return lengths


def _try_dump(value, what):
    try:
        return dump(value, what), None
    except errors.InvalidArgument as failure:
        return b"", failure


def allgather_object(comm, value):
    """The `value` of every rank, in a list on every rank."""
    data, failure = _try_dump(value, "allgather_object")
    lengths = _agreed(comm, data, failure, "allgather_object")
    every = bytearray(sum(lengths))
    comm.allgather(data, every, lengths)
    return _split(every, lengths)


def gather_object(comm, value, root=0):
    """The `value` of every rank, in a list on `root`; None elsewhere."""
    data, failure = _try_dump(value, "gather_object")
    lengths = _agreed(comm, data, failure, "gather_object")
    every = bytearray(sum(lengths)) if comm.rank == root else None
    comm.gather(data, every, root, lengths)
    return None if every is None else _split(every, lengths)


def broadcast_object(comm, value=None, root=0):
    """The `value` of `root`, on every rank."""
    data, failure = _try_dump(value, "broadcast_object") if comm.rank == root else (b"", None)
    length = _length(comm, _FAILED if failure else len(data), root)
    if failure:
        raise failure
    if length == _FAILED:
        raise errors.RemoteFailure(f"broadcast_object: rank {root} could not pickle its object; its own error says why", root)
    if comm.rank == root:
        comm.broadcast(data, root)
        return value
    buffer = bytearray(length)
    comm.broadcast(buffer, root)
    return pickle.loads(buffer)


def scatter_object(comm, values=None, root=0):
    """values[r] of `root`, on rank r."""
    parts, failure = [b""] * comm.size, None
    if comm.rank == root:
        values = list(values)
        if len(values) != comm.size:
            failure = errors.InvalidArgument(f"scatter_object: {len(values)} values for {comm.size} ranks of {comm.name}")
        else:
            for r, value in enumerate(values):
                parts[r], bad = _try_dump(value, f"scatter_object, values[{r}]")
                failure = failure or bad
    lengths = bytearray(b"".join((_FAILED if failure else len(part)).to_bytes(8, "little") for part in parts))
    comm.broadcast(lengths, root)
    lengths = [int.from_bytes(lengths[8 * r : 8 * r + 8], "little") for r in range(comm.size)]
    if failure:
        raise failure
    if lengths[0] == _FAILED:
        raise errors.RemoteFailure(f"scatter_object: rank {root} had no values to scatter; its own error says why", root)
    mine = bytearray(lengths[comm.rank])
    comm.scatter(b"".join(parts) if comm.rank == root else None, mine, root, lengths)
    return pickle.loads(mine)


def send_object(comm, value, peer, tag=0):
    """To `peer`, which calls recv_object."""
    data = dump(value, "send_object")
    comm.send(bytearray(len(data).to_bytes(8, "little")), peer, tag)
    comm.send(data, peer, tag)


def recv_object(comm, peer, tag=0):
    """What `peer` sends with send_object."""
    length = bytearray(8)
    comm.recv(length, peer, tag)
    data = bytearray(int.from_bytes(length, "little"))
    comm.recv(data, peer, tag)
    return pickle.loads(data)


def _split(data, lengths):
    view, values, begin = memoryview(data), [], 0
    for length in lengths:
        values.append(pickle.loads(view[begin : begin + length]))
        begin += length
    return values
