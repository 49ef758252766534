"""Compositions: a picture in; its verbalization, its atypicality statement, what it argues for out."""

from __future__ import annotations

from askance.chains.chain import Chain, Step
from askance.chains.factories import Context, action_reason, atypicality, concatenate, end_to_end, verbalize
from askance.chains.planned import LinkPlan, Plan
from askance.chains.planning import plan
from askance.chains.reading import LINKS, Given, Link, Reading

__all__ = [
    "LINKS",
    "Chain",
    "Context",
    "Given",
    "Link",
    "LinkPlan",
    "Plan",
    "Reading",
    "Step",
    "action_reason",
    "atypicality",
    "concatenate",
    "end_to_end",
    "plan",
    "verbalize",
]
