"""Functions as ranks on Spark's executors: each task of a barrier stage is a host of one job. docs/functions.md."""

from .distributor import Distributor
from .launch import run

__all__ = ["Distributor", "run"]
