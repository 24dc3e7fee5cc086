"""Reductions under Horovod's names and numbers."""

import operator

Average, Sum, Adasum, Min, Max, Product = range(6)

NAMES = {Average: "Average", Sum: "Sum", Adasum: "Adasum", Min: "Min", Max: "Max", Product: "Product"}


def check(op: int) -> int:
    """`op`, if it is a valid number."""
    if not hasattr(op, "__index__") or operator.index(op) not in NAMES:
        raise ValueError(f"op {op!r} is none of hvd.{', hvd.'.join(NAMES.values())}")
    return operator.index(op)
