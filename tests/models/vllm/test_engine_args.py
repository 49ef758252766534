"""How the engine is set up."""

from __future__ import annotations

import json

import pytest
from jinja2 import Environment

from askance.errors import ConfigError
from askance.models import get_model
from askance.models.config import Config
from askance.models.settings import Vllm
from askance.models.vllm.engine_args import (
    chat_template_for,
    command_line,
    engine_args,
    folder_of,
    special_tokens_of,
)
from tests.models.vllm.conftest import MakeFolder


def test_arguments_by_the_engines_own_names(make_folder: MakeFolder) -> None:
    vllm = Vllm(context=512, cache=0.5, memory=0.4, devices=2, batch=4, share=False, engine={"enforce_eager": True})
    folder = folder_of(str(make_folder()), vllm)

    assert engine_args(folder, vllm) == {
        "model": str(folder.path.resolve()),
        "dtype": "bfloat16",
        "enable_prefix_caching": False,
        "load_format": "safetensors",
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
        "max_model_len": 512,
        "gpu_memory_utilization": 0.4,
        "kv_cache_memory_bytes": 1 << 29,
        "tensor_parallel_size": 2,
        "max_num_seqs": 4,
        "enforce_eager": True,
    }


def test_arguments_as_words_of_a_command_line() -> None:
    given = {"max_model_len": 512, "enforce_eager": True, "enable_prefix_caching": False, "a": {"b": 1}, "c": ["d", 2]}
    assert command_line(given) == [
        "--max-model-len", "512", "--enforce-eager", "--no-enable-prefix-caching", "--a", '{"b": 1}', "--c", "d", "2",
    ]  # fmt: skip


def test_a_model_without_a_template_gets_its_familys_form(make_folder: MakeFolder) -> None:
    tokenizer = json.dumps({"tokenizer_class": "LlamaTokenizer"}).encode()
    bare = folder_of(str(make_folder("bare", kind="llava", tokenizer_config__json=tokenizer)), Vllm())
    own = json.dumps({"chat_template": "{{ messages }}"}).encode()
    templated = folder_of(str(make_folder("own", tokenizer_config__json=own)), Vllm())

    template = chat_template_for(bare, None)
    assert template is not None
    text = (
        Environment(autoescape=False)
        .from_string(template)
        .render(messages=[{"role": "user", "content": "<image>\nWhat?"}], bos_token="<s>", eos_token="</s>")
    )
    assert text == "<s>USER: <image>\nWhat? ASSISTANT:"
    assert chat_template_for(templated, None) is None


def test_marks_are_read_from_the_tokenizer(make_folder: MakeFolder) -> None:
    tokenizer = {"added_tokens": [{"content": "<image>", "special": True}, {"content": "word", "special": False}]}
    folder = folder_of(str(make_folder(tokenizer__json=json.dumps(tokenizer).encode())), Vllm())
    assert special_tokens_of(folder) == {"<image>"}


@pytest.mark.parametrize("value", [{"odd": 1}, {"port": 70_000}, {"memory": 2}, "fast"], ids=str)
def test_settings_that_do_not_fit_are_named(value: object) -> None:
    with pytest.raises(ConfigError, match=r"does not fit 'vllm'.* Wanted: a table with any of `in_process`, "):
        get_model("vllm:m@http://localhost:8000", vllm=value, config=Config())
