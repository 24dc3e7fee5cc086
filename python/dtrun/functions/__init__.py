"""Python functions as the ranks of a job: run(), JobFailed. docs/functions.md has examples."""

from typing import Any

from .launch import JobFailed, run

__all__ = ["JobFailed", "run"]


def __getattr__(name: str) -> Any:
    if name == "Distributor":  # of Spark's face, which is loaded at its first use
        from ..spark import Distributor

        return Distributor
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
