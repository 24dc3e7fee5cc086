"""init, shutdown, the numbers of this rank, and the process sets."""

import atexit
import os
import sys
import threading
from typing import Dict, Iterable, List, Optional, Union

import dtrun

from . import settings as environment
from .controller import Agreed, Controller
from .execute import execute
from .process_sets import ProcessSet, check_process_set, global_process_set
from .request import Request
from .signature import Signature
from .timeline import timeline


class _Job:
    """The state from init() to shutdown()."""

    def __init__(self) -> None:
        self.world = dtrun.world() if dtrun.is_initialized() else dtrun.init()
        self.settings = environment.read()
        node = int(os.environ.get("DTRUN_NODE_RANK", "0"))
        self.places = self.world.allgather_object((node, dtrun.local_rank()))
        self.node, self.local_rank = self.places[self.world.rank]
        self.sets: Dict[int, ProcessSet] = {}
        self.next_set = 0
        self.making = threading.Lock()  # communicators are made and freed by one thread at a time

    def add(self, process_set: ProcessSet) -> None:
        """Every rank calls it, in the same order."""
        number, self.next_set = self.next_set, self.next_set + 1
        controller = None
        if self.world.rank in process_set.ranks:
            with self.making:
                comm = self.world.subset(process_set.ranks)
            controller = Controller(comm, process_set.ranks, self.settings, self._run)
        process_set.bind(number, self.world.rank, controller)
        self.sets[number] = process_set

    def remove(self, process_set: ProcessSet) -> None:
        controller, number = process_set.controller, process_set.process_set_id
        assert number is not None
        del self.sets[number]
        process_set.unbind()
        if controller is not None:
            controller.stop()
            with self.making:
                controller.comm.free()

    def _run(self, controller: Controller, agreed: List[Agreed]) -> None:
        """Adds and removes process sets, between operations of all ranks."""
        begin = 0
        for at, (decision, request) in enumerate(agreed):
            kind = decision.signature.kind
            if not kind.endswith("_process_set"):
                continue
            execute(controller, agreed[begin:at])
            begin = at + 1
            assert request is not None  # a rank that has joined waits for the others
            chosen = request.inputs[0]
            if kind == "add_process_set":
                self.add(chosen)
            else:
                self.remove(chosen)
            request.end(chosen)
        execute(controller, agreed[begin:])


_job: Optional[_Job] = None


def job() -> _Job:
    if _job is None:
        raise ValueError("hvd.init() has not been called, or hvd.shutdown() has ended it; call hvd.init() first")
    return _job


def init(comm: Optional[List[int]] = None, process_sets: Union[None, str, Iterable[ProcessSet]] = None) -> None:
    """Joins the job; every rank calls it, with the same process sets. Once: later calls change nothing."""
    global _job
    if _job is not None:
        return
    refuse_horovod_itself()
    new = _Job()
    if comm and list(comm) != list(range(new.world.size)):
        raise NotImplementedError(f"hvd.init(comm={comm!r}): dtrun starts with all ranks; use process_sets for some of them")
    global_process_set.ranks = list(range(new.world.size))
    new.add(global_process_set)
    chosen: List[ProcessSet] = [] if process_sets is None or isinstance(process_sets, str) else list(process_sets)
    for process_set in chosen:
        _check(new, process_set)
        new.add(process_set)
    _job = new
    if new.settings.timeline:
        start_timeline(new.settings.timeline, new.settings.timeline_cycles)
    atexit.register(_leave)


def refuse_horovod_itself() -> None:
    """Rejects a process that has loaded Horovod too: both would control this rank's operations."""
    other = sys.modules.get("horovod.common.basics")  # which only Horovod itself has
    if other is not None:
        raise ImportError(
            f"dtrun: Horovod itself is loaded in this process, from {getattr(other, '__file__', 'an unknown place')}; import "
            "either horovod.torch or dtrun.horovod.torch, or start the script with `python -m dtrun.horovod`"
        )


def shutdown() -> None:
    """Ends hvd. Operations that other ranks still wait for fail there: call it on all ranks, after the last operation.

    The process stays a rank of its job until it exits, so that init() may follow.
    """
    global _job
    if _job is None:
        return
    old, _job = _job, None
    atexit.unregister(_leave)
    for process_set in reversed(list(old.sets.values())):
        old.remove(process_set)
    timeline.stop()


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Rank 0 begins to write its timeline to `file_path`."""
    if job().world.rank == 0:
        timeline.start(file_path, mark_cycles)


def stop_timeline() -> None:
    """Completes the file; after init()."""
    if job().world.rank == 0:
        timeline.stop()


def _leave() -> None:
    if getattr(sys, "last_value", None) is None:  # else dtrun names the rank that ended by an exception
        shutdown()


def is_initialized() -> bool:
    return _job is not None


def rank() -> int:
    return job().world.rank


def size() -> int:
    return job().world.size


def local_rank() -> int:
    return int(job().local_rank)


def local_size() -> int:
    """Ranks on this host."""
    return sum(node == job().node for node, _ in job().places)


def cross_rank() -> int:
    """This host's number among the hosts that have this local rank."""
    return sum(place == (node, job().local_rank) for node in range(job().node) for place in job().places)


def cross_size() -> int:
    """The number of hosts that have this local rank."""
    return sum(local == job().local_rank for _, local in job().places)


def is_homogeneous() -> bool:
    """Whether every host has the same number of ranks."""
    nodes = [node for node, _ in job().places]
    return len({nodes.count(node) for node in set(nodes)}) == 1


def _check(of: _Job, process_set: ProcessSet) -> None:
    outside = [rank for rank in process_set.ranks if not 0 <= rank < of.world.size]
    if outside or not process_set.ranks:
        what = f"rank {outside[0]}" if outside else "no ranks"
        raise ValueError(f"{process_set} has {what}; ranks go from 0 to {of.world.size - 1}")
    if any(other.ranks == process_set.ranks for other in of.sets.values()):
        raise ValueError(f"{process_set} is a duplicate: there is a process set of these ranks; use that one")


def add_process_set(process_set: Union[ProcessSet, Iterable[int]]) -> ProcessSet:
    """Registers it. Every rank of the job must call it, members or not. Returns it."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    _check(job(), process_set)
    return _change("add_process_set", process_set)


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends it. Every rank of the job must call this. False if it is unknown or has all ranks."""
    check_process_set("remove_process_set", process_set)
    if process_set.process_set_id in (None, 0):
        return False
    _change("remove_process_set", process_set)
    return True


def _change(kind: str, process_set: ProcessSet) -> ProcessSet:
    controller = global_process_set.controller
    assert controller is not None
    signature = Signature(kind, controller.next_name(kind), splits=tuple(process_set.ranks))
    made: ProcessSet = controller.submit(Request(signature, [process_set], [])).wait()
    return made
