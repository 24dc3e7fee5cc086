"""Gradients of several backward passes, added up on this rank; only the sum is reduced over the ranks."""

from typing import Any, Callable, List, Sequence

import tensorflow as tf

from .gradients import Gradients


class Aggregation:
    """For one optimizer. `counter`: the number of passes since the last reduction."""

    def __init__(self, gradients: Gradients, passes: int, average: bool) -> None:
        self._gradients, self._passes, self._average = gradients, passes, average
        self._sums: List[Any] = []
        with tf.init_scope():
            self.counter = tf.Variable(0, trainable=False, dtype=tf.int32)

    def add(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        """The sums so far. When complete, they are reduced over the ranks, and the counter is 0."""
        dense = [self._dense(gradient) for gradient in gradients]
        present = [i for i, gradient in enumerate(dense) if gradient is not None]
        if not self._sums:
            with tf.init_scope():
                shapes = [(dense[i].shape, dense[i].dtype) for i in present]
                self._sums = [tf.Variable(tf.zeros(shape, dtype), trainable=False) for shape, dtype in shapes]
        if len(self._sums) != len(present):
            raise ValueError(
                f"backward_passes_per_step: {len(present)} variables have a gradient, and {len(self._sums)} had one in the first "
                "pass; every pass must reach the same variables"
            )
        for i, total in zip(present, self._sums):
            total.assign_add(dense[i])
        self.counter.assign_add(1)
        trained = [variables[i] for i in present]
        found = tf.cond(
            tf.equal(self.counter, self._passes), lambda: self._reduce(trained), lambda: [tf.identity(s) for s in self._sums]
        )
        for i, total in zip(present, found if isinstance(found, (list, tuple)) else [found]):
            dense[i] = total
        return dense

    def _dense(self, gradient: Any) -> Any:
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if self._gradients.sparse_as_dense:
            return tf.convert_to_tensor(gradient)
        raise ValueError("backward_passes_per_step: tf.IndexedSlices cannot be added up; give sparse_as_dense=True")

    def _reduce(self, variables: Sequence[Any]) -> List[Any]:
        reduced = self._gradients.reduce([tf.identity(total) for total in self._sums], variables)
        for total in self._sums:
            total.assign(tf.zeros_like(total))
        self.counter.assign(0)
        return [tf.identity(gradient / self._passes if self._average else gradient) for gradient in reduced]

    def apply(self, optimizer: Any, apply: Callable[[], Any]) -> None:
        """apply() after add(), if the sums were complete; else the optimizer only counts the step."""

        def applied() -> Any:
            apply()
            return tf.identity(self.counter)

        def counted() -> Any:
            optimizer.iterations.assign_add(1)
            return tf.identity(self.counter)

        tf.cond(tf.equal(self.counter, 0), applied, counted)
