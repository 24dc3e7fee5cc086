"""A rank dies after it has committed; dtrun restarts the ranks, and they continue from the commit."""

import os

import torch

import dtrun.horovod.torch as hvd

hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), named_parameters=model.named_parameters())
sampler = hvd.elastic.ElasticSampler(range(8 * hvd.size()), shuffle=False)
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, step=0)
generation = int(os.environ["DTRUN_GENERATION"])


@hvd.elastic.run
def train(state):
    left = len(list(state.sampler))
    print(f"generation {generation}: rank {hvd.rank()} starts at step {state.step}, {left} samples left", flush=True)
    while state.step < 6:
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        state.step += 1
        state.sampler.record_batch(state.step, 1)
        if state.step == 3:
            state.commit()
        if state.step == 5 and generation == 0 and hvd.rank() == 1:
            os._exit(7)
    return model.bias.item()


bias = train(state)
if generation == 1:
    state.restore()
    assert abs(model.bias.item() - bias - 1.5) < 1e-6  # three steps of 0.5
    print(f"rank {hvd.rank()} of {hvd.size()} continued", flush=True)
