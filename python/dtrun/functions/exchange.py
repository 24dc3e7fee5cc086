"""The folder that carries the function to the ranks and their results back. Both sides import this.

    call                    what to call, and where modules are found
    run                     the run directory of the job, by dtrun on its first host
    RANK.began              the last generation that this rank has begun
    GENERATION-RANK.result  what the function returned there
    GENERATION-RANK.failed  the text of its exception
"""

from __future__ import annotations

import json
import os
import pickle
from typing import Any, NamedTuple

from .. import errors

LOADED = "__dtrun_main__"  # the caller's script in a rank: under this name its `if __name__ == "__main__"` does not run


class Call(NamedTuple):
    path: list[str]  # sys.path of the caller
    main: str | None  # the script to load first
    data: bytes  # the pickle of (function, args, kwargs)
    cwd: str | None = None  # the working folder, where it is not the job's
    env: dict | None = None  # variables of this host's ranks


class Exchange:
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def write(self, name: str, data: bytes) -> None:
        """Writes the whole file or nothing, even if the writer is killed."""
        path = os.path.join(self.folder, name)
        part = f"{path}.{os.getpid()}"
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)

    def read(self, name: str) -> bytes | None:
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return file.read()

    def put_call(self, call: Call) -> None:
        self.write("call", pickle.dumps(tuple(call)))

    def call(self) -> Call | None:
        data = self.read("call")
        return data and Call(*pickle.loads(data))

    def options(self) -> list[str]:
        """Arguments for dtrun's command line: dtrun writes the path of the run here before a rank begins."""
        return ["--set", f"logs.dir_file={os.path.join(self.folder, 'run')}"]

    def verdict(self) -> dict | None:
        """verdict.json of the run; None when no rank was started."""
        run = self.read("run")
        text = run and Exchange(run.decode()).read("verdict.json")
        verdict = json.loads(text) if text else None
        return verdict if verdict and verdict["result"] != "not started" else None

    def failure(self, generation: int | None, rank: int | None) -> str | None:
        text = self.read(f"{generation}-{rank}.failed")
        return text and text.decode()

    def result(self, generation: int | None, rank: int) -> bytes | None:
        """The pickle of a rank's result in this generation."""
        return self.read(f"{generation}-{rank}.result")

    def began(self, rank: int) -> int | None:
        """The last generation that this rank has begun. Its results of earlier generations do not count."""
        generation = self.read(f"{rank}.began")
        return None if generation is None else int(generation)

    def results(self, generation: int, ranks: list[int]) -> dict[int, Any]:
        """The results by rank; ranks without a result are left out."""
        pickled = {rank: self.result(generation, rank) for rank in ranks}
        return {rank: load_result(data, rank) for rank, data in pickled.items() if data is not None}


def load_result(data: bytes, rank: int) -> Any:
    """A rank's result, unpickled."""
    try:
        return pickle.loads(data)
    except Exception as error:  # of the object's own code, too
        raise errors.InvalidArgument(
            f"what rank {rank} returned cannot be unpickled here: {type(error).__name__}: {error}; return what this process can load"
        ) from error
