"""The prompts: one file each, the package's or the user's own, checked when read, rendered in a sandbox."""

from __future__ import annotations

from askance.prompts.fencing import fence, harmless, oneline
from askance.prompts.files import FORMS, Form, TurnRole
from askance.prompts.frontmatter import Input, InputKind, Value
from askance.prompts.library import PromptLibrary, overlaid
from askance.prompts.problems import Problem
from askance.prompts.prompt import Prompt, Turn

__all__ = [
    "FORMS",
    "Form",
    "Input",
    "InputKind",
    "Problem",
    "Prompt",
    "PromptLibrary",
    "Turn",
    "TurnRole",
    "Value",
    "fence",
    "harmless",
    "oneline",
    "overlaid",
]
