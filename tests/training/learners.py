"""Tiny models that learn in seconds; to be called where torch and transformers are."""

# torch and transformers are installed where this runs, not where it is type-checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers as t

from tests.slow import make_duals, make_tiny

TOWER = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
SIDE = {"height": 32, "width": 32}


def clip(folder: Path) -> None:
    """Untrained as CLIP begins, so that it can learn."""
    words = make_duals.words(end=False)
    text = {**TOWER, "vocab_size": len(words), "max_position_embeddings": make_duals.LONGEST}
    ends = {name: getattr(words, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    eyes = {**TOWER, "image_size": 32, "patch_size": 8}
    t.CLIPModel(t.CLIPConfig(text_config={**text, **ends}, vision_config=eyes, projection_dim=32)).save_pretrained(
        folder
    )
    words.save_pretrained(folder)
    t.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=SIDE).save_pretrained(folder)


def t5(folder: Path) -> None:
    words = make_tiny.words(template=False)
    t.T5ForConditionalGeneration(t.T5Config(**_t5(words))).save_pretrained(folder)
    words.save_pretrained(folder)


def blip2_t5(folder: Path) -> None:
    """BLIP-2 on an encoder–decoder, as FlanT5 is."""
    words = make_tiny.words(template=False)
    mark = words.convert_tokens_to_ids("<image>")
    former = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
        "encoder_hidden_size": 32, "initializer_range": 0.3, "vocab_size": len(words),
    }  # fmt: skip
    settings = t.Blip2Config(
        vision_config={**make_tiny.EYES, "initializer_range": 0.3}, qformer_config=former,
        text_config=t.T5Config(**_t5(words)).to_dict(), num_query_tokens=4,
        image_token_index=mark, image_token_id=mark,
    )  # fmt: skip
    model = t.Blip2ForConditionalGeneration(settings)
    torch.nn.init.normal_(model.query_tokens)
    model.save_pretrained(folder)
    t.Blip2Processor(t.BlipImageProcessorPil(size=SIDE), words, num_query_tokens=4).save_pretrained(folder)


def _t5(words: Any) -> dict[str, Any]:
    shape = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
    return {**shape, **make_tiny.ends(words)}


LEARNERS: dict[str, Callable[[Path], None]] = {
    **make_tiny.FAMILIES,
    "blip2-t5": blip2_t5,
    "clip": clip,
    "t5": t5,
}
