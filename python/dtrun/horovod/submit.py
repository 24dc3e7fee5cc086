"""The common part of all framework APIs between tensors and requests: checks that this rank can make alone."""

import warnings
from typing import Any, List, Optional, Sequence, Tuple

from . import arrays, reductions
from .controller import Controller
from .layers import NUMPY
from .process_sets import ProcessSet, check_process_set, global_process_set
from .request import Request
from .runtime import job
from .signature import RAGGED, Signature


def controller_of(kind: str, process_set: ProcessSet) -> Controller:
    job()  # raises its own error without init()
    check_process_set(kind, process_set)
    if process_set.process_set_id is None:
        raise ValueError(f"{kind}: {process_set} is not known; give it to hvd.init() or hvd.add_process_set() first")
    if process_set.controller is None:
        raise ValueError(f"{kind}: this rank, {job().world.rank}, is not in {process_set}")
    return process_set.controller


def submit_arrays(
    kind: str, inputs: List[Any], outputs: Optional[List[Any]] = None, name: Optional[str] = None,
    process_set: ProcessSet = global_process_set, **aspects: Any,
) -> Request:  # fmt: skip
    """Submits an operation on numpy arrays; wait() returns its results. Makes `outputs` if they are needed and not given."""
    controller = controller_of(kind, process_set)
    name = controller.next_name(kind) if name is None else name
    signature = Signature(kind, name, tuple((array.dtype.name, array.shape, NUMPY) for array in inputs), **aspects)
    if outputs is None:
        outputs = [arrays.empty(array, array.shape) for array in inputs] if kind in ("allreduce", "broadcast") else []
    return submitted(controller, signature, inputs, outputs)


def submitted(
    controller: Controller, signature: Signature, inputs: List[Any], outputs: List[Any], ready: Any = None
) -> Request:
    """The request of an operation on tensors of any framework, once it is submitted."""
    if signature.kind in (*RAGGED, "reducescatter") and any(not shape for _, shape, _ in signature.tensors):
        raise ValueError(f"{signature.called}: a tensor without dimensions has no rows; give it a first dimension of 1")
    if signature.op == reductions.Adasum:
        check_adasum(signature, len(controller.ranks))
    return controller.submit(Request(signature, inputs, outputs, ready))


def scatter_factor(op: int, prescale: float, postscale: float, process_set: ProcessSet) -> float:
    """The factor for the gradient of a reducescatter."""
    return prescale * postscale * (process_set.size() or 1 if op == reductions.Sum else 1)


def reduction_of(op: Optional[int], average: Optional[bool]) -> int:
    """The reduction of the parameters `op` and, in older scripts, `average`."""
    if average is None:
        return reductions.Average if op is None else reductions.check(op)
    if op is not None:
        raise ValueError("op and average say the same; give op only")
    warnings.warn("average= is deprecated; use op=hvd.Average or op=hvd.Sum", DeprecationWarning, stacklevel=3)
    return reductions.Average if average else reductions.Sum


def check_adasum(signature: Signature, size: int) -> None:
    """Raises an error if `size` ranks cannot combine these tensors by Adasum."""
    if signature.kind != "allreduce":
        raise NotImplementedError(f"{signature.called}: hvd.Adasum is for allreduce only; use hvd.Average")
    if size & (size - 1):
        raise NotImplementedError(
            f"{signature.called}: hvd.Adasum of {size} ranks; it needs a power of two, such as 2, 4 or 8: start as many, or use "
            "hvd.Average"
        )
    whole = [dtype for dtype, _, _ in signature.tensors if "float" not in dtype]
    if whole:
        raise ValueError(f"{signature.called}: hvd.Adasum of {whole[0]}; it is for floating-point tensors, use hvd.Sum")


def rows_for_each(splits: Optional[Sequence[int]], rows: int, size: int) -> Tuple[int, ...]:
    """The number of `rows` that an alltoall sends to each of `size` ranks."""
    if splits is None:
        if rows % size:
            raise ValueError(f"alltoall: {rows} rows, which {size} ranks do not divide; give splits")
        return (rows // size,) * size
    chosen = tuple(int(n) for n in splits)
    if len(chosen) != size or min(chosen) < 0 or sum(chosen) > rows:
        raise ValueError(f"alltoall: splits {list(chosen)} for {size} ranks and {rows} rows; give each rank its part")
    return chosen


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Blocks until every rank of the process set has called it."""
    controller = controller_of("barrier", process_set)
    controller.submit(Request(Signature("barrier", controller.next_name("barrier")), [], [])).wait()


def join() -> int:
    """Declares that this rank has no more data. Until every rank has called it, it counts as zeros in sums and averages.

    Returns the rank that called it last.
    """
    return int(controller_of("join", global_process_set).submit(Request(Signature("join", "join"), [], [])).wait())
