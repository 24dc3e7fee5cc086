"""DistributedOptimizer: an optimizer of Keras or of tf.compat.v1 that averages gradients over the ranks."""

from typing import Any, List, Optional, Tuple

import tensorflow as tf

from ..gradients import Groups, check_groups, check_scaling
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average
from .aggregation import Aggregation
from .compression import Compression
from .gradients import Gradients
from .tape import variables_of_layers


class CallableList(list):
    """Supports optimizer.variables() of Keras 2 and optimizer.variables of Keras 3."""

    def __call__(self) -> "CallableList":
        return self


def variables_of(optimizer: Any) -> List[Any]:
    found = optimizer.variables
    return list(found() if callable(found) else found)


class Distributed:
    """The part that DistributedOptimizer adds to every class. Options belong to the class, so that from_config() has them too."""

    _hvd: Gradients
    _hvd_passes = 1
    _hvd_average = False

    @property
    def _agg_helper(self) -> Optional[Aggregation]:
        if self._hvd_passes == 1:
            return None
        helper = self.__dict__.get("_hvd_aggregation")
        if helper is None:
            helper = self.__dict__["_hvd_aggregation"] = Aggregation(self._hvd, self._hvd_passes, self._hvd_average)
        return helper

    @property
    def variables(self) -> Any:
        found = super().variables
        return CallableList(found() if callable(found) else found)

    def register_local_var(self, variable: Any) -> None:
        """The gradient of this variable stays this rank's."""
        self._hvd.register_local(variable)

    def _reduce(self, gradients: Any, variables: Any) -> List[Any]:
        helper = self._agg_helper
        return self._hvd.reduce(gradients, variables) if helper is None else helper.add(gradients, variables)


class DistributedKeras3(Distributed):
    """For Keras 3, which passes gradients to apply()."""

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        known = self._trainable_variables
        variables = list(known if trainable_variables is None else trainable_variables)
        reduced = self._reduce(list(grads), variables)
        helper = self._agg_helper
        if helper is None:
            super().apply(reduced, variables)
            return
        if not self.built:
            self.build(variables)
            self.built = True
        helper.apply(self, lambda: super(DistributedKeras3, self).apply(reduced, variables))


class DistributedMinimizer(Distributed):
    """For Keras 2 and tf.compat.v1: minimize() computes and applies gradients; only computed gradients are reduced."""

    def compute_gradients(self, *args: Any, **options: Any) -> List[Tuple[Any, Any]]:
        return self._reduced(super().compute_gradients(*args, **options))

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None) -> List[Tuple[Any, Any]]:
        above = super()
        tape = tf.GradientTape() if tape is None else tape
        if hasattr(above, "_compute_gradients"):
            return self._reduced(above._compute_gradients(loss, var_list, grad_loss, tape=tape))
        return self._reduced(above.compute_gradients(loss, var_list, tape=tape))

    def get_gradients(self, loss: Any, params: Any) -> List[Any]:
        return self._reduce(super().get_gradients(loss, params), params)

    def _reduced(self, pairs: Any) -> List[Tuple[Any, Any]]:
        gradients, variables = zip(*pairs)
        return list(zip(self._reduce(gradients, variables), variables))

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **options: Any) -> Any:
        helper, pairs = self._agg_helper, list(grads_and_vars)
        apply = super().apply_gradients
        if helper is None:
            return apply(pairs, *args, **options)
        return helper.apply(self, lambda: apply(pairs, *args, **options))


def DistributedOptimizer(
    optimizer: Any, name: Optional[str] = None, use_locking: bool = False, device_dense: str = "", device_sparse: str = "",
    compression: Any = Compression.none, sparse_as_dense: bool = False, backward_passes_per_step: int = 1, op: int = Average,
    gradient_predivide_factor: float = 1.0, average_aggregated_gradients: bool = False, num_groups: int = 0,
    groups: Groups = None, process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """A copy of `optimizer`, of the same class and with its state, that averages gradients over the ranks.

    `backward_passes_per_step`: the number of steps to add up before gradients are reduced and applied;
    `average_aggregated_gradients` divides the sum by that number. The other options are those of DistributedGradientTape.
    """
    check_scaling(op, gradient_predivide_factor, backward_passes_per_step)
    options = Gradients(
        name or f"Distributed{type(optimizer).__name__}", compression, sparse_as_dense, op, gradient_predivide_factor,
        check_groups(groups, num_groups, "variables"), process_set, scale_local_gradients,
    )  # fmt: skip
    base = type(optimizer)
    keras3 = not hasattr(optimizer, "compute_gradients") and not hasattr(optimizer, "_compute_gradients")
    # A saved model names the class of its optimizer: this one has the name of the other, which loads without Horovod.
    public = keras3 and getattr(tf.keras.optimizers, base.__name__, None) is base
    body = {
        "__module__": "keras.optimizers" if public else base.__module__,
        "_hvd": options,
        "_hvd_passes": backward_passes_per_step,
        "_hvd_average": average_aggregated_gradients,
    }
    kind = type(base.__name__, (DistributedKeras3 if keras3 else DistributedMinimizer, base), body)
    wrapped = kind.__new__(kind)
    wrapped.__dict__.update(optimizer.__dict__)
    return wrapped


def PartialDistributedOptimizer(optimizer: Any, *args: Any, local_layers: Any = None, **options: Any) -> Any:
    """As DistributedOptimizer; the gradients of the weights of `local_layers` stay this rank's."""
    wrapped = DistributedOptimizer(optimizer, *args, **options)
    for variable in variables_of_layers(local_layers):
        wrapped.register_local_var(variable)
    return wrapped
