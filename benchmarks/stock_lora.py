"""LoRA on a training set by TRL and PEFT alone, as their pages show it: `python stock_lora.py SET MODEL OUT BATCH`.

What `training.py` measures `askance train lora` against. It knows nothing of askance, and writes when each step ended
into OUT/steps.json, in seconds.
"""

# Torch, TRL and their like are installed where this script runs, not where it is type-checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import SFTConfig, SFTTrainer

where, model, out, batch = sys.argv[1:]
ended: list[float] = []


class Clock(TrainerCallback):
    """Notes when a step ends."""

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Notes it."""
        ended.append(time.perf_counter())


trainer = SFTTrainer(
    model=AutoModelForCausalLM.from_pretrained(model, dtype="float32"),
    processing_class=AutoTokenizer.from_pretrained(model),
    train_dataset=load_dataset(where)["train"],
    peft_config=LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear", task_type="CAUSAL_LM"),
    args=SFTConfig(
        output_dir=out,
        max_length=None,
        num_train_epochs=1,
        per_device_train_batch_size=int(batch),
        learning_rate=2e-4,
        warmup_steps=10,
        logging_steps=1,
        save_strategy="no",
        bf16=False,
        gradient_checkpointing=False,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        seed=0,
    ),
    callbacks=[Clock()],
)
trainer.train()
trainer.save_model(out)
(Path(out) / "steps.json").write_text(json.dumps(ended), encoding="utf-8")
