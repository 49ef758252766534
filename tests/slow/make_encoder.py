"""Makes a tiny untrained sentence encoder: `python make_encoder.py FOLDER [POOLING]`, in an environment with torch.

Its vectors mean nothing; how they are made of the tokens can be worked out again.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cup", "of", "brick", "on", "the", "table"]
LONGEST = 8
"""Tokens that it reads."""


def make(folder: Path, pooling: str) -> None:
    """Writes the encoder into `folder` as sentence encoders are saved."""
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(
        vocab={word: number for number, word in enumerate(WORDS)}, model_max_length=32
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    transformers.BertModel(config).eval().save_pretrained(folder)
    modules = [{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}]
    _write(folder / "modules.json", modules)
    _write(folder / "sentence_bert_config.json", {"max_seq_length": LONGEST})
    (folder / "1_Pooling").mkdir(exist_ok=True)
    _write(folder / "1_Pooling" / "config.json", {f"pooling_mode_{pooling}": True})


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "mean_tokens")
