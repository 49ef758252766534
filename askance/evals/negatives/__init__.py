"""Hard negatives: written for a data set, audited, and put before people."""

from __future__ import annotations

from askance.evals.negatives.audit import Asked, Embeds, aaudit
from askance.evals.negatives.audited import Audit, Audited
from askance.evals.negatives.blind import Blind, BlindImage
from askance.evals.negatives.files import (
    HardNegative,
    OptionSet,
    Source,
    read_negatives,
    read_sources,
)
from askance.evals.negatives.generate import Written, agenerate, generate
from askance.evals.negatives.giveaways import GiveAways, Tell
from askance.evals.negatives.lengths import Lengths
from askance.evals.negatives.ratings import Rater, Validation, read_ratings, validate, validation_text
from askance.evals.negatives.recipe import Recipe
from askance.evals.negatives.report import apply, audit_form, audit_text
from askance.evals.negatives.rules import Rules, Thresholds, read_rules
from askance.evals.negatives.sheet import Item, Sheet, draw_sheet, read_key, write_sheet

__all__ = [
    "Asked",
    "Audit",
    "Audited",
    "Blind",
    "BlindImage",
    "Embeds",
    "GiveAways",
    "HardNegative",
    "Item",
    "Lengths",
    "OptionSet",
    "Rater",
    "Recipe",
    "Rules",
    "Sheet",
    "Source",
    "Tell",
    "Thresholds",
    "Validation",
    "Written",
    "aaudit",
    "agenerate",
    "apply",
    "audit_form",
    "audit_text",
    "draw_sheet",
    "generate",
    "read_key",
    "read_negatives",
    "read_ratings",
    "read_rules",
    "read_sources",
    "validate",
    "validation_text",
    "write_sheet",
]
