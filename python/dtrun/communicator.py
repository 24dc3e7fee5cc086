"""Communicator: a group of ranks, and their operations on arrays.

Arrays are torch tensors, numpy arrays, DLPack objects and bytearrays (buffers.py). Operations use them in place,
without copies. Only the number of elements and their type matter, not the shape. Both are equal on all ranks, unless
counts are given. The result goes to `recv`, or replaces the input if that is None.

Every rank of a communicator must make the same calls in the same order. With wait=True (the default) a call blocks
until its result is complete; with wait=False it returns a Work at once. `op` is one of "sum", "prod", "min", "max", "avg",
"premul_sum", "band", "bor", "bxor", "land", "lor". Ranks, roots and peers are numbers in this communicator, from 0.

On tensors of a device, such as torch's CUDA tensors, an operation starts after the work queued on `stream`, by default
torch's current stream. Later work on that stream waits for the operation; no call blocks.

Any thread may call; operations that several threads start at once have no defined order.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int32, c_void_p

from . import _library, errors, groups, objects
from .buffers import HOST, allocate, describe, like, shape_of, when_unused
from .calls import Calls
from .operations import (
    ALLGATHER, ALLGATHERV, ALLREDUCE, ALLTOALL, ALLTOALLV, ANY_SOURCE, BARRIER, BROADCAST, GATHER, GATHERV, RECV, REDUCE,
    REDUCE_SCATTER, REDUCE_SCATTERV, SCATTER, SCATTERV, SEND, Checks, current_stream, integer, integers, reduction, scaled, start,
)  # fmt: skip
from .work import Work, wait_for_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, TypeVar

    from ._library import Stream
    from .buffers import Buffer

    _Self = TypeVar("_Self", bound="Communicator")

_SIZEOF_OP = ctypes.sizeof(_library.Op)


class Communicator(Calls, Checks):
    """A group of ranks. `rank` is this rank's number in it, `size` the number of ranks."""

    def __init__(self, handle: Any, library: ctypes.CDLL) -> None:
        super().__init__(handle)
        self._library = library
        self.rank: int = library.dtrun_comm_rank(handle)
        self.size: int = library.dtrun_comm_size(handle)
        self.name: str = library.dtrun_comm_name(handle).decode()
        self._in_group: Optional[List[Any]] = None  # buffers of the open group
        self._callers: Dict[int, str] = {}  # threads that torch.distributed has called from: their names

    @property
    def backend(self) -> str:
        """The transport for host memory, such as "shm+gloo"; "self" in a world of one that dtrun did not start."""
        with self._inside:
            return str(self._library.dtrun_comm_backend(self._live()).decode())

    def __repr__(self) -> str:
        state = f"rank {self.rank} of {self.size}" if self._handle else "ended"
        return f"<dtrun.Communicator {self.name}: {state}>"

    # ---- operations of all ranks ----

    def allreduce(
        self, send: Any, recv: Any = None, op: str = "sum", *, scale: Optional[float] = None,
        wait: bool = True, stream: Optional[Stream] = None,
    ) -> Any:  # fmt: skip
        """recv[i] on every rank = reduction of send[i] over all ranks; in place without recv. Returns the result.

        `scale`: a number that multiplies this rank's elements first, with op "sum" or "premul_sum" (then the same).
        """
        a = describe(send, recv is None)
        b = a if recv is None else describe(recv)
        if recv is not None:
            self._same("allreduce", a, b, a.count)
        if wait and a.device[0] == HOST and scale is None and self._in_group is None:
            inside, error, reduce = self._inside, _library.error(), reduction(op)
            try:
                inside.append(error)
                status = self._library.dtrun_allreduce(
                    self._handle or self._live(), a.pointer, b.pointer, a.count, a.dtype, reduce, None, error
                )
            finally:
                inside.remove(error)
            if status:
                raise self._failure("allreduce", status)
            return send if recv is None else recv
        return self._start(
            "allreduce", send if recv is None else recv, a, b, wait, stream,
            kind=ALLREDUCE, count=a.count, **scaled("allreduce", op, scale),
        )  # fmt: skip

    def reduce(
        self, send: Any, recv: Any = None, op: str = "sum", root: int = 0, *, scale: Optional[float] = None,
        wait: bool = True, stream: Optional[Stream] = None,
    ) -> Any:  # fmt: skip
        """As allreduce, but only `root` gets the result. Other ranks do not use recv and get None."""
        here = self.rank == root
        a = describe(send, here and recv is None)
        b = a if recv is None or not here else describe(recv)
        if here and recv is not None:
            self._same("reduce", a, b, a.count)
        result = (send if recv is None else recv) if here else None
        reduce = scaled("reduce", op, scale)
        return self._start("reduce", result, a, b, wait, stream, kind=REDUCE, count=a.count, root=root, **reduce)

    def broadcast(self, buffer: Any, root: int = 0, *, wait: bool = True, stream: Optional[Stream] = None) -> Any:
        """buffer on every rank = buffer of `root`. Returns it."""
        a = describe(buffer, self.rank != root)
        return self._start("broadcast", buffer, None, a, wait, stream, kind=BROADCAST, count=a.count, root=root)

    def barrier(self, *, wait: bool = True) -> Any:
        """Blocks until every rank has called it."""
        return self._start("barrier", None, None, None, wait, None, kind=BARRIER)

    def allgather(
        self, send: Any, recv: Any = None, counts: Optional[Iterable[int]] = None, *,
        wait: bool = True, stream: Optional[Stream] = None,
    ) -> Any:  # fmt: skip
        """recv = send of rank 0, of rank 1, ...: size * count elements. Without recv: a new array of shape (size, *shape).

        `counts`: the number of elements of each rank, equal on all ranks; this rank sends counts[rank].
        """
        a = describe(send, False)
        if counts is not None:
            counts = self._counts("allgather", counts)
            self._elements("allgather", "send", a, counts[self.rank])
        recv, b = self._gathered("allgather", send, a, recv, counts)
        kind = ALLGATHER if counts is None else ALLGATHERV
        return self._start("allgather", recv, a, b, wait, stream, kind=kind, count=a.count, recv_counts=counts)

    def reduce_scatter(
        self, send: Any, recv: Any = None, op: str = "sum", counts: Optional[Iterable[int]] = None, *,
        scale: Optional[float] = None, wait: bool = True, stream: Optional[Stream] = None,
    ) -> Any:  # fmt: skip
        """recv of rank r = reduction of part r of send over all ranks. Without recv: a new array.

        send has size * count elements; or counts[r] in part r, with `counts` equal on all ranks.
        """
        a = describe(send, False)
        counts = counts if counts is None else self._counts("reduce_scatter", counts)
        count = self._part("reduce_scatter", a, "counts") if counts is None else counts[self.rank]
        if recv is None:
            shape = shape_of(send)
            fits = counts is None and shape and shape[0] % self.size == 0
            recv = like(send, (shape[0] // self.size, *shape[1:]) if fits else (count,))
        b = describe(recv)
        self._same("reduce_scatter", a, b, count)
        given = scaled("reduce_scatter", op, scale)
        if counts is not None:
            self._elements("reduce_scatter", "send", a, sum(counts))
        kind = REDUCE_SCATTER if counts is None else REDUCE_SCATTERV
        return self._start("reduce_scatter", recv, a, b, wait, stream, kind=kind, count=count, recv_counts=counts, **given)

    def alltoall(
        self, send: Any, recv: Any = None, send_counts: Optional[Iterable[int]] = None,
        recv_counts: Optional[Iterable[int]] = None, *, wait: bool = True, stream: Optional[Stream] = None,
    ) -> Any:  # fmt: skip
        """Part r of recv = part `rank` of send of rank r. Without recv: a new array like send.

        Parts have size / n elements each, or send_counts[r] and recv_counts[r]. send_counts[r] here must equal this rank's
        entry in recv_counts on rank r.
        """
        a = describe(send, False)
        if (send_counts is None) != (recv_counts is None):
            raise errors.InvalidArgument("alltoall: send_counts and recv_counts go together")
        if send_counts is None or recv_counts is None:
            count = self._part("alltoall", a, "send_counts and recv_counts")
            recv = like(send, shape_of(send)) if recv is None else recv
            b = describe(recv)
            self._same("alltoall", a, b, a.count)
            return self._start("alltoall", recv, a, b, wait, stream, kind=ALLTOALL, count=count)
        send_counts = self._counts("alltoall", send_counts, "send_counts")
        recv_counts = self._counts("alltoall", recv_counts, "recv_counts")
        recv = like(send, (sum(recv_counts),)) if recv is None else recv
        b = describe(recv)
        self._elements("alltoall", "send", a, sum(send_counts))
        self._same("alltoall", a, b, sum(recv_counts))
        return self._start(
            "alltoall", recv, a, b, wait, stream, kind=ALLTOALLV, send_counts=send_counts, recv_counts=recv_counts
        )

    def gather(
        self, send: Any, recv: Any = None, root: int = 0, counts: Optional[Iterable[int]] = None, *,
        wait: bool = True, stream: Optional[Stream] = None,
    ) -> Any:  # fmt: skip
        """recv on `root` = send of rank 0, of rank 1, .... Other ranks do not use recv and get None.

        `counts` is used on root: counts[r] is the number of elements that rank r sends.
        """
        a = describe(send, False)
        b = None
        given = {"kind": GATHER if counts is None else GATHERV, "count": a.count, "root": root}
        if self.rank == root:
            given["recv_counts"] = counts = counts if counts is None else self._counts("gather", counts)
            recv, b = self._gathered("gather", send, a, recv, counts)
        return self._start("gather", recv if b else None, a, b, wait, stream, **given)

    def scatter(
        self, send: Any, recv: Any, root: int = 0, counts: Optional[Iterable[int]] = None, *,
        wait: bool = True, stream: Optional[Stream] = None,
    ) -> Any:  # fmt: skip
        """recv of rank r = part r of send of `root`. Other ranks do not use send; it may be None. Returns recv.

        All ranks or none pass `counts`; root uses it: counts[r] is the number of elements for rank r.
        """
        b = describe(recv)
        a = None
        given = {"kind": SCATTER if counts is None else SCATTERV, "count": b.count, "root": root}
        if self.rank == root:
            a = describe(send, False)
            counts = counts if counts is None else self._counts("scatter", counts)
            self._same("scatter", b, a, self.size * b.count if counts is None else sum(counts), "send")
            given["send_counts"] = counts
        return self._start("scatter", recv, a, b, wait, stream, **given)

    # ---- operations of two ranks ----

    def send(self, buffer: Any, peer: int, tag: int = 0, *, wait: bool = True, stream: Optional[Stream] = None) -> Any:
        """Sends to `peer`, which must receive the same number of elements with the same tag. Messages with one peer and tag
        keep their order."""
        a = describe(buffer, False)
        return self._start("send", None, a, None, wait, stream, kind=SEND, count=a.count, peer=peer, tag=tag)

    def recv(self, buffer: Any, peer: int, tag: int = 0, *, wait: bool = True, stream: Optional[Stream] = None) -> Any:
        """Receives from `peer`. Returns buffer."""
        b = describe(buffer)
        return self._start("recv", buffer, None, b, wait, stream, kind=RECV, count=b.count, peer=peer, tag=tag)

    def recv_any(self, buffer: Any, tag: int = 0, *, wait: bool = True, stream: Optional[Stream] = None) -> Any:
        """Receives from any rank that sends with this tag. Returns the sender's rank."""
        b = describe(buffer)
        source = c_int32(-1)
        return self._start(
            "recv_any", None, None, b, wait, stream, kind=RECV, count=b.count, peer=ANY_SOURCE, tag=tag, source=source
        )

    group = groups.group

    # ---- objects ----

    allgather_object = objects.allgather_object
    broadcast_object = objects.broadcast_object
    gather_object = objects.gather_object
    scatter_object = objects.scatter_object
    send_object = objects.send_object
    recv_object = objects.recv_object

    # ---- what the backend offers beyond these calls ----

    def extension(self, id: str) -> _library.Extension:
        """The extension `id`, "vendor.name/revision", of the backend; raises NotFound if it has none.

        `table` is the address of the struct in its author's header, for a ctypes.Structure's from_address. `comm` goes
        to its functions first; None: this rank has no communicator of `backend`. Valid until this one ends.
        """
        found = _library.Extension(struct_size=ctypes.sizeof(_library.Extension))
        with self._inside:
            if status := self._library.dtrun_comm_extension(self._live(), id.encode(), byref(found), _library.error()):
                raise self._failure("extension", status, False)
        return found

    # ---- communicators ----

    def split(self, color: Optional[int], key: int = 0) -> Optional[Communicator]:
        """Makes a communicator of the ranks of equal `color`, ordered by `key` and then by rank. Every rank must call it.

        A rank with a negative color, or None, gets None.
        """
        out = c_void_p()
        color, key = -1 if color is None else integer("split", "color", color), integer("split", "key", key)
        with self._inside:
            if status := self._library.dtrun_comm_split(self._live(), color, key, byref(out), _library.error()):
                raise self._failure("split", status, False)
            return Communicator(out, self._library) if out else None

    def subset(self, ranks: Iterable[int]) -> Communicator:
        """Makes a communicator of `ranks`, where ranks[i] becomes rank i. Only these ranks call it, with the same list."""
        out = c_void_p()
        ranks = [integer("subset", "a rank", rank) for rank in integers("subset", "ranks", ranks, self.size, self.name)]
        array = (c_int32 * len(ranks))(*ranks)
        with self._inside:
            if status := self._library.dtrun_comm_subset(self._live(), array, len(ranks), byref(out), _library.error()):
                raise self._failure("subset", status, False)
            return Communicator(out, self._library)

    def free(self) -> None:
        """Ends a communicator made by split or subset. Does nothing for the world and for one that has ended.

        Waits for its running operations and the calls of other threads, at most `backend.timeout`.
        """
        if self.name == "world":
            return
        self._close()
        if self._ending:
            self._inside.wait()
            failure = wait_for_all(self)
            with self._inside:  # finalize() of another thread waits for it
                handle, self._ending = self._ending, None
                if handle:
                    self._inside.wait()  # for abort()
                    when_unused(self, lambda: self._library.dtrun_comm_free(handle))
            if failure is not None:
                raise failure

    def abort(self, reason: str = "aborted by the program") -> None:
        """Makes pending and later calls on this rank fail with Aborted. Any thread may call it."""
        with self._inside:
            handle = self._handle or self._ending or self._live()
            _library.check(self._library.dtrun_comm_abort(handle, reason.encode(), _library.error()), "abort")

    def alloc(self, size: int) -> memoryview:
        """A zeroed memoryview of `size` bytes that the transport moves fastest: numpy.frombuffer(comm.alloc(n), ...).

        Freed with its last view, even after the communicator has ended.
        """
        return allocate(self, integer("alloc", "size", size, 0, 2**63 - 1))

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.free()

    # ---- inside ----

    def _gathered(self, what: str, send: Any, a: Buffer, recv: Any, counts: Optional[List[int]]) -> Tuple[Any, Buffer]:
        """`recv`, or a new array, for the elements of all ranks."""
        if recv is None:
            recv = like(send, (self.size, *shape_of(send)) if counts is None else (sum(counts),))
        b = describe(recv)
        self._same(what, a, b, self.size * a.count if counts is None else sum(counts))
        return recv, b

    def _start(
        self, what: str, result: Any, a: Optional[Buffer], b: Optional[Buffer], wait: bool, stream: Optional[Stream], *,
        source: Optional[c_int32] = None, scale: float = 1.0, kind: int, count: int = 0, reduce: int = 0, root: int = -1,
        peer: int = -1, tag: int = 0, send_counts: Optional[List[int]] = None, recv_counts: Optional[List[int]] = None,
    ) -> Any:  # fmt: skip
        if not (type(root) is type(peer) is type(tag) is int and not (root + 2**31 | peer + 2**31 | tag) >> 32):
            root, peer, tag = integer(what, "root", root), integer(what, "peer", peer), integer(what, "tag", tag, 0, 2**32 - 1)
        buffer = a or b
        op = _library.Op(
            _SIZEOF_OP, 0, kind, buffer.dtype if buffer else 0, reduce, root, peer, tag, 0, count,
            a.pointer if a else None, b.pointer if b else None, 0,
        )  # fmt: skip
        op.scale = scale
        kept: List[Any] = [a, b]
        if buffer is None or buffer.device[0] == HOST:
            stream = None
        elif stream is None:
            stream = current_stream(buffer)
        work = None if wait or self._in_group is not None else c_void_p()
        out = None if work is None else byref(work)
        inside, error = self._inside, _library.error()
        try:
            inside.append(error)
            status = start(self, op, kept, send_counts, recv_counts, source, stream, out)
            if status:
                raise self._failure(what, status)
            if work is not None:
                return Work(work, result, kept, what, source, self)
        finally:
            inside.remove(error)
        if self._in_group is not None:
            self._in_group.append(kept)
            return None
        return result if source is None else source.value
