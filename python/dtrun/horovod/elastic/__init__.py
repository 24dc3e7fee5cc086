"""hvd.elastic over dtrun's restarts.

When a rank or a host is lost, or hosts join, dtrun restarts every rank (`restart.max`, `cluster.min_hosts`), with the
ranks of the remaining hosts. run() then continues from the last commit(), which rank 0 keeps in a file.
"""

from .run import run
from .state import ObjectState, State

__all__ = ["ObjectState", "State", "run"]
