"""An ordinary torch.distributed script: nothing in it knows of dtrun."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", init_method="env://")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
generator = torch.Generator().manual_seed(dist.get_rank())
for _ in range(20):
    x = torch.randn(16, 8, generator=generator)
    loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weight = model.module.weight.detach().clone()
gathered = [torch.empty_like(weight) for _ in range(dist.get_world_size())]
dist.all_gather(gathered, weight)
assert all(torch.equal(other, weight) for other in gathered), "ranks differ"
print(f"rank {dist.get_rank()} of {dist.get_world_size()} agrees over {dist.get_backend()}, loss {loss.item():.4f}", flush=True)
dist.barrier()
dist.destroy_process_group()
