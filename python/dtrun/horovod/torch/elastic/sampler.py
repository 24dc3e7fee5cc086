"""ElasticSampler: divides the remaining samples of an epoch among the ranks."""

import random
from typing import Any, Dict, Iterator, List, Sized

import torch.utils.data

from ...runtime import rank, size


class ElasticSampler(torch.utils.data.Sampler[Any]):
    """As DistributedSampler, but counts processed samples: call record_batch() after each batch, set_epoch() at the end of each epoch.

    As part of a TorchState it continues within an epoch after a restart, with other numbers of ranks too.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Starts the next epoch with all samples."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Records that every rank has processed a batch of this size."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> Dict[str, Any]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.epoch, self.processed_num = state["epoch"], state["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Divides the remaining samples among the current ranks."""
        self.num_replicas, self.rank = size(), rank()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices: List[int] = order[self.processed_num :]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        every = self.remaining_indices + self.remaining_indices[: self.total_size - len(self.remaining_indices)]
        return iter(every[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
