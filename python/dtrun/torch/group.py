"""The process group of the backend "dtrun", over a communicator of dtrun.

A Python subclass of ProcessGroup. torch.distributed calls these methods directly; torch's C++ (DDP, functional collectives)
calls those that ProcessGroup lets Python override. Calls return a Work; those with asyncOp=False block.
"""

from __future__ import annotations

import weakref
from datetime import timedelta

import torch
from torch.distributed import AllreduceOptions
from torch.distributed.distributed_c10d import default_pg_timeout

from .. import _library
from ..operations import BARRIER
from . import streams
from .exchange import Exchange
from .following import overtakers
from .gathering import Gathering
from .messages import Messages
from .monitored import monitored_barrier
from .reducing import Reducing
from .reductions import NUMBERS as REDUCTIONS
from .submit import explained
from .tensors import NUMBERS, plain
from .work import ENDED, Follower, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Sequence, Union

    from torch._C._distributed_c10d import Store

    from ..communicator import Communicator

    class ProcessGroup:
        """torch's base class; the signatures of its methods differ between versions."""

        def __init__(self, rank: int, size: int) -> None: ...

else:
    from torch.distributed import ProcessGroup

_CPU = torch.device("cpu")
# Options that tell whether the caller blocks (torch 2.7 and later).
_Blocking: Any = AllreduceOptions if hasattr(AllreduceOptions, "asyncOp") else None

groups: weakref.WeakSet[Group] = weakref.WeakSet()  # that the program still holds


class Group(Reducing, Gathering, Exchange, Messages, ProcessGroup):
    """A process group over `comm`, a dtrun.Communicator. `timeout`: seconds for each operation; None: `backend.timeout` of the
    config."""

    def __init__(
        self, store: Store, comm: Communicator, timeout: Optional[float] = None, ranks: Optional[List[int]] = None
    ) -> None:
        super().__init__(comm.rank, comm.size)
        self.comm = comm
        self.ranks = ranks or list(range(comm.size))  # in the world of dtrun
        self._store = store
        self._timeout_ns = 0 if timeout is None else int(timeout * 1e9)
        self._follow = Follower()
        self._coalesced: Optional[List[Work]] = None
        self._monitored = 0
        self._names = ["", ""]
        self._fast = _library.library().dtrun_allreduce
        self._handle = comm._live()
        groups.add(self)

    def allreduce(self, tensors: Any, opts: Any = None, *rest: Any, **named: Any) -> Work:
        """Every rank gets the reduction of the tensor."""
        if type(opts) is _Blocking and not opts.asyncOp and len(tensors) == 1 and not self._timeout_ns and not overtakers:
            tensor = tensors[0]  # the fast path of a blocking call; other cases take the general path
            dtype = NUMBERS.get(tensor.dtype)
            reduce = REDUCTIONS.get(opts.reduceOp.op)
            dense = tensor.layout is torch.strided and plain(tensor)  # torch 2 has no answer for sparse CSR
            if dtype and reduce and tensor.is_cpu and dense and self._coalesced is None and self._handle:
                address = tensor.data_ptr()
                status = self._fast(self._handle, address, address, tensor.numel(), dtype, reduce, None, _library.error())
                if status:
                    raise explained(self.comm._failure("allreduce", status), self.comm)
                return ENDED
        return self._allreduce(tensors, opts, *rest, **named)

    def barrier(self, opts: Any = None) -> Work:
        """Completes when every rank has called it."""
        return self._launch("barrier", opts, BARRIER, None, None, [], [])

    def monitored_barrier(self, timeout: Union[timedelta, float, None] = None, wait_all_ranks: bool = False) -> None:
        """As barrier, but blocks. After `timeout` (default: half an hour) the error names the missing ranks."""
        self._monitored += 1
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout  # torch takes both
        if seconds is None or seconds < 0:
            seconds = self._timeout_ns / 1e9 or default_pg_timeout.total_seconds()
        monitored_barrier(
            self._store, self.comm.rank, self.comm.size, f"{self.comm.name}/{self._monitored}", seconds, wait_all_ranks
        )

    # ---- torch's queries ----

    def getBackendName(self) -> str:
        return "dtrun"

    def getRank(self) -> int:
        return self.comm.rank

    def getSize(self) -> int:
        return self.comm.size

    def get_group_store(self) -> Store:
        return self._store

    def getGroupName(self) -> str:
        return self._names[0]

    def setGroupName(self, name: str) -> None:
        self._names[0] = name

    def getGroupDesc(self) -> str:
        return self._names[1]

    def setGroupDesc(self, text: str) -> None:
        self._names[1] = text

    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    def _set_group_name(self, name: str) -> None:
        self.setGroupName(name)

    def _set_group_desc(self, text: str) -> None:
        self.setGroupDesc(text)

    name = _get_backend_name = getBackendName

    @property
    def _device_types(self) -> List[torch.device]:
        return [_CPU]

    def _get_backend(self, device: Any) -> Any:
        """The backend of a device, for torch's queries of capabilities: the group itself."""
        if streams.kind_of(torch.device(device).type) is None:
            raise RuntimeError(f"the backend dtrun has no tensors of {device}, only of cpu and cuda")
        return self

    supports_coalescing = True
    supports_splitting = False  # torch's split_group wants a device; split_group() below does not
    supports_time_estimate = False

    def supports_tensor_alloc(self, device: Any) -> bool:
        return False

    def _set_sequence_number_for_group(self) -> None:
        """Does nothing: dtrun compares the calls of ranks anyway."""

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def _has_hooks(self) -> bool:
        return False

    def set_timeout(self, timeout: Optional[timedelta]) -> None:
        """Sets the timeout of later operations."""
        self._timeout_ns = self._ns(timeout)

    _set_default_timeout = set_timeout

    # ---- the group's life ----

    def split_group(
        self, ranks: Sequence[int], timeout: Optional[timedelta] = None, opts: Any = None, group_name: Optional[str] = None,
        group_desc: Optional[str] = None, device_types: Any = None,
    ) -> Optional[Group]:  # fmt: skip
        """A group of `ranks` of this group; all of them call it. Returns None on other ranks."""
        from .create import subgroup

        if self.comm.rank not in ranks:
            return None
        return subgroup(self, sorted(ranks), timeout, group_name or "", group_desc or "")

    splitGroup = split_group

    def abort(self) -> None:
        """Makes pending and later operations on this rank fail."""
        self.comm.abort("torch.distributed aborted the process group")

    def shutdown(self) -> None:
        """Ends the group, after the works with futures in use."""
        self._follow.stop()
        self._handle = None
        self.comm.free()
