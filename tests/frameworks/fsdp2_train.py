"""An ordinary FSDP2 script on CPUs: nothing in it knows of dtrun."""

import copy

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
alone = copy.deepcopy(model)  # trained by each rank on the data of all
mesh = dist.device_mesh.init_device_mesh("cpu", (world,))
for layer in (model[0], model[2], model):
    fully_shard(layer, mesh=mesh)
data = torch.randn(4, world, 8, 8)


def train(model, optimizer, batch):
    optimizer.zero_grad()
    (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean().backward()
    optimizer.step()


optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
optimizer_alone = torch.optim.Adam(alone.parameters(), lr=0.01)
for step in data:
    train(model, optimizer, step[rank])
    train(alone, optimizer_alone, step.flatten(0, 1))
weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True, broadcast_from_rank0=False))
if rank == 0:  # who alone gets the full weights
    for name, expected in alone.state_dict().items():
        torch.testing.assert_close(weights[name], expected)
dist.barrier()
print(f"rank {rank} of {world} took {len(data)} steps over {dist.get_backend()}", flush=True)
dist.destroy_process_group()
