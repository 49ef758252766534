"""Compositions: a picture in; its verbalization, its atypicality statement, what it argues for out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.chains.chain import Chain, Step
from askance.chains.factories import Context, action_reason, atypicality, concatenate, end_to_end, verbalize
from askance.chains.planned import LinkPlan, Plan
from askance.chains.planning import plan
from askance.chains.reading import LINKS, Given, Link, Reading

if TYPE_CHECKING:
    from askance.chains.batches import read_in_batches

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
    "read_in_batches",
    "verbalize",
]


def __getattr__(name: str) -> object:
    if name == "read_in_batches":  # with it comes all that batches need
        from askance.chains.batches import read_in_batches

        return read_in_batches
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
