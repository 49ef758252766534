"""One act of LLM reasoning each: combine, detect a statement, choose among options."""

from __future__ import annotations

from askance.agents.answers import read_answer
from askance.agents.choose import Choice, Mode, choose_action_reasons, choose_from_picture
from askance.agents.combine import Description, combine
from askance.agents.detect import detect_statement
from askance.agents.questions import (
    OptionsQuestion,
    PictureQuestion,
    StatementQuestion,
    Verbalizations,
    check_options,
)

__all__ = [
    "Choice",
    "Description",
    "Mode",
    "OptionsQuestion",
    "PictureQuestion",
    "StatementQuestion",
    "Verbalizations",
    "check_options",
    "choose_action_reasons",
    "choose_from_picture",
    "combine",
    "detect_statement",
    "read_answer",
]
