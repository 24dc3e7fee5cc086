"""DeepSpeed's ZeRO on CPUs, at the stage that the command line says: nothing in it knows of dtrun."""

import logging
import sys

logging.disable(logging.WARNING)
import deepspeed
import torch

stage = int(sys.argv[1])
deepspeed.init_distributed(dist_backend="gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
config = {
    "train_micro_batch_size_per_gpu": 8,
    "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
    "zero_optimization": {"stage": stage},
}
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
rank, world = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
for batch in torch.randn(4, 8, 8, generator=torch.Generator().manual_seed(rank)):
    engine.backward((engine(batch) - batch.sum(dim=1, keepdim=True)).square().mean())
    engine.step()
with deepspeed.zero.GatheredParameters(list(model.parameters())):
    weights = torch.cat([parameter.detach().flatten().clone() for parameter in model.parameters()])
gathered = [torch.empty_like(weights) for _ in range(world)]
deepspeed.comm.all_gather(gathered, weights)
assert all(torch.equal(weights, other) for other in gathered), "ranks differ"
print(f"rank {rank} of {world} took {engine.global_steps} steps at stage {engine.zero_optimization_stage()} "
      f"over {torch.distributed.get_backend()}", flush=True)
torch.distributed.destroy_process_group()
