"""A script that knows only Horovod."""

import os

import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
from horovod.common.util import env, gpu_available, num_rank_is_power_2, split_list
from horovod.torch.compression import Compression
from horovod.torch.mpi_ops import allreduce, grouped_allreduce, is_homogeneous, rank, size, synchronize

hvd.init()
assert HorovodInternalError is hvd.HorovodInternalError and Compression is hvd.Compression
assert allreduce is hvd.allreduce and synchronize is hvd.synchronize
assert grouped_allreduce is hvd.grouped_allreduce and (rank(), size()) == (hvd.rank(), hvd.size()) and is_homogeneous()
assert hvd.gloo_built() and not hvd.mpi_built()
assert gpu_available("torch") == torch.cuda.is_available() and not gpu_available("mxnet") and hvd.gpu_available is gpu_available
assert [num for num in range(9) if num_rank_is_power_2(num)] == [1, 2, 4, 8]
assert split_list(list(range(7)), 3) == [[0, 1, 2], [3, 4], [5, 6]]
with env(HOROVOD_OF_A_TEST="1", HOME=None):
    assert os.environ["HOROVOD_OF_A_TEST"] == "1" and "HOME" in os.environ
assert "HOROVOD_OF_A_TEST" not in os.environ
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
