"""An ordinary Horovod script: nothing in it knows of dtrun."""

import horovod.torch as hvd
import torch

hvd.init()
total = hvd.allreduce(torch.tensor([hvd.rank() + 1.0]), op=hvd.Sum).item()
torch.manual_seed(hvd.rank())
model = torch.nn.Linear(8, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
batches = torch.randn(4, 8, 8, generator=torch.Generator().manual_seed(hvd.rank()))
for batch in batches:
    optimizer.zero_grad()
    (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean().backward()
    optimizer.step()
weights = hvd.allgather(model.weight.detach())
agree = all(torch.equal(weights[0], other) for other in weights)
print(f"rank {hvd.rank()} of {hvd.size()}, {hvd.local_rank()} of {hvd.local_size()} on host {hvd.cross_rank()}: "
      f"sum {total:g}, weights {'agree' if agree else 'differ'}", flush=True)
hvd.shutdown()
