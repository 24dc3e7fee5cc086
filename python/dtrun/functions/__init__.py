"""Python functions as the ranks of a job: run(), Distributor, JobFailed. docs/functions.md has examples."""

from .distributor import Distributor
from .failure import JobFailed
from .launch import run

__all__ = ["Distributor", "JobFailed", "run"]
