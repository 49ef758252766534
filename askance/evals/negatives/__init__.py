"""Hard negatives: written for a data set, audited, and put before people."""

from __future__ import annotations

from askance.evals.negatives.files import (
    HardNegative,
    OptionSet,
    Source,
    read_negatives,
    read_sources,
)
from askance.evals.negatives.generate import Written, agenerate, generate
from askance.evals.negatives.recipe import Recipe

__all__ = [
    "HardNegative",
    "OptionSet",
    "Recipe",
    "Source",
    "Written",
    "agenerate",
    "generate",
    "read_negatives",
    "read_sources",
]
