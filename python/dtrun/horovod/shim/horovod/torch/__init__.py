"""horovod.torch: dtrun.horovod.torch."""

import sys

import dtrun.horovod.torch
from dtrun.horovod.torch import *  # noqa: F403
from dtrun.horovod.torch import compression, elastic, functions, optimizer, sync_batch_norm
from dtrun.horovod.torch.elastic import sampler, state

# The same modules and classes under the names that scripts import.
for _name, _module in {
    "compression": compression, "elastic": elastic, "elastic.sampler": sampler, "elastic.state": state,
    "functions": functions, "mpi_ops": dtrun.horovod.torch, "optimizer": optimizer, "sync_batch_norm": sync_batch_norm,
}.items():  # fmt: skip
    sys.modules[f"{__name__}.{_name}"] = _module
