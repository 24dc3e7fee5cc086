"""An ordinary Hugging Face Trainer script with a tiny model: nothing in it knows of dtrun."""

import sys

import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
model = BertForSequenceClassification(BertConfig(
    vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
    max_position_embeddings=16, num_labels=2))
ids = torch.randint(0, 32, (32, 8), generator=torch.Generator().manual_seed(1))
data = [{"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row[0] % 2} for row in ids]
trainer = Trainer(model=model, train_dataset=data, args=TrainingArguments(
    output_dir=sys.argv[1], use_cpu=True, per_device_train_batch_size=4, num_train_epochs=1, report_to=[],
    save_strategy="no", disable_tqdm=True, logging_strategy="no"))
trainer.train()
print(f"rank {trainer.args.process_index} of {trainer.args.world_size} took {trainer.state.global_step} steps "
      f"over {torch.distributed.get_backend()}", flush=True)
