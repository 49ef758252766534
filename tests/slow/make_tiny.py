"""Makes tiny untrained models, one folder a family: `python make_tiny.py FOLDER`, in an environment with transformers.

What they say means nothing; that it is the same however they are asked is what the tests look at. Their weights are
spread wide, so that the likeliest token is far ahead of the next.
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

CORPUS = [
    "What is unusual about this image? Name at most five objects, and describe what you see.",
    '{"objects": ["a bottle", "a feather"], "unusual": "the surface of the bottle is made of feathers"}',
    "You look closely at an image and answer a question about it. Answer with one JSON object and nothing else.",
]
SPECIAL = ["<pad>", "<s>", "</s>", "<image>", "<|im_start|>", "<|im_end|>", "<boi>", "<eoi>"]
QWEN = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
INTERN = ["<img>", "</img>", "<IMG_CONTEXT>"]
IDEFICS = ["<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
LONGEST = 2048

TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif -%}
{%- endfor -%}
{%- endif %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}
"""
TEXT = {
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": LONGEST,
    "initializer_range": 0.3,
}
EYES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}
SIDE = {"height": 32, "width": 32}


def words(*more: str, picture: str = "<image>", template: bool = True) -> Any:
    """A tokenizer of bytes and their frequent pairs."""
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    raw.train_from_iterator(
        CORPUS,
        tokenizers.trainers.BpeTrainer(
            vocab_size=480,
            special_tokens=[*SPECIAL, *more],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    made = t.PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        extra_special_tokens=[*SPECIAL[3:], *more],
        model_max_length=LONGEST,
    )
    if template:
        made.chat_template = TEMPLATE.replace("IMAGE", picture)
    return made


def ends(made: Any) -> dict[str, Any]:
    return {
        "vocab_size": (len(made) + 63) // 64 * 64,
        "bos_token_id": made.bos_token_id,
        "eos_token_id": made.eos_token_id,
        "pad_token_id": made.pad_token_id,
    }


def llama(folder: Path) -> None:
    made = words()
    t.LlamaForCausalLM(t.LlamaConfig(**TEXT, **ends(made))).save_pretrained(folder)
    made.save_pretrained(folder)


def vicuna(folder: Path) -> None:
    """Like `llama`, without a chat template."""
    made = words(template=False)
    t.LlamaForCausalLM(t.LlamaConfig(**TEXT, **ends(made))).save_pretrained(folder)
    made.save_pretrained(folder)


def t5(folder: Path) -> None:
    made = words(template=False)
    config = t.T5Config(
        d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, initializer_factor=3.0, decoder_start_token_id=0,
        **ends(made),
    )  # fmt: skip
    t.T5ForConditionalGeneration(config).save_pretrained(folder)
    made.save_pretrained(folder)


def llava_next(folder: Path) -> None:
    """Like `llava`; a picture is cut into tiles, and says how large it was."""
    made = words(template=False)
    mark = made.convert_tokens_to_ids("<image>")
    grid = [[32, 64], [64, 32], [64, 64]]
    config = t.LlavaNextConfig(
        text_config=t.LlamaConfig(**TEXT, **ends(made)),
        vision_config=t.CLIPVisionConfig(**EYES, projection_dim=32, initializer_range=0.3),
        image_token_id=mark,
        image_token_index=mark,
        image_grid_pinpoints=grid,
        vision_feature_layer=-1,
    )
    t.LlavaNextForConditionalGeneration(config).save_pretrained(folder)
    pixels = t.LlavaNextImageProcessorPil(size={"shortest_edge": 32}, crop_size=SIDE, image_grid_pinpoints=grid)
    t.LlavaNextProcessor(
        pixels, made, patch_size=8, vision_feature_select_strategy="default", num_additional_image_tokens=1,
    ).save_pretrained(folder)  # fmt: skip


def vipllava(folder: Path) -> None:
    """Like `llava`; reads several layers of the vision tower."""
    made = words(template=False)
    mark = made.convert_tokens_to_ids("<image>")
    config = t.VipLlavaConfig(
        text_config=t.LlamaConfig(**TEXT, **ends(made)),
        vision_config=t.CLIPVisionConfig(**EYES, projection_dim=32, initializer_range=0.3),
        image_token_id=mark,
        image_token_index=mark,
        vision_feature_layers=[-2, -1],
    )
    t.VipLlavaForConditionalGeneration(config).save_pretrained(folder)
    pixels = t.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=SIDE)
    t.LlavaProcessor(
        pixels, made, patch_size=8, vision_feature_select_strategy="default", num_additional_image_tokens=1,
    ).save_pretrained(folder)  # fmt: skip


def internvl(folder: Path) -> None:
    """Saved without its processor, which needs torchvision."""
    made = words(*INTERN, template=False)
    config = t.InternVLConfig(
        text_config=t.LlamaConfig(**TEXT, **ends(made)),
        vision_config={
            **EYES, "image_size": [32, 32], "patch_size": [8, 8], "initializer_range": 0.3,
            "layer_scale_init_value": 1.0,
        },
        image_token_id=made.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=4,
        tie_word_embeddings=False,
    )  # fmt: skip
    t.InternVLForConditionalGeneration(config).save_pretrained(folder)
    t.GotOcr2ImageProcessorPil(size=SIDE, crop_to_patches=True, min_patches=1, max_patches=4).save_pretrained(folder)
    made.save_pretrained(folder)


def llava(folder: Path, *, template: bool = False) -> None:
    made = words(template=template)
    mark = made.convert_tokens_to_ids("<image>")
    config = t.LlavaConfig(
        text_config=t.LlamaConfig(**TEXT, **ends(made)),
        vision_config=t.CLIPVisionConfig(**EYES, projection_dim=32, initializer_range=0.3),
        image_token_id=mark,
        image_token_index=mark,
        vision_feature_layer=-1,
    )
    t.LlavaForConditionalGeneration(config).save_pretrained(folder)
    pixels = t.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=SIDE)
    t.LlavaProcessor(
        pixels, made, patch_size=8, vision_feature_select_strategy="default", num_additional_image_tokens=1,
        chat_template=made.chat_template,
    ).save_pretrained(folder)  # fmt: skip


def idefics3(folder: Path) -> None:
    made = words(*IDEFICS)
    config = t.Idefics3Config(
        text_config=t.LlamaConfig(**TEXT, **ends(made)),
        vision_config={**EYES, "num_attention_heads": 2},
        image_token_id=made.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=made.pad_token_id,
    )
    t.Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    edge = {"longest_edge": 32}
    pixels = t.Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    t.Idefics3Processor(pixels, made, image_seq_len=4, chat_template=made.chat_template).save_pretrained(folder)


def gemma3(folder: Path) -> None:
    made = words("<image_soft_token>", picture="<boi>")
    made.boi_token, made.eoi_token, made.image_token = "<boi>", "<eoi>", "<image_soft_token>"
    for name in ("boi_token", "eoi_token", "image_token"):
        setattr(made, f"{name}_id", made.convert_tokens_to_ids(getattr(made, name)))
    text = {**TEXT, "tie_word_embeddings": False, "head_dim": 12, "sliding_window": 512, "query_pre_attn_scalar": 12}
    config = t.Gemma3Config(
        text_config=t.Gemma3TextConfig(**text, **ends(made)),
        vision_config=t.SiglipVisionConfig(**EYES),
        mm_tokens_per_image=4,
        tie_word_embeddings=False,
        boi_token_index=made.boi_token_id,
        eoi_token_index=made.eoi_token_id,
        image_token_id=made.image_token_id,
        image_token_index=made.image_token_id,
    )
    model = t.Gemma3ForConditionalGeneration(config)
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight)  # otherwise nothing is seen
    model.save_pretrained(folder)
    pixels = t.Gemma3ImageProcessorPil(size=SIDE)
    made._set_model_specific_special_tokens(
        {"boi_token": "<boi>", "eoi_token": "<eoi>", "image_token": "<image_soft_token>"}
    )
    t.Gemma3Processor(pixels, made, image_seq_length=4, chat_template=made.chat_template).save_pretrained(folder)


def qwen2_vl(folder: Path) -> None:
    made = words(*QWEN, picture="<|vision_start|><|image_pad|><|vision_end|>")
    marks = {f"{name}_token_id": made.convert_tokens_to_ids(mark) for name, mark in zip(
        ("vision_start", "vision_end", "image", "video"), QWEN, strict=True
    )}  # fmt: skip
    config = t.Qwen2VLConfig(
        text_config={
            **TEXT, **ends(made), "rope_parameters": {"rope_type": "default", "mrope_section": [2, 2, 2]},
        },
        vision_config={
            "depth": 2, "embed_dim": 32, "hidden_size": 48, "num_heads": 2, "patch_size": 8, "mlp_ratio": 2,
            "initializer_range": 0.3,
        },
        **marks,
    )  # fmt: skip
    t.Qwen2VLForConditionalGeneration(config).save_pretrained(folder)
    t.Qwen2VLImageProcessorPil(patch_size=8, min_pixels=16 * 16, max_pixels=64 * 64).save_pretrained(folder)
    made.save_pretrained(folder)


def qwen2_5_vl(folder: Path) -> None:
    """Like `qwen2_vl`; the vision tower looks through windows, and there is no chat template."""
    made = words(*QWEN, template=False)
    marks = {f"{name}_token_id": made.convert_tokens_to_ids(mark) for name, mark in zip(
        ("vision_start", "vision_end", "image", "video"), QWEN, strict=True
    )}  # fmt: skip
    config = t.Qwen2_5_VLConfig(
        text_config={
            **TEXT, **ends(made), "rope_parameters": {"rope_type": "default", "mrope_section": [2, 2, 2]},
        },
        vision_config={
            "depth": 2, "hidden_size": 32, "out_hidden_size": 48, "num_heads": 2, "patch_size": 8,
            "intermediate_size": 64, "window_size": 32, "fullatt_block_indexes": [1], "initializer_range": 0.3,
        },
        **marks,
    )  # fmt: skip
    t.Qwen2_5_VLForConditionalGeneration(config).save_pretrained(folder)
    t.Qwen2VLImageProcessorPil(patch_size=8, min_pixels=16 * 16, max_pixels=64 * 64).save_pretrained(folder)
    made.save_pretrained(folder)


def _blip(folder: Path, config: Any, model: Any, processor: Any, **more: Any) -> None:
    made = words(template=False)
    text = t.OPTConfig(
        hidden_size=48, word_embed_proj_dim=48, ffn_dim=64, num_hidden_layers=3, num_attention_heads=4,
        max_position_embeddings=LONGEST, init_std=0.3, do_layer_norm_before=True, **ends(made),
    )  # fmt: skip
    former = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
        "encoder_hidden_size": 32, "initializer_range": 0.3, "vocab_size": text.vocab_size,
    }  # fmt: skip
    mark = made.convert_tokens_to_ids("<image>")
    settings = config(
        vision_config={**EYES, "initializer_range": 0.3}, qformer_config=former,
        text_config=text.to_dict(), num_query_tokens=4,
        image_token_index=mark, image_token_id=mark,
    )  # fmt: skip
    made_model = model(settings)
    torch.nn.init.normal_(made_model.query_tokens)
    made_model.save_pretrained(folder)
    processor(t.BlipImageProcessorPil(size=SIDE), made, num_query_tokens=4, **more).save_pretrained(folder)


def blip2(folder: Path) -> None:
    _blip(folder, t.Blip2Config, t.Blip2ForConditionalGeneration, t.Blip2Processor)


def instructblip(folder: Path) -> None:
    _blip(
        folder, t.InstructBlipConfig, t.InstructBlipForConditionalGeneration, t.InstructBlipProcessor,
        qformer_tokenizer=words(template=False),
    )  # fmt: skip


FAMILIES: dict[str, Callable[[Path], None]] = {
    "blip2": blip2,
    "gemma3": gemma3,
    "idefics3": idefics3,
    "instructblip": instructblip,
    "internvl": internvl,
    "llama": llama,
    "llava": llava,
    "llava-next": llava_next,
    "qwen2-vl": qwen2_vl,
    "qwen2.5-vl": qwen2_5_vl,
    "t5": t5,
    "vicuna": vicuna,
    "vipllava": vipllava,
}

if __name__ == "__main__":
    for name in sys.argv[2:] or FAMILIES:
        torch.manual_seed(7)
        FAMILIES[name](Path(sys.argv[1]) / name)
