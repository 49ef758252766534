"""One act of LLM reasoning each: combine, detect a statement, classify, choose among options."""

from __future__ import annotations

from askance.agents.answers import read_answer
from askance.agents.categories import LABELS, Atypicalities, Label, read_categories
from askance.agents.choose import Choice, Mode, choose_action_reasons, choose_from_picture
from askance.agents.choose_statement import choose_statement, choose_statement_from_picture
from askance.agents.classify import classify_atypicality, classify_from_picture
from askance.agents.combine import Description, combine
from askance.agents.detect import detect_statement
from askance.agents.questions import (
    OptionsQuestion,
    PictureQuestion,
    StatementQuestion,
    Verbalizations,
    check_options,
)
from askance.agents.stepwise import choose_step_by_step

__all__ = [
    "LABELS",
    "Atypicalities",
    "Choice",
    "Description",
    "Label",
    "Mode",
    "OptionsQuestion",
    "PictureQuestion",
    "StatementQuestion",
    "Verbalizations",
    "check_options",
    "choose_action_reasons",
    "choose_from_picture",
    "choose_statement",
    "choose_statement_from_picture",
    "choose_step_by_step",
    "classify_atypicality",
    "classify_from_picture",
    "combine",
    "detect_statement",
    "read_answer",
    "read_categories",
]
