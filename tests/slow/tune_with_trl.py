"""Tunes a model on a training set by TRL alone, without askance: `python tune_with_trl.py SET MODEL OUT`.

It prints the losses as JSON.
"""

# datasets and TRL are installed where this script runs, not where it is type-checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import sys

from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor
from trl import SFTConfig, SFTTrainer

where, model, out = sys.argv[1:]
splits = load_dataset(where)
sees = "images" in splits["train"].column_names
trainer = SFTTrainer(
    model=(AutoModelForImageTextToText if sees else AutoModelForCausalLM).from_pretrained(model),
    processing_class=AutoProcessor.from_pretrained(model),
    train_dataset=splits["train"],
    eval_dataset=splits["validation"],
    peft_config=LoraConfig(target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
    args=SFTConfig(
        output_dir=out,
        max_length=None,  # a length cuts the tokens of pictures
        max_steps=6,
        per_device_train_batch_size=2,
        learning_rate=1e-2,
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=3,
        bf16=False,
        gradient_checkpointing=False,
        use_cpu=True,
        report_to="none",
        seed=0,
    ),
)
trainer.train()
history = trainer.state.log_history
told = {
    "columns": sorted(splits["train"].column_names),
    "losses": [each["loss"] for each in history if "loss" in each],
    "validation": [each["eval_loss"] for each in history if "eval_loss" in each],
    "askance": "askance" in sys.modules,
}
sys.stdout.write(f"\n{json.dumps(told)}\n")
