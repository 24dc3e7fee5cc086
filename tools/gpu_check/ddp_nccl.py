"""An ordinary torch.distributed script on nccl: nothing in it knows of dtrun. All ranks may share one device."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

device = int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()
torch.cuda.set_device(device)
dist.init_process_group("nccl", init_method="env://")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(8, 1).cuda(), device_ids=[device])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
generator = torch.Generator().manual_seed(dist.get_rank())
for _ in range(20):
    x = torch.randn(16, 8, generator=generator).cuda()
    loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weight = model.module.weight.detach().clone()
gathered = [torch.empty_like(weight) for _ in range(dist.get_world_size())]
dist.all_gather(gathered, weight)
assert all(torch.equal(other, weight) for other in gathered), "ranks differ"
print(f"rank {dist.get_rank()} of {dist.get_world_size()} agrees, loss {loss.item():.4f}", flush=True)
dist.barrier()
dist.destroy_process_group()
