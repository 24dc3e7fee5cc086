"""hvd.elastic of TensorFlow: states of variables and of Keras models. See dtrun.horovod.elastic."""

from typing import Any, List, Optional

import tensorflow as tf

from ..elastic import ObjectState, State, run
from ..elastic.state import FrameworkState
from .functions import broadcast_variables
from .optimizer import variables_of

__all__ = ["ObjectState", "State", "TensorFlowKerasState", "TensorFlowState", "run"]


class TensorFlowState(FrameworkState):
    """Variables, and plain objects by keyword."""

    KEY = "variables"

    def __init__(self, variables: Any = None, session: Any = None, **objects: Any) -> None:
        if variables is None:
            raise ValueError("TensorFlowState: variables is None; pass a list of tf.Variable, there are no global ones")
        self.variables = list(variables)
        super().__init__(**objects)

    def _read(self) -> List[Any]:
        return [tf.convert_to_tensor(variable).numpy() for variable in self.variables]

    def _write(self, values: List[Any]) -> None:
        if len(values) != len(self.variables):
            raise ValueError(
                f"{type(self).__name__}: {len(values)} values were committed, and there are {len(self.variables)} "
                "variables; make the same model and optimizer after a restart, or remove the file of the commit"
            )
        for variable, value in zip(self.variables, values):
            variable.assign(value)

    def _share(self) -> None:
        broadcast_variables(self.variables, root_rank=0)


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
