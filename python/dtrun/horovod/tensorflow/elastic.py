"""hvd.elastic of TensorFlow: states of variables and of Keras models. See dtrun.horovod.elastic."""

from typing import Any, Dict, List, Optional

import tensorflow as tf

from ..elastic import ObjectState, State, run
from .functions import broadcast_variables
from .optimizer import variables_of

__all__ = ["ObjectState", "State", "TensorFlowKerasState", "TensorFlowState", "run"]


class TensorFlowState(ObjectState):
    """Variables, and plain objects by keyword."""

    def __init__(self, variables: Any = None, session: Any = None, **objects: Any) -> None:
        if variables is None:
            raise ValueError("TensorFlowState: variables is None; pass a list of tf.Variable, there are no global ones")
        self.variables = list(variables)
        super().__init__(**objects)
        self._values = self._read()

    def _read(self) -> List[Any]:
        return [tf.convert_to_tensor(variable).numpy() for variable in self.variables]

    def save(self) -> None:
        self._values = self._read()
        super().save()

    def restore(self) -> None:
        if len(self._values) != len(self.variables):
            raise ValueError(
                f"{type(self).__name__}: {len(self._values)} values were committed, and there are {len(self.variables)} "
                "variables; make the same model and optimizer after a restart, or remove the file of the commit"
            )
        for variable, value in zip(self.variables, self._values):
            variable.assign(value)
        super().restore()

    def sync(self) -> None:
        broadcast_variables(self.variables, root_rank=0)
        self._values = self._read()
        super().sync()

    def dump(self) -> Dict[str, Any]:
        return {"variables": self._values, "objects": self._saved}

    def undump(self, saved: Any) -> None:
        self._values = saved["variables"]
        super().undump(saved["objects"])


class TensorFlowKerasState(TensorFlowState):
    """A Keras model, its optimizer, and plain objects by keyword."""

    def __init__(self, model: Any, optimizer: Any = None, backend: Any = None, **objects: Any) -> None:
        if not model.built:
            raise ValueError("TensorFlowKerasState: the model has no weights yet; call model.build(input_shape) first")
        self.model = model
        self.optimizer: Optional[Any] = optimizer or getattr(model, "optimizer", None)
        if self.optimizer is not None:
            _build(self.optimizer, model.trainable_variables)
        super().__init__([*model.variables, *([] if self.optimizer is None else variables_of(self.optimizer))], **objects)


def _build(optimizer: Any, variables: Any) -> None:
    """Creates its variables now, so that they can get the values of the commit after a restart."""
    if hasattr(optimizer, "_create_all_weights"):  # Keras 2, optimizers.legacy
        optimizer._create_all_weights(variables)
    elif not getattr(optimizer, "built", getattr(optimizer, "_built", False)):
        optimizer.build(variables)
