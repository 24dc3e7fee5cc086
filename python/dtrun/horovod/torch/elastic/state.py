"""TorchState: a model, an optimizer and samplers that survive a restart."""

import copy
from typing import Any, Dict

import torch

from ...elastic.state import FrameworkState
from ...objects import broadcast_object
from ..functions import broadcast_optimizer_state, broadcast_parameters
from .sampler import ElasticSampler


class TorchState(FrameworkState):
    """A model, an optimizer, samplers and plain objects, any number of each, by keyword."""

    FILE, KEY = "elastic-state.pt", "parts"

    def __init__(self, model: Any = None, optimizer: Any = None, **objects: Any) -> None:
        given = {"model": model, "optimizer": optimizer, **objects}
        self._parts = [name for name, value in given.items() if _is_part(value)]
        self.__dict__.update((name, given[name]) for name in self._parts)
        super().__init__(**{name: value for name, value in given.items() if name not in self._parts})

    def _read(self) -> Dict[str, Any]:
        return {name: copy.deepcopy(getattr(self, name).state_dict()) for name in self._parts}

    def _write(self, values: Dict[str, Any]) -> None:
        for name, state in values.items():
            getattr(self, name).load_state_dict(copy.deepcopy(state))

    def _share(self) -> None:
        for name in self._parts:
            part = getattr(self, name)
            if isinstance(part, torch.nn.Module):
                broadcast_parameters(part.state_dict(), root_rank=0)
            elif isinstance(part, torch.optim.Optimizer):
                broadcast_optimizer_state(part, root_rank=0)
            else:
                part.load_state_dict(broadcast_object(part.state_dict()))

    def write_commit(self, path: str) -> None:
        torch.save(self.dump(), path)

    def read_commit(self, path: str) -> None:
        self.undump(torch.load(path, weights_only=False))

    def reset(self) -> None:
        for name in self._parts:
            part = getattr(self, name)
            if isinstance(part, ElasticSampler):
                part.reset()


def _is_part(value: Any) -> bool:
    return isinstance(value, (torch.nn.Module, torch.optim.Optimizer, ElasticSampler))
