"""Makes a tiny untrained classifier of answers: `python make_classifier.py FOLDER SEGMENTS`, beside torch.

Its scores mean nothing; how they are made of the tokens can be worked out again. With `HEADLESS` for SEGMENTS it is
saved without the layer that tells classes apart.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cup", "of", "brick", "what", "is", "it", "?", "the", "two"]
LONGEST = 24
"""Tokens that it reads."""


def make(folder: Path, segments: str) -> None:
    """Writes the classifier into `folder`."""
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = transformers.BertTokenizerFast(
        vocab={word: number for number, word in enumerate(WORDS)}, model_max_length=LONGEST
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    headless = segments == "HEADLESS"
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LONGEST,
        type_vocab_size=2 if headless else int(segments),
        initializer_range=1.0,
    )
    model = transformers.BertForSequenceClassification(config).eval()
    if headless:
        model.bert.config.architectures = None
        model.bert.save_pretrained(folder)
        config.architectures = ["BertForSequenceClassification"]
        config.save_pretrained(folder)
    else:
        model.save_pretrained(folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2])
