"""DDP on device 0 (on the CPU without one): torch_ddp.py BACKEND SECONDS

Prints a digest of the weights after some steps. It is the same over every backend on one and two ranks, where sums
have one order."""

import ctypes
import faulthandler
import hashlib
import os
import sys
import time

faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

cuda = torch.cuda.is_available()
if not cuda and os.environ.get("WANTS_CUDA"):
    sys.exit(f"torch {torch.__version__} sees no CUDA device")
device = torch.device("cuda", 0) if cuda else torch.device("cpu")
if cuda:
    torch.cuda.set_device(0)
if sys.argv[1] == "dtrun":
    import dtrun.torch  # noqa: F401
torch.use_deterministic_algorithms(True)
dist.init_process_group(sys.argv[1])
rank, world = dist.get_rank(), dist.get_world_size()
width, layers, steps = (1024, 8, 30) if cuda else (128, 4, 6)
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)]).to(device)
parallel = DistributedDataParallel(model, device_ids=[0] if cuda else None, bucket_cap_mb=8)
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05, momentum=0.9)
times = []
for step in range(steps):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(64, width, generator=generator).to(device)
    start = time.perf_counter()
    loss = (parallel(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    last = loss.item()  # waits for the device
    times.append(time.perf_counter() - start)
weights = [weight.detach().cpu().contiguous() for weight in model.parameters()]
digest = hashlib.sha256(b"".join(ctypes.string_at(w.data_ptr(), w.numel() * w.element_size()) for w in weights)).hexdigest()
print(f"digest {digest[:32]} rank {rank} of {world} over {dist.get_backend()} on {device}: loss {last:.6f}, "
      f"step {sorted(times)[steps // 2] * 1e3:.2f} ms", flush=True)
dist.barrier(**({"device_ids": [0]} if sys.argv[1] == "nccl" else {}))
dist.destroy_process_group()
