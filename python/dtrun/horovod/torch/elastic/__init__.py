"""hvd.elastic of torch; see dtrun.horovod.elastic."""

from ...elastic import ObjectState, State, run
from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]
