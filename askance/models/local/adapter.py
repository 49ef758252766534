"""LoRA adapters of PEFT, on a model of transformers: new ones to be trained, and trained ones added to the weights."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.errors import ConfigError, UsageError, optional_library

if TYPE_CHECKING:
    from askance.models.local.adapter_folder import AdapterFolder

ALL_LINEAR = "all-linear"
"""As a target: every linear layer of the language model but its head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraShape:
    """The matrices of a new adapter."""

    rank: int
    alpha: int
    """Scale, divided by the rank."""
    dropout: float
    targets: Sequence[str] = (ALL_LINEAR,)
    """`ALL_LINEAR`, or ends of names of layers."""


def add_adapter(model: Any, shape: LoraShape, *, spec: str) -> Any:
    """The model with a new adapter, of which alone the parameters require gradients; it changes no answer yet.

    Raises:
        MissingExtra: PEFT is not installed.
        UsageError: the model has no such layers.
    """
    peft = _peft(spec)
    targets: Any = list(shape.targets)
    if ALL_LINEAR in targets:
        targets = _linear_layers(model)
    config = peft.LoraConfig(
        r=shape.rank, lora_alpha=shape.alpha, lora_dropout=shape.dropout, target_modules=targets, bias="none"
    )
    try:
        return _beside(peft, model, config)
    except ValueError as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise UsageError(
            f"No adapter fits the model {spec!r}: {reason}.",
            hint="Name ends of its layers: `-R targets=q_proj,v_proj`.",
        ) from error


def _linear_layers(model: Any) -> str:
    """A pattern of the names of all linear layers of the language model but its head."""
    linear = import_module("torch").nn.Linear
    text = None if model.config.is_encoder_decoder else model.get_decoder()
    head = model.get_output_embeddings()
    modules = list(model.named_modules())
    prefix = next((name for name, each in modules if text is not None and each is text), "")
    inside = [
        name.removeprefix(f"{prefix}.").rpartition(".")[2]
        for name, each in modules
        if isinstance(each, linear) and each is not head and (not prefix or name.startswith(f"{prefix}."))
    ]
    lead = f"{re.escape(prefix)}\\." if prefix else ""
    return rf"{lead}(?:.*\.)?(?:{'|'.join(sorted(set(inside)))})"


def save_adapter(model: Any, folder: Path) -> None:
    """Writes the adapter of a model into a folder, without the base."""
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)  # PEFT's form of a card, not filled in


def with_adapter(model: Any, adapter: AdapterFolder, *, spec: str, merged: bool = True) -> Any:
    """The model with a trained adapter.

    Args:
        model: the base.
        adapter: its adapter.
        spec: of the base, for messages.
        merged: whether its products are added to the weights; on quantized weights they are computed beside.

    Raises:
        MissingExtra: PEFT is not installed.
        ConfigError: the adapter belongs to another base.
    """
    peft = _peft(spec)
    other = ConfigError(
        f"The adapter {str(adapter.path)!r} does not fit the model {spec!r}: it belongs to another base.",
        hint="Name the base that it was trained on.",
    )
    try:
        # Its own loader would import what a configuration names.
        whole = _beside(peft, model, peft.LoraConfig(**adapter.shape))
        weights = peft.utils.load_peft_weights(str(adapter.path), device="cpu")
        report = peft.set_peft_model_state_dict(whole, weights)
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        raise other from error
    needed = [name for name, _ in whole.named_parameters() if "lora_" in name]
    if report.unexpected_keys or len(weights) < len(needed):
        raise other
    return whole.merge_and_unload() if merged else whole


def _beside(peft: Any, model: Any, config: Any) -> Any:
    """The model with new matrices; PEFT asks transformers by names that are going to be others."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        return peft.get_peft_model(model, config)


def _peft(spec: str) -> Any:
    return optional_library(
        "peft", "train", lacking=f"An adapter of the model {spec!r} needs {{}}, which is not installed."
    )
