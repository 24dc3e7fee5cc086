"""A process group of dtrun and torch's gloo, as the argument asks for: which of them has the tensors of cpu."""

import sys

import torch
import torch.distributed as dist
from checks import equal, refused

import dtrun.torch
from dtrun.torch.work import Work


def main(backends):
    dist.init_process_group(backends)
    rank, group = dist.get_rank(), dist.group.WORLD
    for part in backends.split(","):
        device, backend = part.split(":")
        held = group._get_backend(torch.device(device))
        assert type(held).__name__ == {"dtrun": "MixedGroup", "gloo": "ProcessGroupGloo"}[backend], (part, held)

    pair, alone = dist.new_group([0, 1]), [dist.new_group([r]) for r in range(2)][rank]
    x = torch.full((2,), rank + 1.0)
    for some in (None, pair, alone):
        dist.all_reduce(x, group=some)
    equal(x, [6, 6])
    every = [None, None]
    dist.all_gather_object(every, rank)
    assert every == [0, 1], every
    refused(lambda: group.split_group([0, 1]), RuntimeError, "split_group: the group has several backends")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    model(torch.full((1, 2), rank + 1.0)).sum().backward()
    equal(model.module.weight.grad, [[1.5, 1.5]] * 2)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    print(f"rank {rank}: a work of", "dtrun" if isinstance(work, Work) else "torch", flush=True)
    dist.destroy_process_group(pair)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
