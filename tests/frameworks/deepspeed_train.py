"""DeepSpeed's communication on CPUs: nothing in it knows of dtrun."""

import logging

logging.disable(logging.WARNING)
import deepspeed
import torch

deepspeed.init_distributed(dist_backend="gloo")
data = torch.tensor([deepspeed.comm.get_rank() + 1.0])
deepspeed.comm.all_reduce(data)
print(f"rank {deepspeed.comm.get_rank()} of {deepspeed.comm.get_world_size()}: sum {data.item():g}", flush=True)
deepspeed.comm.barrier()
torch.distributed.destroy_process_group()
