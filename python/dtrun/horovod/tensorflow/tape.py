"""DistributedGradientTape: a tf.GradientTape that averages gradients over the ranks."""

from typing import Any, List, Tuple

import tensorflow as tf

from ..gradients import Groups, check_groups
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average
from .compression import Compression
from .gradients import Gradients


class Distributed:
    """The part that DistributedGradientTape adds to the class of the given tape."""

    _hvd: Gradients

    def register_local_source(self, source: Any) -> None:
        """The gradient of this variable stays this rank's."""
        self._hvd.register_local(source)

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, use_generic_names: bool = True, **options: Any
    ) -> Any:
        """As gradient() of the tape; `use_generic_names` is not used: names never depend on tensors."""
        gradients = super().gradient(target, sources, output_gradients, **options)
        reduced = self._hvd.reduce(tf.nest.flatten(gradients), tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(sources, reduced)

    def get_local_and_global_gradients(
        self, target: Any, sources: Any, *args: Any, **options: Any
    ) -> Tuple[List[Any], List[Any]]:
        """Pairs of source and gradient: of those that are local, and of the others."""
        pairs = list(zip(sources, self.gradient(target, sources, *args, **options)))
        local = [pair for pair in pairs if self._hvd.is_local(pair[0])]
        return local, [pair for pair in pairs if not self._hvd.is_local(pair[0])]


def DistributedGradientTape(
    gradtape: tf.GradientTape, device_dense: str = "", device_sparse: str = "", compression: Any = Compression.none,
    sparse_as_dense: bool = False, op: int = Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0,
    groups: Groups = None, process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
) -> tf.GradientTape:  # fmt: skip
    """A copy of `gradtape`, of the same class, with gradient() averaged over the ranks; all gradients of a call travel together.

    `groups`: the number of groups of gradients, or lists of their variables; each group is one operation. `gradient_predivide_factor`:
    gradients are divided by it before the sum, and by size/factor after.
    """
    kind = type(type(gradtape).__name__, (Distributed, type(gradtape)), {"__module__": __name__})
    tape = kind.__new__(kind)
    tape.__dict__.update(gradtape.__dict__)
    tape._hvd = Gradients(
        "DistributedGradientTape", compression, sparse_as_dense, op, gradient_predivide_factor, check_groups(groups, num_groups, "variables"),
        process_set, scale_local_gradients,
    )  # fmt: skip
    return tape


def PartialDistributedGradientTape(
    gradtape: tf.GradientTape, *args: Any, local_layers: Any = None, **options: Any
) -> tf.GradientTape:
    """As DistributedGradientTape; the gradients of the weights of `local_layers` stay this rank's."""
    tape = DistributedGradientTape(gradtape, *args, **options)
    for variable in variables_of_layers(local_layers):
        tape.register_local_source(variable)
    return tape


def variables_of_layers(layers: Any) -> List[Any]:
    """The trained weights of one layer, of several, or of None."""
    layers = [] if layers is None else [layers] if hasattr(layers, "trainable_weights") else list(layers)
    strange = [layer for layer in layers if not hasattr(layer, "trainable_weights")]
    if strange:
        raise ValueError(f"local_layers holds a {type(strange[0]).__name__}; it is a list of Keras layers")
    return [variable for layer in layers for variable in layer.trainable_weights]
