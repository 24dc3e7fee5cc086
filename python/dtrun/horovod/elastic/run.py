"""run: a training function that continues from its last commit."""

import functools
import os
from typing import Any, Callable

from ..exceptions import HostsUpdatedInterrupt
from ..runtime import rank
from .state import State


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator. `func(state, ...)` starts with the state of rank 0: the committed one after a restart."""

    @functools.wraps(func)
    def started(state: State, *args: Any, **kwargs: Any) -> Any:
        path = state.commit_file()
        if path is not None and int(os.environ.get("DTRUN_GENERATION", "0")) > 0 and rank() == 0 and os.path.exists(path):
            state.load(path)
        synchronized = False
        while True:
            if not synchronized:
                state.sync()
            try:
                return func(state, *args, **kwargs)
            except HostsUpdatedInterrupt as interrupt:  # of the script: dtrun restarts the ranks instead
                synchronized = interrupt.skip_sync
                state.on_reset()

    return started
