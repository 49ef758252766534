"""Compositions: a picture in; its verbalization, its atypicality statement, what it argues for out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from askance.chains.chain import Chain, Step
from askance.chains.factories import Context, action_reason, atypicality, concatenate, end_to_end, verbalize
from askance.chains.reading import LINKS, Given, Link, Reading

if TYPE_CHECKING:
    from askance.chains.batches import read_in_batches
    from askance.chains.oddities import SeenContext, about_picture, explain, identify
    from askance.chains.planner import LinkPlan, Plan, Planner, plan

_LAZY = {
    "LinkPlan": "askance.chains.planner",
    "Plan": "askance.chains.planner",
    "Planner": "askance.chains.planner",
    "SeenContext": "askance.chains.oddities",
    "about_picture": "askance.chains.oddities",
    "explain": "askance.chains.oddities",
    "identify": "askance.chains.oddities",
    "plan": "askance.chains.planner",
    "read_in_batches": "askance.chains.batches",
}
"""Names that a reading does not need, and with which much else is loaded."""

__all__ = [
    "LINKS",
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
    "plan",
    "read_in_batches",
    "verbalize",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
