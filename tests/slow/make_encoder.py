"""Makes a tiny untrained sentence encoder: `python make_encoder.py FOLDER [POOLING]`, in an environment with torch.

Its vectors mean nothing; how they are made of the tokens can be worked out again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cup", "of", "brick", "on", "the", "table", "find", ":"]
LONGEST = 8
"""Tokens that it reads."""
SIZE = 16
PACKAGE = "sentence_transformers.models"


def make(
    folder: Path,
    pooling: Sequence[str] = ("mean_tokens",),
    *,
    dense: str | None = None,
    prompts: dict[str, str] | None = None,
    prompt: str | None = None,
    inside: str = "",
    plain: bool = False,
) -> None:
    """Writes the encoder into `folder` as sentence encoders are saved.

    Args:
        folder: is made.
        pooling: names of the ways of pooling, as older files have them.
        dense: activation of a dense layer behind the pooling; None is no such layer.
        prompts: by name.
        prompt: name of the one that is used.
        inside: folder of the transformer.
        plain: whether it is the transformer alone, without files that say how it pools.
    """
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    _transformer(folder / inside)
    if plain:
        return
    modules = [
        {"path": inside, "type": f"{PACKAGE}.Transformer"},
        {"path": "1_Pooling", "type": f"{PACKAGE}.Pooling"},
        *([{"path": "2_Dense", "type": f"{PACKAGE}.Dense"}] if dense else []),
        {"path": "3_Normalize", "type": f"{PACKAGE}.Normalize"},
    ]
    _write(folder / "modules.json", [{"idx": at, "name": str(at), **module} for at, module in enumerate(modules)])
    _write(folder / inside / "sentence_bert_config.json", {"max_seq_length": LONGEST, "do_lower_case": False})
    named = {f"pooling_mode_{way}": True for way in pooling}
    off = {} if "mean_tokens" in pooling else {"pooling_mode_mean_tokens": False}
    _write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": SIZE, **named, **off})
    if prompts:
        said = {"prompts": prompts, "default_prompt_name": prompt}
        _write(folder / "config_sentence_transformers.json", said)
    if dense:
        _dense(folder / "2_Dense", dense, size=SIZE * len(pooling))


def _transformer(folder: Path) -> None:
    transformers: Any = import_module("transformers")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(
        vocab={word: number for number, word in enumerate(WORDS)}, model_max_length=32
    )
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=SIZE,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.3,
    )
    transformers.BertModel(config).eval().save_pretrained(folder)


def _dense(folder: Path, activation: str, *, size: int) -> None:
    torch: Any = import_module("torch")
    linear = torch.nn.Linear(size, 12)
    settings = {"in_features": size, "out_features": 12, "bias": True}
    module = "linear" if activation == "Identity" else "activation"
    _write(folder / "config.json", {**settings, "activation_function": f"torch.nn.modules.{module}.{activation}"})
    weights = {"linear.weight": linear.weight.data, "linear.bias": linear.bias.data}
    import_module("safetensors.torch").save_file(weights, str(folder / "model.safetensors"))


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2:3] or ("mean_tokens",))
