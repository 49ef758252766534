"""Makes tiny untrained dual encoders, one folder a family: `python make_duals.py FOLDER`, where transformers is.

What they say means nothing; how it is made of pictures and texts can be worked out again.
"""

# torch and transformers are installed where this script runs, not where it is type-checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers as t

LONGEST = 16
"""Tokens that texts may have, marks included."""
CORPUS = [
    "a cup made of bricks, a horse on a coin, a bottle covered with feathers. The slogan says: a solid start!",
    "What is odd about the poster? The lipstick is a rocket. Buy tea, drink tea; sleep well tonight.",
]
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
EYES = {**SMALL, "image_size": 32, "patch_size": 8}
SIDE = {"height": 32, "width": 32}


def words(*, end: bool) -> Any:
    """A tokenizer of bytes and their frequent pairs that puts marks around a text, or one behind it."""
    raw = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    raw.normalizer = tokenizers.normalizers.Lowercase()
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<unk>", "<pad>", "<s>", "</s>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(CORPUS, trainer)
    raw.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>" if end else "<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    names = ["input_ids"] if end else ["input_ids", "attention_mask"]
    return t.PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        pad_token="</s>" if end else "<pad>", model_max_length=LONGEST, model_input_names=names,
    )  # fmt: skip


def clip(folder: Path) -> None:
    made = words(end=False)
    text = {**SMALL, "vocab_size": len(made), "max_position_embeddings": LONGEST, "eos_token_id": made.eos_token_id}
    more = {"bos_token_id": made.bos_token_id, "pad_token_id": made.pad_token_id}
    config = t.CLIPConfig(text_config={**text, **more}, vision_config=EYES, projection_dim=24)
    _save(folder, t.CLIPModel(config), made, t.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=SIDE))


def siglip(folder: Path) -> None:
    made = words(end=True)
    text = {**SMALL, "vocab_size": len(made), "max_position_embeddings": LONGEST, "projection_size": 32}
    config = t.SiglipConfig(text_config=text, vision_config=EYES)
    _save(folder, t.SiglipModel(config), made, t.SiglipImageProcessorPil(size=SIDE))


def siglip2(folder: Path) -> None:
    """With pictures in patches, as many as they have room for."""
    made = words(end=True)
    text = {**SMALL, "vocab_size": len(made), "max_position_embeddings": LONGEST, "projection_size": 32}
    config = t.Siglip2Config(text_config=text, vision_config={**SMALL, "patch_size": 8, "num_patches": 16})
    _save(folder, t.Siglip2Model(config), made, t.Siglip2ImageProcessorPil(patch_size=8, max_num_patches=16))


def _save(folder: Path, model: Any, tokenizer: Any, pixels: Any) -> None:
    for name, weights in model.named_parameters():
        # Untrained towers tell little apart; spread wide, they do.
        if weights.ndim > 1:
            torch.nn.init.normal_(weights, std=0.3)
        elif name == "logit_scale":
            torch.nn.init.constant_(weights, 2.5)
        elif name == "logit_bias":
            torch.nn.init.constant_(weights, -1.5)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    pixels.save_pretrained(folder)


DUALS: dict[str, Callable[[Path], None]] = {"clip": clip, "siglip": siglip, "siglip2": siglip2}

if __name__ == "__main__":
    for family in sys.argv[2:] or DUALS:
        torch.manual_seed(7)
        DUALS[family](Path(sys.argv[1]) / family)
