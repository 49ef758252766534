"""The arguments of vLLM's engine, and the identity that its answers have by them.

An identity is made of the weights and of how they are held, not of a port; a server and the engine in process have the
same one. At an address the weights are known where the model is named by their folder or by their identity. Any other
name belongs to the server: answers are filed under it with the address, since another server may use it for another
model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.chat import canonical_json
from askance.models.local.architectures import architecture_of
from askance.models.local.folder import (
    DIGITS,
    digest_of,
    find_folder,
    identified,
    is_identity,
    json_beside,
    without_cost,
)
from askance.models.settings import Local, ModelSettings, Vllm

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.models.local.folder import ModelFolder

GIB = 1 << 30

OFFLINE: Mapping[str, str] = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Environment variables under which nothing is downloaded and no usage is reported."""


def engine_args(folder: ModelFolder, vllm: Vllm) -> JsonObject:
    """The arguments of vLLM's engine, by its own names."""
    optional = {
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
        "dtype": folder.dtype_in(vllm.dtype),
        "enable_prefix_caching": vllm.share,
        "load_format": "auto" if vllm.pickled else "safetensors",
        # Without this, a model that has nothing to say writes blanks between two JSON tokens until the limit.
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
        **{name: value for name, value in optional.items() if value is not None},
        **vllm.engine,
    }


def command_line(arguments: Mapping[str, Any]) -> list[str]:
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


# --- what is read from a model's folder ---


def folder_of(source: str, vllm: Vllm) -> ModelFolder:
    """The folder that `source`, a path or a name on the hub, stands for.

    Raises:
        ConfigError: there is none on this machine, or it is no whole model's.
    """
    return find_folder(source, _local(vllm), provider="vllm")


def chat_template_for(folder: ModelFolder, family: str | None) -> str | None:
    """The chat template for a model that brings none; None where it brings one."""
    files = ("chat_template.json", "tokenizer_config.json", "processor_config.json")
    if (folder.path / "chat_template.jinja").is_file() or any(
        json_beside(folder.path, file).get("chat_template") for file in files
    ):
        return None
    tokenizer = json_beside(folder.path, "tokenizer_config.json")
    begins = bool(tokenizer.get("add_bos_token", "Llama" in str(tokenizer.get("tokenizer_class"))))
    return ("{{ bos_token }}" if begins else "") + architecture_of(folder.kind, family=family).format.chat_template()


def special_tokens_of(folder: ModelFolder) -> frozenset[str]:
    """Every special token of the model, as it is written."""
    listed: list[Any] = json_beside(folder.path, "tokenizer.json").get("added_tokens") or []
    by_number: Mapping[str, Any] = json_beside(folder.path, "tokenizer_config.json").get("added_tokens_decoder") or {}
    return frozenset(str(token["content"]) for token in (*listed, *by_number.values()) if token.get("special"))


def takes_pictures(folder: ModelFolder) -> bool:
    """Whether the architecture takes pictures, as far as its configuration says."""
    return bool(folder.config.get("vision_config") or folder.config.get("vision_tower"))


# --- identity ---

HARMLESS = frozenset({
    "async_scheduling", "block_size", "cpu_offload_gb", "disable_log_requests", "disable_log_stats",
    "enable_chunked_prefill", "enable_prefix_caching", "enforce_eager", "gpu_memory_utilization",
    "kv_cache_memory_bytes", "kv_offloading_size", "limit_mm_per_prompt", "load_format", "max_model_len",
    "max_num_batched_tokens", "max_num_seqs", "mm_processor_cache_gb", "pipeline_parallel_size", "scheduling_policy",
    "seed", "swap_space", "tensor_parallel_size",
})  # fmt: skip
"""Arguments of the engine that change answers by rounding at most; they are not part of an identity."""


def identity_of(folder: ModelFolder, vllm: Vllm) -> str:
    """`vllm:KIND:DIGEST:DTYPE`, how weights are quantized, and a digest of arguments that can change an answer."""
    deciding = {name: value for name, value in vllm.engine.items() if name not in HARMLESS}
    parts = (
        folder.kind,
        digest_of(folder, _local(vllm))[:DIGITS],
        folder.dtype_in(vllm.dtype),
        *([] if vllm.quantization is None else [re.sub(r"[^\w.-]", "_", vllm.quantization)]),
        *([sha256(canonical_json(deciding).encode()).hexdigest()[:12]] if deciding else []),
    )
    return f"vllm:{':'.join(parts)}"


def with_identity(settings: ModelSettings) -> ModelSettings:
    """`settings` of a `vllm:` model with its identity, its family, and its price: none.

    Raises:
        ConfigError: neither a name was given nor is the model on this machine.
    """
    vllm = settings.vllm or Vllm()
    filled = without_cost(replace(settings, vllm=vllm))
    model = filled.id.model
    if filled.id.name is not None:
        return filled
    if is_identity(model):
        return identified(filled, f"vllm:{model}")
    if filled.id.endpoint is not None and not Path(model).expanduser().is_dir():
        return filled
    folder = folder_of(model, vllm)
    return identified(filled, identity_of(folder, vllm), kind=folder.kind)


def _local(vllm: Vllm) -> Local:
    """What decides which files of a folder count."""
    return Local(revision=vllm.revision, remote_code=vllm.remote_code, pickled=vllm.pickled)
