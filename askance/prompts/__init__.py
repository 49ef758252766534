"""The prompts: one file each, the package's or the user's own, checked when read, rendered in a sandbox."""

from __future__ import annotations

from askance.prompts.fencing import fence, harmless, oneline
from askance.prompts.frontmatter import Input, InputKind, InputValue
from askance.prompts.library import PromptLibrary, overlay_prompts
from askance.prompts.prompt import Prompt, PromptTurn
from askance.prompts.prompt_file import FORMS, Form, PromptProblem, TurnRole

__all__ = [
    "FORMS",
    "Form",
    "Input",
    "InputKind",
    "InputValue",
    "Prompt",
    "PromptLibrary",
    "PromptProblem",
    "PromptTurn",
    "TurnRole",
    "fence",
    "harmless",
    "oneline",
    "overlay_prompts",
]
