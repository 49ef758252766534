"""Making questions about images from their captions, with a count at each gate (section 4.2 of the WHOOPS! paper)."""

from __future__ import annotations

from askance.evals.whoops.making.files import DROPPED, KEPT, write_questions, write_validation
from askance.evals.whoops.making.gates import GATES, Gate, Pair, QuestionMaker
from askance.evals.whoops.making.run import Made, amake, make, planned

__all__ = [
    "DROPPED",
    "GATES",
    "KEPT",
    "Gate",
    "Made",
    "Pair",
    "QuestionMaker",
    "amake",
    "make",
    "planned",
    "write_questions",
    "write_validation",
]
