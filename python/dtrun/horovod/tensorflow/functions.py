"""Whole states between ranks: variables; objects of Python are the same for every framework."""

from typing import Any, Callable, Iterable, List, Optional

import tensorflow as tf

from .. import objects
from ..process_sets import ProcessSet, check_root, global_process_set
from ..submit import submit_arrays
from .bridge import run, several_of, tensor_of


def broadcast_variables(
    variables: Iterable[Any], root_rank: int, process_set: ProcessSet = global_process_set, inplace: bool = False
) -> None:
    """Every rank's variables = those of `root_rank`. All travel at once. `inplace` is not used: there is one way."""
    check_root("broadcast_variables", root_rank, process_set)
    variables = several_of("broadcast_variables", variables, "variables")
    values = [tensor_of("broadcast_variables", variable, f"variables[{i}]") for i, variable in enumerate(variables)]

    def work(*arrays: Any) -> List[Any]:
        requests = [submit_arrays("broadcast", [array], None, None, process_set, root=root_rank) for array in arrays]
        return [request.wait()[0] for request in requests]

    found = run(work, values, [tf.TensorSpec(value.shape, value.dtype) for value in values]) if values else []
    for variable, value in zip(variables, found):
        variable.assign(value)


def broadcast_(
    variables: Iterable[Any], root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[tf.Tensor]:
    """broadcast_variables(), and the values that the variables have then."""
    variables = several_of("broadcast_", variables, "variables")
    broadcast_variables(variables, root_rank, process_set)
    return [tf.convert_to_tensor(variable) for variable in variables]


def broadcast_global_variables(root_rank: int) -> None:
    """TensorFlow 1 only: there graphs have a list of their variables."""
    raise RuntimeError(
        "hvd.broadcast_global_variables(): there are no global variables in eager execution; use "
        "hvd.broadcast_variables(<variables of the model and the optimizer>, root_rank)"
    )


def broadcast_object(
    obj: Any = None, root_rank: int = 0, session: Any = None, name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """`obj` of `root_rank`, pickled, on every rank. `session` (TensorFlow 1) is not used."""
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0, session: Any = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Callable[[Any], Any]:
    return lambda obj: objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(
    obj: Any, session: Any = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[Any]:
    """The `obj` of every rank, pickled, in a list on every rank."""
    return objects.allgather_object(obj, name, process_set)
