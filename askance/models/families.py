"""Which family's wording a model is asked in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.models.settings import ModelSettings

FAMILIES: tuple[tuple[re.Pattern[str], str | None], ...] = (
    # Later LLaVAs stand on other language models, which were not tuned on Vicuna's conversations.
    (re.compile(r"llava.*(mistral|mixtral|llama-?3|qwen|onevision|interleave|34b|phi|gemma)|(bak|tiny)-?llava"), None),
    (re.compile(r"blip-?2|instructblip"), "blip"),
    (re.compile(r"minigpt"), "minigpt-4"),
    (re.compile(r"llava|vicuna"), "vicuna"),
)
"""The first pattern found in the model's name, in lower case, decides."""


def family_of(settings: ModelSettings) -> str | None:
    """The family set by hand, else the one that the model's name tells; None is the general wording."""
    return settings.family or family_of_name(settings.id.model)


def family_of_name(model: str) -> str | None:
    """The family of `liuhaotian/llava-v1.5-13b` and its like; None where no wording of its own is known."""
    name = model.lower()
    return next((family for pattern, family in FAMILIES if pattern.search(name)), None)
