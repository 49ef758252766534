"""Compositions: a picture in; its verbalization, its atypicality statement, what it argues for out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from askance.chains.catalog import (
    about_picture,
    action_reason,
    atypicality,
    end_to_end,
    explain,
    identify,
    verbalize,
)
from askance.chains.chain import Chain, Step
from askance.chains.context import Context, SeenContext, concatenate
from askance.chains.state import (
    ANSWERS,
    DESCRIPTION,
    LINKS,
    NARRATION,
    OBJECTS,
    REPLY,
    SCENE_TEXT,
    STATEMENT,
    UNUSUAL,
    Given,
    Link,
    Reading,
    optional,
    picture,
    required,
)

if TYPE_CHECKING:
    from askance.chains.batch import read_in_batches
    from askance.chains.planner import LinkPlan, Plan, Planner, plan

_LAZY = {
    "LinkPlan": "askance.chains.planner",
    "Plan": "askance.chains.planner",
    "Planner": "askance.chains.planner",
    "plan": "askance.chains.planner",
    "read_in_batches": "askance.chains.batch",
}
"""Names that a reading does not need, and with which much else is loaded."""

__all__ = [
    "ANSWERS",
    "DESCRIPTION",
    "LINKS",
    "NARRATION",
    "OBJECTS",
    "REPLY",
    "SCENE_TEXT",
    "STATEMENT",
    "UNUSUAL",
    "Chain",
    "Context",
    "Given",
    "Link",
    "LinkPlan",
    "Plan",
    "Planner",
    "Reading",
    "SeenContext",
    "Step",
    "about_picture",
    "action_reason",
    "atypicality",
    "concatenate",
    "end_to_end",
    "explain",
    "identify",
    "optional",
    "picture",
    "plan",
    "read_in_batches",
    "required",
    "verbalize",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
