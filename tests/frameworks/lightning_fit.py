"""An ordinary Lightning script on CPUs, for STRATEGY DEVICES NODES: nothing in it knows of dtrun."""

import logging
import sys
import warnings

import lightning
import torch

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, _):
        return (self.layer(batch) - batch.sum(dim=1, keepdim=True)).square().mean()

    def on_train_end(self):
        weights = self.all_gather(self.layer.weight.detach())
        assert all(torch.equal(weights[0], other) for other in weights), "ranks differ"
        print(f"rank {self.global_rank} of {self.trainer.world_size} took {self.global_step} steps "
              f"over {torch.distributed.get_backend()}", flush=True)

    def teardown(self, stage):
        torch.distributed.destroy_process_group()  # with it alive, torch may abort at the end of a spawned process

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    data = torch.utils.data.DataLoader(torch.randn(64, 8, generator=torch.Generator().manual_seed(1)), batch_size=8)
    trainer = lightning.Trainer(accelerator="cpu", strategy=sys.argv[1], devices=int(sys.argv[2]), num_nodes=int(sys.argv[3]),
                                max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False)
    trainer.fit(Line(), data)
