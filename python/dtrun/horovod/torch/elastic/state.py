"""State that survives a restart: kept in memory by save(), and by rank 0 in a file by commit()."""

import copy
import os
from typing import Any, Callable, Dict, List, Optional

import torch

from ...runtime import rank
from ..functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .sampler import ElasticSampler


def committed() -> Optional[str]:
    """The file of the last commit: HOROVOD_STATE_FILE, else one in the run folder of the job."""
    if chosen := os.environ.get("HOROVOD_STATE_FILE"):
        return chosen
    folder = os.environ.get("DTRUN_RUN_DIR")
    return os.path.join(folder, "elastic-state.pt") if folder else None


class State:
    """What a subclass saves, restores and synchronizes. Reset callbacks run when the number of ranks may have changed."""

    def __init__(self) -> None:
        self._callbacks: List[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: List[Callable[[], None]]) -> None:
        self._callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self.reset()
        for callback in self._callbacks:
            callback()

    def commit(self) -> None:
        """save(), and rank 0 writes it to the file that a restart continues from."""
        self.save()
        path = committed()
        if rank() == 0 and path is not None:
            torch.save(self.dump(), f"{path}.new")
            os.replace(f"{path}.new", path)

    def load(self, path: str) -> None:
        """What commit() wrote."""
        self.undump(torch.load(path, weights_only=False))
        self.on_reset()

    def check_host_updates(self) -> None:
        """Nothing: dtrun restarts the ranks when hosts join or leave."""

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
        """Objects that depend on the number of ranks."""


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


class TorchState(ObjectState):
    """A model, an optimizer, samplers and plain objects, any number of each, by keyword."""

    def __init__(self, model: Any = None, optimizer: Any = None, **objects: Any) -> None:
        given = {"model": model, "optimizer": optimizer, **objects}
        self._parts = [name for name, value in given.items() if _is_part(value)]
        super().__init__(**{name: value for name, value in given.items() if name not in self._parts})
        self.__dict__.update((name, given[name]) for name in self._parts)
        self._saved_parts = self._states()

    def _states(self) -> Dict[str, Any]:
        return {name: copy.deepcopy(getattr(self, name).state_dict()) for name in self._parts}

    def save(self) -> None:
        self._saved_parts = self._states()
        super().save()

    def restore(self) -> None:
        for name, state in self._saved_parts.items():
            getattr(self, name).load_state_dict(copy.deepcopy(state))
        super().restore()

    def sync(self) -> None:
        for name in self._parts:
            part = getattr(self, name)
            if isinstance(part, torch.nn.Module):
                broadcast_parameters(part.state_dict(), root_rank=0)
            elif isinstance(part, torch.optim.Optimizer):
                broadcast_optimizer_state(part, root_rank=0)
            else:
                part.load_state_dict(broadcast_object(part.state_dict()))
        super().sync()
        self._saved_parts = self._states()

    def dump(self) -> Any:
        return {"parts": self._saved_parts, "objects": self._saved}

    def undump(self, saved: Any) -> None:
        self._saved_parts = saved["parts"]
        super().undump(saved["objects"])

    def reset(self) -> None:
        for name in self._parts:
            part = getattr(self, name)
            if isinstance(part, ElasticSampler):
                part.reset()


def _is_part(value: Any) -> bool:
    return isinstance(value, (torch.nn.Module, torch.optim.Optimizer, ElasticSampler))
