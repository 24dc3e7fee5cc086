"""The process group of the backend "dtrun": torch's calls on a communicator of dtrun.

A Python subclass of ProcessGroup: torch.distributed calls the methods here directly, torch's C++ (DDP, functional
collectives) calls those that ProcessGroup lets Python override. Calls return a Work; those with asyncOp=False block.
"""

import torch
from torch.distributed import AllreduceOptions, ProcessGroup
from torch.distributed.distributed_c10d import default_pg_timeout

from .. import _library
from ..operations import BARRIER
from .exchange import Exchange
from .gathering import Gathering
from .messages import Messages
from .monitored import monitored_barrier
from .reducing import Reducing
from .reductions import NUMBERS as REDUCTIONS
from .submit import submit
from .tensors import NUMBERS
from .work import ENDED, Follower, Work

_CPU = torch.device("cpu")


class Group(Reducing, Gathering, Exchange, Messages, ProcessGroup):
    """Ranks of torch.distributed over `comm`, a dtrun.Communicator. `timeout`, in seconds, is that of an operation; None:
    `backend.timeout` of the config."""

    def __init__(self, store, comm, timeout=None, ranks=None):
        super().__init__(comm.rank, comm.size)
        self.comm = comm
        self.ranks = ranks or list(range(comm.size))  # in the world of dtrun
        self._store = store
        self._timeout_ns = 0 if timeout is None else int(timeout * 1e9)
        self._follow = Follower()
        self._coalesced = None
        self._monitored = 0
        self._names = ["", ""]
        self._fast = _library.library().dtrun_allreduce
        self._handle = comm._live()

    def allreduce(self, tensors, opts=None, *rest, **named):
        """Every rank gets the reduction of the tensor."""
        if type(opts) is AllreduceOptions and not opts.asyncOp and len(tensors) == 1 and not self._timeout_ns:
            tensor = tensors[0]  # the short way of a blocking call; what it does not know goes the long way
            dtype = NUMBERS.get(tensor.dtype)
            reduce = REDUCTIONS.get(opts.reduceOp.op)
            if dtype and reduce and tensor.is_cpu and tensor.is_contiguous() and self._coalesced is None and self._handle:
                address = tensor.data_ptr()
                status = self._fast(self._handle, address, address, tensor.numel(), dtype, reduce, None, _library.error())
                if status:
                    raise self.comm._failure("allreduce", status)
                return ENDED
        return self._allreduce(tensors, opts, *rest, **named)

    def barrier(self, opts=None):
        """Ends when every rank has called it."""
        return self._launch("barrier", opts, BARRIER, None, None, [], [])

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """As barrier, and blocks; the failure after `timeout`, half an hour where none is given, names who did not come."""
        self._monitored += 1
        seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout  # torch takes both
        if seconds is None or seconds < 0:
            seconds = self._timeout_ns / 1e9 or default_pg_timeout.total_seconds()
        monitored_barrier(
            self._store, self.comm.rank, self.comm.size, f"{self.comm.name}/{self._monitored}", seconds, wait_all_ranks
        )

    # ---- what torch asks about a group ----

    def getBackendName(self):
        return "dtrun"

    def getRank(self):
        return self.comm.rank

    def getSize(self):
        return self.comm.size

    def get_group_store(self):
        return self._store

    def getGroupName(self):
        return self._names[0]

    def setGroupName(self, name):
        self._names[0] = name

    def getGroupDesc(self):
        return self._names[1]

    def setGroupDesc(self, text):
        self._names[1] = text

    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    def _set_group_name(self, name):
        self.setGroupName(name)

    def _set_group_desc(self, text):
        self.setGroupDesc(text)

    name = _get_backend_name = getBackendName

    @property
    def _device_types(self):
        return [_CPU]

    def _get_backend(self, device):
        """The backend of a device, which torch asks for its abilities: the group is its own."""
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"the backend dtrun has no tensors of {device}, only of cpu")
        return self

    supports_coalescing = True
    supports_splitting = False  # torch's split_group wants a device; split_group() below does not
    supports_time_estimate = False

    def supports_tensor_alloc(self, device):
        return False

    def _set_sequence_number_for_group(self):
        """dtrun compares the calls of ranks by itself."""

    def _get_sequence_number_for_group(self):
        return 0

    def _has_hooks(self):
        return False

    def set_timeout(self, timeout):
        """For later operations."""
        self._timeout_ns = self._ns(timeout)

    _set_default_timeout = set_timeout

    # ---- the group's life ----

    def split_group(self, ranks, timeout=None, opts=None, group_name=None, group_desc=None, device_types=None):
        """The group of `ranks` of this one, called by all of them; None on others."""
        from .create import subgroup

        if self.comm.rank not in ranks:
            return None
        return subgroup(self, sorted(ranks), timeout, group_name or "", group_desc or "")

    splitGroup = split_group

    def abort(self):
        """Pending and later operations fail, on this rank."""
        self.comm.abort("torch.distributed aborted the process group")

    def shutdown(self):
        """Ends the group, after the works whose futures somebody has."""
        self._follow.stop()
        self._handle = None
        self.comm.free()

    # ---- inside ----

    def _ns(self, timeout):
        seconds = timeout.total_seconds() if timeout else 0
        return int(seconds * 1e9) if seconds > 0 else self._timeout_ns

    def _launch(self, what, opts, kind, send, recv, finish, result, ordered=True, **given):
        """Starts an operation, or makes it where opts say that the caller blocks."""
        wait = opts is not None and not opts.asyncOp and self._coalesced is None
        timeout_ns = self._timeout_ns if opts is None else self._ns(opts.timeout)
        part = submit(self.comm, what, kind, send, recv, wait=wait, timeout_ns=timeout_ns, **given)
        finish = [call for call in finish if call is not None]
        if wait:
            for call in finish:
                call()
            return ENDED
        work = Work([part], result, finish, self._follow, ordered)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _join(self, works, result):
        """One Work of several."""
        if all(work is ENDED for work in works):
            return ENDED
        taken = [work.take() for work in works]
        parts, finish = [p for parts, _ in taken for p in parts], [f for _, finish in taken for f in finish]
        return Work(parts, result, finish, self._follow, all(work._ordered for work in works))

    def _start_coalescing(self, device):
        self._coalesced = []

    def _end_coalescing(self, device=None):
        """The Work of all that was started since _start_coalescing."""
        works, self._coalesced = self._coalesced, None
        return self._join(works, [tensor for work in works for tensor in work._result])
