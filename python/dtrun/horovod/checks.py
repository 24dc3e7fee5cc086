"""Checks of submitted operations. An invalid signature would end the controllers' threads, which compare signatures."""

import operator
from typing import Any

from ..buffers import DTYPES
from . import reductions
from .signature import Signature


def checked(signature: Signature) -> Signature:
    """The signature with plain values only. Raises ValueError with the mistake before anything has started."""
    kind, name = signature.kind, signature.name
    if not isinstance(name, str):
        raise ValueError(f"{kind}: name is {name!r} ({type(name).__name__}); pass a str, such as name={str(name)!r}")
    what = signature.called
    for dtype, _, _ in signature.tensors:
        if dtype not in DTYPES:
            raise ValueError(f"{what}: the tensor has elements of type {dtype}, which no operation has; convert it to another")
    result = signature._replace(
        op=_op(what, signature.op),
        root=_integer(what, "root_rank", signature.root),
        prescale=_factor(what, "prescale_factor", signature.prescale),
        postscale=_factor(what, "postscale_factor", signature.postscale),
        splits=tuple(_integer(what, "an entry of splits", n) for n in signature.splits),
    )
    if any(dtype.startswith("complex") for dtype, _, _ in signature.tensors) and (
        result.op not in (reductions.Sum, reductions.Product) or (result.prescale, result.postscale) != (1.0, 1.0)
    ):
        raise ValueError(f"{what}: complex tensors have sums and products, without factors; use op=hvd.Sum, or reduce real and imaginary parts")
    return result


def _op(what: str, value: Any) -> int:
    try:
        return reductions.check(value)
    except ValueError as wrong:
        raise ValueError(f"{what}: {wrong}") from None


def _integer(what: str, argument: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{what}: {argument} is {value!r} ({type(value).__name__}); pass an int") from None


def _factor(what: str, argument: str, value: Any) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{what}: {argument} is {value!r} ({type(value).__name__}); pass a number, such as 0.5")
