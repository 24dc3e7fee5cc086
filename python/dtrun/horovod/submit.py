"""The common part of all framework APIs between tensors and requests: checks that this rank can make alone."""

import warnings
from typing import Any, List, Optional, Sequence, Tuple

from . import arrays, reductions
from .controller import Controller
from .layers import NUMPY
from .process_sets import ProcessSet, check_process_set, global_process_set
from .request import Request
from .runtime import job
from .signature import RAGGED, Signature, called


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
    for array in inputs:
        if array.ndim == 0 and (kind in RAGGED or kind == "reducescatter"):
            raise ValueError(f"{called(kind, name)}: a tensor without dimensions has no rows; give it a first dimension of 1")
    described = tuple((array.dtype.name, array.shape, NUMPY) for array in inputs)
    signature = Signature(kind, name, described, **aspects)
    if signature.op == reductions.Adasum:
        check_adasum(kind, name, [dtype for dtype, _, _ in described], len(process_set.ranks))
    if outputs is None:
        outputs = [arrays.empty(array, array.shape) for array in inputs] if kind in ("allreduce", "broadcast") else []
    return controller.submit(Request(signature, inputs, outputs))


def reduction_of(op: Optional[int], average: Optional[bool]) -> int:
    """The reduction of the parameters `op` and, in older scripts, `average`."""
    if average is None:
        return reductions.Average if op is None else reductions.check(op)
    if op is not None:
        raise ValueError("op and average say the same; give op only")
    warnings.warn("average= is deprecated; use op=hvd.Average or op=hvd.Sum", DeprecationWarning, stacklevel=3)
    return reductions.Average if average else reductions.Sum


def check_adasum(kind: str, name: str, dtypes: Sequence[str], size: int) -> None:
    """Raises an error if these ranks cannot combine tensors of these types by Adasum."""
    if kind != "allreduce":
        raise NotImplementedError(f"{called(kind, name)}: hvd.Adasum is for allreduce only; use hvd.Average")
    if size & (size - 1):
        raise NotImplementedError(
            f"{called(kind, name)}: hvd.Adasum of {size} ranks; it needs a power of two, such as 2, 4 or 8: start as many, or use "
            "hvd.Average"
        )
    whole = [dtype for dtype in dtypes if "float" not in dtype]
    if whole:
        raise ValueError(f"{called(kind, name)}: hvd.Adasum of {whole[0]}; it is for floating-point tensors, use hvd.Sum")


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
