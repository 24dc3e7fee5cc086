"""DistributedOptimizer with op=hvd.Adasum: each rank takes its own step, and the steps are combined."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional

import torch

from ..reductions import Adasum
from . import parameters
from .operations import allreduce_async_, synchronize

if TYPE_CHECKING:
    Optimizer = torch.optim.Optimizer
else:
    Optimizer = object  # the class of an optimizer comes after these


class DistributedSteps(Optimizer):
    """The part that it adds to the class of the given optimizer. Gradients are not exchanged."""

    def _distribute(self, options: Dict[str, Any]) -> None:
        self._hvd = options
        self._parameter_names = parameters.by_name(self, options["named_parameters"])

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:  # type: ignore[override,unused-ignore]
        trained = [p for group in self.param_groups for p in group["params"] if p.requires_grad]
        before = [p.detach().clone() for p in trained]
        loss = super().step(closure)
        if not self._hvd["process_set"].included():
            return loss
        sent = []
        for parameter, start in zip(trained, before):
            tensor, ctx = self._hvd["compression"].compress(parameter.detach() - start)
            name = f"step.{self._parameter_names[parameter]}"
            sent.append((allreduce_async_(tensor, name=name, op=Adasum, process_set=self._hvd["process_set"]), ctx))
        with torch.no_grad():
            for parameter, start, (handle, ctx) in zip(trained, before, sent):
                parameter.copy_(start + self._hvd["compression"].decompress(synchronize(handle), ctx))
        return loss

    def synchronize(self) -> None:
        """Does nothing: there are no gradients of other ranks to wait for."""

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        raise AssertionError("optimizer.skip_synchronize(): with op=hvd.Adasum step() is what the ranks do together; call it alone")
        yield
