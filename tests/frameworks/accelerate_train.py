"""An ordinary accelerate script: nothing in it knows of dtrun."""

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
data = torch.utils.data.DataLoader(torch.randn(64, 8, generator=torch.Generator().manual_seed(1)), batch_size=8)
model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
steps = 0
for batch in data:
    loss = (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    steps += 1
total = accelerator.reduce(torch.tensor([accelerator.process_index + 1.0]), "sum").item()
print(f"rank {accelerator.process_index} of {accelerator.num_processes} took {steps} steps, sum {total:g}, "
      f"over {torch.distributed.get_backend()}", flush=True)
accelerator.end_training()
