"""Makes an untrained model of SmolVLM-256M's shape, to measure with: what it says means nothing, what it takes does.

    python benchmarks/shaped.py TEXT-FOLDER FOLDER

TEXT-FOLDER holds SmolLM2-135M, whose weights are the language half. The other half is the vision tower of that model:
12 layers of 768, pictures of 512 pixels in patches of 16, joined into 64 tokens; one tile a picture. Needs the extra
`local`.
"""

# torch and transformers are installed where this script runs, not where it is type-checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import sys

import torch
import transformers

SPECIAL = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
EYES = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 512,
    "patch_size": 16,
}
JOINED = 4
TOKENS = (512 // 16 // JOINED) ** 2


def main(source: str, folder: str) -> None:
    """Write the model in `folder`."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    words = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    words.resize_token_embeddings((len(tokenizer) + 63) // 64 * 64)
    torch.manual_seed(0)
    config = transformers.Idefics3Config(
        text_config=words.config.to_dict(),
        vision_config=EYES,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=JOINED,
        pad_token_id=words.config.pad_token_id,
        tie_word_embeddings=True,
    )
    model = transformers.Idefics3ForConditionalGeneration(config)
    model.model.text_model.load_state_dict(words.model.state_dict())
    model.tie_weights()
    model.save_pretrained(folder)
    edge = {"longest_edge": 512}
    pixels = transformers.Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    transformers.Idefics3Processor(pixels, tokenizer, image_seq_len=TOKENS, chat_template=TEMPLATE).save_pretrained(
        folder
    )


TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{% for part in message['content'] -%}
{%- if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif -%}
{%- endfor %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}
"""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
