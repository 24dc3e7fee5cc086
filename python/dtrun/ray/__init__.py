"""Functions as ranks on a Ray cluster: each bundle of a placement group is a host of one job. docs/functions.md."""

from .launch import run

__all__ = ["run"]
