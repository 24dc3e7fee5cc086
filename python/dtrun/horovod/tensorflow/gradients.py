"""Reduction of a step's gradients: the common part of tapes and optimizers."""

from typing import Any, Dict, List, Sequence

import tensorflow as tf

from ..compression import compressed
from ..gradients import Groups, check_scaling, split
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average
from . import differentiable
from .compression import Compression
from .operations import allreduce

class Gradients:
    """Reduces lists of gradients over the ranks, with the options of an optimizer or a tape. `name` begins their names.

    Gradients of local variables stay on this rank. They are divided by the number of ranks to match averages, except with
    scale_local_gradients=False.
    """

    def __init__(
        self, name: str, compression: Any = Compression.none, sparse_as_dense: bool = False, op: int = Average,
        gradient_predivide_factor: float = 1.0, groups: Groups = None, process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True,
    ) -> None:  # fmt: skip
        check_scaling(op, gradient_predivide_factor)
        self.process_set = process_set
        self.sparse_as_dense = sparse_as_dense
        self._name, self._compression, self._op, self._groups = name, compression, op, groups
        self._scale_local = scale_local_gradients
        self._scales = {"prescale_factor": 1.0 / gradient_predivide_factor, "postscale_factor": gradient_predivide_factor}
        self._local: Dict[int, Any] = {}  # by id(): variables of Keras 3 have no hash; and kept, so that ids stay theirs

    def register_local(self, variable: Any) -> None:
        self._local[id(variable)] = variable

    def is_local(self, variable: Any) -> bool:
        return id(variable) in self._local

    def reduce(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        """The reduced gradients, in the order given; None stays None. Every rank calls it with gradients of the same variables."""
        results = [
            tf.convert_to_tensor(g) if self.sparse_as_dense and isinstance(g, tf.IndexedSlices) else g for g in gradients
        ]
        if not self.process_set.included():
            return results
        size = self.process_set.size() or 1
        shared = []
        for i, (gradient, variable) in enumerate(zip(results, variables)):
            if not self.is_local(variable):
                shared += [i] if gradient is not None else []
            elif gradient is not None and self._scale_local:
                results[i] = _divided(gradient, size)
        if size > 1:
            self._reduce(results, shared, variables)
        return results

    def _reduce(self, results: List[Any], places: List[int], variables: Sequence[Any]) -> None:
        """Reduces the gradients at `places` in place."""
        for i in places:
            if isinstance(results[i], tf.IndexedSlices):
                results[i] = allreduce(results[i], op=self._op, name=self._name_of(i), process_set=self.process_set)
        dense = [i for i in places if not isinstance(results[i], tf.IndexedSlices)]
        units = self._units([variables[i] for i in dense])
        names = [self._name_of(dense[unit[0]]) for unit in units]
        scales = self._scales if self._op == Average else {}

        def reduce(tensors: Sequence[Any]) -> List[Any]:
            return differentiable.allreduce(tensors, units, names, self._op, process_set=self.process_set, **scales)

        for i, tensor in zip(dense, compressed(self._compression, [results[i] for i in dense], reduce)):
            results[i] = tensor

    def _name_of(self, place: int) -> str:
        return f"{self._name}.gradient.{place}"  # names of variables differ between ranks that created other layers before

    def _units(self, variables: Sequence[Any]) -> List[List[int]]:
        """Places of gradients that travel together."""
        count = len(variables)
        if self._groups is None or not count:
            return [[i] for i in range(count)]
        if isinstance(self._groups, int):
            return [list(unit) for unit in split(range(count), self._groups)]
        place = {id(variable): i for i, variable in enumerate(variables)}
        units = [[place.pop(id(v)) for v in group if id(v) in place] for group in self._groups]
        return [unit for unit in units if unit] + [[i] for i in place.values()]


def _divided(gradient: Any, size: int) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / size, gradient.indices, gradient.dense_shape)
    return gradient / size
