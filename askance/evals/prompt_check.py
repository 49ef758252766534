"""Prompts of a run that a trained model of this machine has not learnt, said before anything is asked."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.models.local.adapter_folder import learnt_prompts

if TYPE_CHECKING:
    from askance.models import Model
    from askance.nodes import Node

_log = logging.getLogger("askance")


def warn_of_prompts(nodes: Iterable[Node[Any, Any]]) -> None:
    """Warns, once in a process, of prompts that are not among those which a model's training examples were asked in.

    Nothing is said of a model that was not trained by `askance train`, or of whose examples nobody knows the prompts.

    Args:
        nodes: that are to ask.
    """
    asked: dict[Model, dict[str, str]] = {}
    for node in nodes:
        others = () if node.extractor is None else node.extractor.prompts_in_use
        own = {prompt.path.name: prompt.digest for prompt in node.prompts_in_use if prompt not in others}
        asked.setdefault(node.model, {}).update(own)
    for model, prompts in asked.items():
        learnt = _learnt(model)
        unknown = [name for name, digest in prompts.items() if digest not in learnt]
        if learnt and unknown:
            warn_once(str(model.id), ", ".join(map(repr, unknown)))


@cache
def warn_once(model: str, prompts: str) -> None:
    """Says so for the first of many shards, grid rows or tasks."""
    _log.warning(
        "%s was trained in other prompts than %s, so its answers to them may be worse. Ask in the prompts of its "
        "training set, or train it in these.",
        model,
        prompts,
    )


def _learnt(model: Model) -> frozenset[str]:
    """Digests of the prompts that a model has learnt; empty where nothing says so."""
    settings = model.settings
    if settings.id.provider not in {"hf", "vllm"}:
        return frozenset()
    adapter = None if settings.local is None else settings.local.adapter
    return learnt_prompts(Path(adapter or settings.id.model).expanduser())
