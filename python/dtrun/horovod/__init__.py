"""Horovod's Python API over dtrun.

    import dtrun.horovod.torch as hvd  # or dtrun.horovod.tensorflow, dtrun.horovod.keras

    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

A script that says `import horovod.torch as hvd` (horovod.tensorflow, horovod.keras) runs unchanged with the folder `shim` of
this package on PYTHONPATH.
docs/horovod.md lists what is supported and what is not.
"""

from .absent import name_absent_parts

name_absent_parts(__name__, __path__, "dtrun.horovod.torch, dtrun.horovod.tensorflow and dtrun.horovod.keras")
