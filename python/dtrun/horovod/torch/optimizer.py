"""DistributedOptimizer: gradients are averaged over the ranks before each step."""

import warnings
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Type

import torch

from ..gradients import Groups, check_groups, check_scaling
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Adasum, Average
from ..runtime import size
from . import parameters
from .adasum import DistributedSteps, Optimizer
from .compression import Compression, Compressor
from .operations import allreduce_async_, sparse_allreduce_async, synchronize
from .grouped import grouped_allreduce_async_


class Distributed(Optimizer):
    """The part that DistributedOptimizer adds to the class of the given optimizer."""

    def _distribute(self, options: Dict[str, Any]) -> None:
        self._hvd = options
        self._parameter_names = parameters.by_name(self, options["named_parameters"])
        self.backward_passes_per_step = options["backward_passes_per_step"]
        self._passes_left: Dict[torch.Tensor, int] = {}
        self._unit_of: Dict[torch.Tensor, Tuple[torch.Tensor, ...]] = {}
        self._under_way: Dict[Tuple[torch.Tensor, ...], List[Callable[[], None]]] = {}
        self._hooks: List[Any] = []
        self._synchronized, self._step_synchronizes = False, True
        trained = [p for group in self.param_groups for p in group["params"] if p.requires_grad]
        groups = options["groups"]
        units = [(p,) for p in trained] if groups is None else parameters.grouped(groups, self._parameter_names, trained)
        for unit in units:
            for parameter in unit:
                self._unit_of[parameter] = unit
        if size() > 1 and options["process_set"].included():
            for parameter in trained:
                self._passes_left[parameter] = self.backward_passes_per_step
                accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                accumulator.register_hook(self._hook(parameter))
                self._hooks.append(accumulator)  # torch keeps it only while a reference exists

    def set_backward_passes_per_step(self, passes: int) -> None:
        self.backward_passes_per_step = passes
        self._passes_left = dict.fromkeys(self._passes_left, passes)

    def _hook(self, parameter: torch.Tensor) -> Callable[..., None]:
        def accumulated(*_: Any) -> None:
            if self._passes_left[parameter] <= 0:
                raise AssertionError(
                    f"gradient of '{self._parameter_names[parameter]}': more than backward_passes_per_step="
                    f"{self.backward_passes_per_step} backward passes before step(); call step(), or raise that number"
                )
            self._passes_left[parameter] -= 1
            unit = self._unit_of[parameter]
            if all(self._passes_left[other] == 0 for other in unit):
                self._start(unit)

        return accumulated

    def _start(self, unit: Tuple[torch.Tensor, ...]) -> None:
        """Submits the gradients of `unit`; gradients that this rank did not compute are zeros."""
        for parameter in unit:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        first = unit[0].grad
        if len(unit) == 1 and first is not None and first.is_sparse and not self._hvd["sparse_as_dense"]:
            self._under_way[unit] = [self._start_sparse(unit[0])]
            return
        sent, ends = [], []
        for parameter in unit:
            tensor, end = self._compressed(parameter)
            sent.append(tensor)
            ends.append(end)
        average = self._hvd["op"] == Average
        predivide = self._hvd["gradient_predivide_factor"]
        options = {
            "name": f"gradient.{self._parameter_names[unit[0]]}",
            "op": self._hvd["op"],
            "prescale_factor": 1.0 / predivide if average else 1.0,
            "postscale_factor": predivide if average else 1.0,
            "process_set": self._hvd["process_set"],
        }
        handle = allreduce_async_(sent[0], **options) if len(unit) == 1 else grouped_allreduce_async_(sent, **options)
        self._under_way[unit] = [lambda: synchronize(handle), *ends]

    def _compressed(self, parameter: torch.Tensor) -> Tuple[torch.Tensor, Callable[[], None]]:
        """The tensor to send for a gradient, and the function that puts the result back."""
        assert parameter.grad is not None  # _start() has made it
        gradient = parameter.grad.detach()
        dense = gradient.to_dense() if gradient.is_sparse else gradient
        compression: Type[Compressor] = self._hvd["compression"]
        tensor, ctx = compression.compress(dense)
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()

        def end() -> None:
            if tensor is gradient:
                return
            result = compression.decompress(tensor, ctx)
            if gradient.is_sparse:
                parameter.grad = result.to_sparse()
            else:
                gradient.copy_(result)

        return tensor, end

    def _start_sparse(self, parameter: torch.Tensor) -> Callable[[], None]:
        assert parameter.grad is not None
        wait = sparse_allreduce_async(
            parameter.grad, f"gradient.{self._parameter_names[parameter]}", self._hvd["op"], self._hvd["process_set"]
        )

        def end() -> None:
            parameter.grad = wait()

        return end

    def synchronize(self) -> None:
        """Waits until the gradients of all parameters are averaged; step() does it otherwise."""
        for parameter in self._passes_left:
            unit = self._unit_of[parameter]
            if unit not in self._under_way:
                self._start(unit)
        for ends in self._under_way.values():
            for end in ends:
                end()
        self._under_way.clear()
        self._passes_left = dict.fromkeys(self._passes_left, self.backward_passes_per_step)
        self._synchronized = True

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """step() inside the block does not wait. Use it after synchronize(), for example to clip gradients."""
        self._step_synchronizes = False
        try:
            yield
        finally:
            self._step_synchronizes = True

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:  # type: ignore[override,unused-ignore]
        if self._step_synchronizes:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() after optimizer.synchronize(): gradients "
                    "are averaged twice; use `with optimizer.skip_synchronize(): optimizer.step()`",
                    stacklevel=2,
                )
            self.synchronize()
        self._synchronized = False
        return super().step(closure)

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        if self._under_way:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() and before optimizer.step() or "
                "optimizer.synchronize(), while gradients travel; call it after one of them"
            )
        super().zero_grad(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._under_way.clear()
        self._synchronized, self._step_synchronizes = False, True
        self._passes_left = dict.fromkeys(self._passes_left, self.backward_passes_per_step)
        super().load_state_dict(*args, **kwargs)


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[Tuple[str, torch.Tensor]]] = None,
    compression: Type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Groups = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> torch.optim.Optimizer:
    """A copy of `optimizer`, of the same class; step() uses gradients averaged over the ranks.

    Each gradient is sent once backward() has accumulated it `backward_passes_per_step` times. `groups`: the number of groups
    of gradients that travel together, or lists of their parameters. `gradient_predivide_factor`: gradients are divided
    by it before the sum, and by size/factor after. With op=hvd.Adasum each rank takes its own step, and the steps are combined.
    """
    op = check_scaling(op, gradient_predivide_factor, backward_passes_per_step)
    groups = check_groups(groups, num_groups, "parameters")
    distributed = DistributedSteps if op == Adasum else Distributed
    kind: Any = type(optimizer.__class__.__name__, (distributed, optimizer.__class__), {"__module__": __name__})
    wrapped: torch.optim.Optimizer = kind.__new__(kind)
    # An existing scheduler has put its own step() there, around the one that does not synchronize.
    wrapped.__dict__.update((key, value) for key, value in optimizer.__dict__.items() if key != "step")
    wrapped._distribute(  # type: ignore[attr-defined]
        {
            "named_parameters": named_parameters, "compression": compression, "op": op, "groups": groups,
            "backward_passes_per_step": backward_passes_per_step, "gradient_predivide_factor": gradient_predivide_factor,
            "sparse_as_dense": sparse_as_dense, "process_set": process_set,
        }  # fmt: skip
    )
    return wrapped
