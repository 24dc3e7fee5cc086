"""rank.py FOLDER: the program of a rank: calls the function in FOLDER (exchange.py) and writes its result there."""

from __future__ import annotations

import functools
import os
import pickle
import runpy
import sys
import traceback
import types
from typing import Callable

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main(folder: str) -> None:
    # This file was started by its path: remove its folder, so that modules beside it are not found by bare names.
    sys.path[0] = PACKAGE
    from dtrun.functions.exchange import Exchange

    exchange = Exchange(folder)
    call = exchange.call()
    if call is None:
        sys.exit(
            f"dtrun.run: {folder}/call is not on this host; ranks on several hosts find the function in the working folder, "
            "which has to be shared by all hosts"
        )
    number, generation = os.environ.get("DTRUN_RANK"), os.environ.get("DTRUN_GENERATION", "0")
    if number is None:
        sys.exit("dtrun.run: this process is not one rank; use the launcher per-process (launcher.name) to run functions")
    exchange.write(f"{number}.began", generation.encode())
    sys.path[:] = call.path
    os.environ.update(call.env or {})
    if call.cwd:
        os.chdir(call.cwd)
    leave = functools.partial(exchange.write, f"{generation}-{number}.result")
    try:
        leave(returned(call, number, leave))
    except Exception as failure:
        trace = failure.__traceback__
        for _ in range(2):  # without this file's own frames
            trace = trace.tb_next if trace and trace.tb_next else trace
        text = "".join(traceback.format_exception(type(failure), failure, trace))
        exchange.write(f"{generation}-{number}.failed", text.encode(errors="replace"))
        raise


def returned(call: tuple, number: str, leave: Callable[[bytes], None]) -> bytes:
    if call.main:
        as_main(call.main)
    from dtrun import objects
    from dtrun.functions import pickles

    fn, args, kwargs = pickle.loads(call.data)
    if getattr(fn, "may_exit", False):
        leave(pickles.dumps(None))
    result = fn(*args, **kwargs)
    return objects.dump(result, f"dtrun.run: the result of rank {number}", pickles.dumps)


def as_main(file: str) -> None:
    """Loads the caller's script without its `if __name__ == "__main__"` part, so that pickle finds its definitions."""
    from dtrun.functions.exchange import LOADED

    module = types.ModuleType(LOADED)
    module.__dict__.update(runpy.run_path(file, run_name=LOADED))
    sys.modules["__main__"] = sys.modules[LOADED] = module


main(sys.argv[1])
