"""How the engine is set up: arguments, as its own names and as words of a command line. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from askance.models.local.forms import chat_template
from askance.models.local.kinds import form_of
from askance.models.vllm.identity import dtype_of

if TYPE_CHECKING:
    from pathlib import Path

    from askance.chat import JsonObject
    from askance.models.local.folders import Folder
    from askance.models.settings import Vllm

GIB = 1 << 30

OFFLINE: Mapping[str, str] = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Variables under which nothing is downloaded and nobody is told."""


def engine_arguments(folder: Folder, vllm: Vllm) -> JsonObject:
    """The arguments of vLLM's engine, by its own names."""
    given = {
        "max_model_len": vllm.context,
        "gpu_memory_utilization": vllm.memory,
        "kv_cache_memory_bytes": None if vllm.cache is None else int(vllm.cache * GIB),
        "tensor_parallel_size": vllm.devices if vllm.devices > 1 else None,
        "max_num_seqs": vllm.batch,
        "quantization": vllm.quantization,
        "trust_remote_code": True if vllm.remote_code else None,
    }
    return {
        "model": str(folder.path.resolve()),
        "dtype": dtype_of(folder, vllm),
        "enable_prefix_caching": vllm.share,
        "load_format": "auto" if vllm.pickled else "safetensors",
        # Without this, a model that has nothing to say writes blanks between two JSON tokens until the limit.
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
        **{name: value for name, value in given.items() if value is not None},
        **vllm.engine,
    }


def words(arguments: Mapping[str, Any]) -> list[str]:
    """`arguments` as the words of a command line."""
    return [word for name, value in arguments.items() for word in _words(name.replace("_", "-"), value)]


def _words(name: str, value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield f"--{name}" if value else f"--no-{name}"
        return
    yield f"--{name}"
    if isinstance(value, Mapping):
        yield json.dumps(value)
    elif isinstance(value, (list, tuple)):
        yield from map(str, cast("list[object]", value))
    else:
        yield str(value)


def template_for(folder: Folder, family: str | None) -> str | None:
    """The chat template of a model that brings none; None where it brings one."""
    if any(_has_template(folder.path / name) for name in ("chat_template.jinja", *_TEMPLATED)):
        return None
    begin = "{{ bos_token }}" if _begins(_json(folder.path / "tokenizer_config.json")) else ""
    return begin + chat_template(form_of(folder.kind, family))


_TEMPLATED = ("chat_template.json", "tokenizer_config.json", "processor_config.json")


def _has_template(file: Path) -> bool:
    return file.is_file() and (file.suffix == ".jinja" or bool(_json(file).get("chat_template")))


def _begins(tokenizer: JsonObject) -> bool:
    """Whether the tokenizer begins a text with a mark of its own."""
    return bool(tokenizer.get("add_bos_token", "Llama" in str(tokenizer.get("tokenizer_class"))))


def marks_of(folder: Folder) -> frozenset[str]:
    """Every special token of the model, as it is written."""
    listed: list[Any] = _json(folder.path / "tokenizer.json").get("added_tokens") or []
    named: Mapping[str, Any] = _json(folder.path / "tokenizer_config.json").get("added_tokens_decoder") or {}
    return frozenset(str(token["content"]) for token in (*listed, *named.values()) if token.get("special"))


def sees(folder: Folder) -> bool:
    """Whether the architecture has eyes, as far as its configuration says."""
    return bool(folder.config.get("vision_config") or folder.config.get("vision_tower"))


def _json(file: Path) -> JsonObject:
    with suppress(OSError, ValueError):
        found: object = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return cast("JsonObject", found)
    return {}
