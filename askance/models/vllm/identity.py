"""Who answers: known by weights and how they are held, never by a port; a server and the engine in process are one.

At an address the weights are known where the model is named by their folder or by their identity. A name that only the
server knows stands, with the address, for itself: on another day it may be another model's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.chat import canonical_json
from askance.errors import ConfigError
from askance.models.local.folders import find_folder
from askance.models.local.identity import DIGITS, TIMEOUT, digest_of
from askance.models.settings import Local, ModelSettings, Price, Vllm, family_of_name

if TYPE_CHECKING:
    from askance.models.local.folders import Folder

HARMLESS = frozenset({
    "async_scheduling", "block_size", "cpu_offload_gb", "disable_log_requests", "disable_log_stats",
    "enable_chunked_prefill", "enable_prefix_caching", "enforce_eager", "gpu_memory_utilization",
    "kv_cache_memory_bytes", "kv_offloading_size", "limit_mm_per_prompt", "load_format", "max_model_len",
    "max_num_batched_tokens", "max_num_seqs", "mm_processor_cache_gb", "pipeline_parallel_size", "scheduling_policy",
    "seed", "swap_space", "tensor_parallel_size",
})  # fmt: skip
"""Arguments of the engine that change an answer by rounding at most, so that they are no part of an identity."""

_IDENTITY = re.compile(rf"[\w.-]+:[0-9a-f]{{{DIGITS}}}:\w+(:[\w.-]+)*")


def settled(settings: ModelSettings) -> ModelSettings:
    """`settings` of a model of vLLM's with its identity, its family and what such a model costs: nothing.

    Raises:
        ConfigError: neither a name was given nor is the model on this machine.
    """
    vllm = settings.vllm or Vllm()
    price = settings.price or Price(input=0.0, output=0.0)
    filled = replace(settings, vllm=vllm, price=price, timeout=settings.timeout or TIMEOUT)
    model, endpoint = filled.id.model, filled.id.endpoint
    if filled.id.name is not None:
        return filled
    if is_identity(model):
        return replace(filled, id=replace(filled.id, name=f"vllm:{model}"))
    if endpoint is not None and not Path(model).expanduser().is_dir():
        return filled
    folder = folder_of(model, vllm)
    family = filled.family or family_of_name(f"{folder.kind} {Path(model).name}")
    return replace(filled, id=replace(filled.id, name=identity_of(folder, vllm)), family=family)


def is_identity(model: str) -> bool:
    """Whether `model` is what `identity_of` gives, without `vllm:`."""
    return _IDENTITY.fullmatch(model) is not None


def folder_of(source: str, vllm: Vllm) -> Folder:
    """The folder that `source`, a path or a name on the hub, stands for.

    Raises:
        ConfigError: there is none on this machine, or it is no whole model's.
    """
    try:
        return find_folder(source, _files(vllm))
    except ConfigError as error:
        raise ConfigError(_ours(error.message), hint=_ours(error.hint or "") or None) from None


def identity_of(folder: Folder, vllm: Vllm) -> str:
    """`vllm:KIND:DIGEST:DTYPE`, how weights are pressed, and a digest of engine arguments that can change an answer."""
    deciding = {name: value for name, value in vllm.engine.items() if name not in HARMLESS}
    parts = (
        folder.kind,
        digest_of(folder, _files(vllm))[:DIGITS],
        dtype_of(folder, vllm),
        *([] if vllm.quantization is None else [re.sub(r"[^\w.-]", "_", vllm.quantization)]),
        *([_digest(deciding)] if deciding else []),
    )
    return f"vllm:{':'.join(parts)}"


def dtype_of(folder: Folder, vllm: Vllm) -> str:
    """Numbers that the weights are held in."""
    return folder.dtype if vllm.dtype == "auto" else vllm.dtype


def _digest(arguments: Mapping[str, Any]) -> str:
    return sha256(canonical_json(arguments).encode()).hexdigest()[:12]


def _files(vllm: Vllm) -> Local:
    """What decides which files count."""
    return Local(revision=vllm.revision, remote_code=vllm.remote_code, pickled=vllm.pickled)


def _ours(text: str) -> str:
    return text.replace("hf:", "vllm:").replace("`local = {", "`vllm = {")
