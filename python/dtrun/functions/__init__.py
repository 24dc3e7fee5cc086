"""Python functions as the ranks of a job: run(), JobFailed. docs/functions.md has examples."""

from .failure import JobFailed
from .launch import run

__all__ = ["JobFailed", "run"]
