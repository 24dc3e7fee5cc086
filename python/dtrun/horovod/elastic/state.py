"""State that survives a restart: save() keeps it in memory, commit() writes it to a file on rank 0."""

import copy
import os
import pickle
from typing import Any, Callable, Dict, List, Optional

from ..objects import broadcast_object
from ..runtime import rank


class State:
    """Base of states: subclasses save, restore and synchronize. Reset callbacks run when the number of ranks may have changed."""

    FILE = "elastic-state"  # in the run folder

    def __init__(self) -> None:
        self._callbacks: List[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: List[Callable[[], None]]) -> None:
        self._callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self.reset()
        for callback in self._callbacks:
            callback()

    def commit(self) -> None:
        """Calls save(); rank 0 also writes the state to the file for restarts."""
        self.save()
        path = self.commit_file()
        if rank() == 0 and path is not None:
            self.write_commit(f"{path}.new")
            os.replace(f"{path}.new", path)

    def load(self, path: str) -> None:
        """The state that commit() wrote."""
        self.read_commit(path)
        self.on_reset()

    def commit_file(self) -> Optional[str]:
        """The file of the last commit: HOROVOD_STATE_FILE, else one in the run folder of the job."""
        if chosen := os.environ.get("HOROVOD_STATE_FILE"):
            return chosen
        folder = os.environ.get("DTRUN_RUN_DIR")
        return os.path.join(folder, self.FILE) if folder else None

    def write_commit(self, path: str) -> None:
        with open(path, "wb") as file:
            pickle.dump(self.dump(), file)

    def read_commit(self, path: str) -> None:
        with open(path, "rb") as file:
            self.undump(pickle.load(file))

    def check_host_updates(self) -> None:
        """Does nothing: dtrun restarts the ranks when hosts join or leave."""

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def dump(self) -> Any:
        raise NotImplementedError

    def undump(self, saved: Any) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        """Updates objects that depend on the number of ranks."""


class ObjectState(State):
    """Objects by keyword, which become attributes; they must be picklable."""

    def __init__(self, **objects: Any) -> None:
        super().__init__()
        self._saved: Dict[str, Any] = dict(objects)
        self.__dict__.update(objects)

    def save(self) -> None:
        self._saved = {name: copy.deepcopy(getattr(self, name)) for name in self._saved}

    def restore(self) -> None:
        self.__dict__.update(copy.deepcopy(self._saved))

    def sync(self) -> None:
        ObjectState.save(self)
        self._saved = broadcast_object(self._saved)
        ObjectState.restore(self)

    def dump(self) -> Any:
        return self._saved

    def undump(self, saved: Any) -> None:
        self._saved = saved
        self.restore()


class FrameworkState(ObjectState):
    """Plain objects by keyword, and values of a framework: subclasses read them, write them back, and share those of rank 0."""

    KEY: str  # of the values in the file

    def __init__(self, **objects: Any) -> None:
        super().__init__(**objects)
        self._values = self._read()

    def _read(self) -> Any:
        raise NotImplementedError

    def _write(self, values: Any) -> None:
        raise NotImplementedError

    def _share(self) -> None:
        raise NotImplementedError

    def save(self) -> None:
        self._values = self._read()
        super().save()

    def restore(self) -> None:
        self._write(self._values)
        super().restore()

    def sync(self) -> None:
        self._share()
        super().sync()
        self._values = self._read()

    def dump(self) -> Any:
        return {self.KEY: self._values, "objects": self._saved}

    def undump(self, saved: Any) -> None:
        self._values = saved[self.KEY]
        super().undump(saved["objects"])
