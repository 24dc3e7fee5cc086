"""A script that knows only Horovod."""

import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
from horovod.torch.compression import Compression
from horovod.torch.mpi_ops import allreduce, synchronize

hvd.init()
assert HorovodInternalError is hvd.HorovodInternalError and Compression is hvd.Compression
assert allreduce is hvd.allreduce and synchronize is hvd.synchronize
assert hvd.gloo_built() and not hvd.mpi_built()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), compression=hvd.Compression.none)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
torch.manual_seed(hvd.rank())
for _ in range(5):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1)).backward()
    optimizer.step()
weights = hvd.allgather(model.weight.detach())
assert torch.equal(weights, model.weight.detach().expand(hvd.size(), 4)), weights
print(f"rank {hvd.rank()} of {hvd.size()} is done")
