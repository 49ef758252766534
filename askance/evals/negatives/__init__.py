"""Hard negatives: written for a data set, audited, and put before people."""

from __future__ import annotations

from askance.evals.negatives.artifacts import Artifacts, Blind, BlindImage, Lengths, TextOnlyAccuracy
from askance.evals.negatives.audit import (
    Audit,
    AuditOptions,
    AuditRow,
    Embeds,
    aaudit,
    apply,
    audit_text,
    planned_audit,
)
from askance.evals.negatives.generate import NegativesRun, Recipe, agenerate, generate, planned_negatives
from askance.evals.negatives.option_sets import HardNegative, OptionSet, TrueStatements, read_negatives, read_statements
from askance.evals.negatives.rules import Rules, Thresholds, read_rules
from askance.evals.negatives.validation import (
    Rater,
    Sheet,
    SheetItem,
    Validation,
    draw_sheet,
    read_key,
    read_ratings,
    validate,
    validation_text,
    write_sheet,
)

__all__ = [
    "Artifacts",
    "Audit",
    "AuditOptions",
    "AuditRow",
    "Blind",
    "BlindImage",
    "Embeds",
    "HardNegative",
    "Lengths",
    "NegativesRun",
    "OptionSet",
    "Rater",
    "Recipe",
    "Rules",
    "Sheet",
    "SheetItem",
    "TextOnlyAccuracy",
    "Thresholds",
    "TrueStatements",
    "Validation",
    "aaudit",
    "agenerate",
    "apply",
    "audit_text",
    "draw_sheet",
    "generate",
    "planned_audit",
    "planned_negatives",
    "read_key",
    "read_negatives",
    "read_ratings",
    "read_rules",
    "read_statements",
    "validate",
    "validation_text",
    "write_sheet",
]
