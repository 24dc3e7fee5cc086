"""Callbacks of Keras: the same start on every rank, averaged metrics, learning rates that grow with the ranks."""

from typing import Any, Callable, Dict, Iterable, Optional, Union

import tensorflow as tf

from ...reductions import Average
from ...runtime import rank, size
from ..functions import broadcast_variables
from ..operations import allreduce
from ..optimizer import variables_of

Logs = Optional[Dict[str, Any]]


class BroadcastGlobalVariablesCallback(tf.keras.callbacks.Callback):
    """After the first batch, when the optimizer has its state, copies all variables except `local_variables` from `root_rank`."""

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:
        super().__init__()
        self.root_rank = root_rank
        self.broadcast_done = False
        several = isinstance(local_variables, Iterable) and not hasattr(local_variables, "assign")
        local = list(local_variables) if several else [] if local_variables is None else [local_variables]
        strange = [variable for variable in local if not hasattr(variable, "assign")]
        if strange:
            raise ValueError(f"local_variables holds a {type(strange[0]).__name__}; it is a list of variables")
        self._local = {id(variable): variable for variable in local}

    def register_local_var(self, variable: Any) -> None:
        self._local[id(variable)] = variable

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        if self.broadcast_done:
            return
        model = self.model
        broadcast_variables([v for v in model.variables if id(v) not in self._local], self.root_rank)
        if getattr(model, "optimizer", None) is not None:
            broadcast_variables(variables_of(model.optimizer), self.root_rank)
        self.broadcast_done = True


class MetricAverageCallback(tf.keras.callbacks.Callback):
    """Averages the metrics of an epoch over the ranks, for all later callbacks."""

    def __init__(self, device: str = "") -> None:
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if not logs:
            return
        names = sorted(logs)
        values = tf.constant([float(logs[name]) for name in names], tf.float64)
        logs.update(zip(names, (float(value) for value in allreduce(values, op=Average))))


class LearningRateScheduleCallback(tf.keras.callbacks.Callback):
    """From epoch `start_epoch` to before `end_epoch` the learning rate is initial_lr * multiplier(epoch).

    A multiplier that is a number is raised to the epochs since start_epoch. `staircase`: changes once an epoch; else with
    each batch, with a fractional epoch. `momentum_correction` scales momentum with the rate for one batch, in optimizers with
    momentum as a variable (optimizers.legacy of Keras 2); in others it is a number that is compiled into the step.
    """

    def __init__(
        self, initial_lr: float, multiplier: Union[float, Callable[[float], float]], start_epoch: int = 0,
        end_epoch: Optional[int] = None, staircase: bool = True, momentum_correction: bool = True,
        steps_per_epoch: Optional[int] = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if initial_lr is None:
            raise ValueError(f"{type(self).__name__}: initial_lr is None; pass the learning rate at the start of training")
        self.initial_lr, self.start_epoch, self.end_epoch = initial_lr, start_epoch, end_epoch
        self.staircase, self.momentum_correction, self.steps_per_epoch = staircase, momentum_correction, steps_per_epoch
        self.multiplier = multiplier if callable(multiplier) else lambda epoch: multiplier ** (epoch - start_epoch)
        self.current_epoch = 0
        self._momentum: Any = None  # to be restored

    def on_train_begin(self, logs: Logs = None) -> None:
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self.params.get("steps")
            if not self.steps_per_epoch:
                raise ValueError(f"{type(self).__name__}: Keras does not say how many batches an epoch has; pass steps_per_epoch")

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self.current_epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        epoch = self.current_epoch
        if epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
            return
        if not self.staircase:
            self._adjust(epoch + batch / self.steps_per_epoch)
        elif batch == 0:
            self._adjust(epoch)

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        if self._momentum is not None:
            self.model.optimizer.momentum.assign(self._momentum)
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if logs is not None:
            logs["lr"] = learning_rate(self.model.optimizer)

    def _adjust(self, epoch: float) -> None:
        optimizer = self.model.optimizer
        before, after = learning_rate(optimizer), self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate = after
        momentum = getattr(optimizer, "momentum", None)
        if self.momentum_correction and hasattr(momentum, "assign") and before:
            self._momentum = momentum.numpy()
            momentum.assign(self._momentum * after / before)


def learning_rate(optimizer: Any) -> float:
    return float(tf.convert_to_tensor(optimizer.learning_rate))


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """The learning rate grows from initial_lr / size to initial_lr, batch by batch, in `warmup_epochs`."""

    def __init__(
        self, initial_lr: float, warmup_epochs: int = 5, momentum_correction: bool = True, steps_per_epoch: Optional[int] = None,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        def multiplier(epoch: float) -> float:
            epoch += 1.0 / self.steps_per_epoch  # the last batch of an epoch is at its end
            return (epoch * (size() - 1) / warmup_epochs + 1) / size()

        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self.verbose and rank() == 0 and self.end_epoch is not None and epoch == self.end_epoch - 1:
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {learning_rate(self.model.optimizer):g}.")
