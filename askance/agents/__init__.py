"""One act of LLM reasoning each: combine, detect a statement, classify, choose, write negatives, judge."""

from __future__ import annotations

from askance.agents.answers import read_answer
from askance.agents.blind import choose_blind
from askance.agents.categories import LABELS, Atypicalities, Label, read_categories
from askance.agents.choose import Choice, Mode, choose_action_reasons, choose_from_picture
from askance.agents.choose_statement import choose_statement, choose_statement_from_picture
from askance.agents.classify import classify_atypicality, classify_from_picture
from askance.agents.combine import Description, combine
from askance.agents.detect import detect_statement
from askance.agents.fill import FillQuestion, PictureFillQuestion, fill_from_picture, fill_statement, read_filled
from askance.agents.judge import EquivalenceQuestion, JudgeForm, judge_equivalence
from askance.agents.judging import VERDICTS, Judge, Verdict, VerdictValue
from askance.agents.negatives import (
    KINDS,
    Domain,
    Negative,
    NegativeKind,
    NegativeQuestion,
    Negatives,
    write_negative,
)
from askance.agents.questions import (
    OptionsQuestion,
    PictureQuestion,
    StatementQuestion,
    Verbalizations,
    check_options,
)
from askance.agents.stepwise import choose_step_by_step

__all__ = [
    "KINDS",
    "LABELS",
    "VERDICTS",
    "Atypicalities",
    "Choice",
    "Description",
    "Domain",
    "EquivalenceQuestion",
    "FillQuestion",
    "Judge",
    "JudgeForm",
    "Label",
    "Mode",
    "Negative",
    "NegativeKind",
    "NegativeQuestion",
    "Negatives",
    "OptionsQuestion",
    "PictureFillQuestion",
    "PictureQuestion",
    "StatementQuestion",
    "Verbalizations",
    "Verdict",
    "VerdictValue",
    "check_options",
    "choose_action_reasons",
    "choose_blind",
    "choose_from_picture",
    "choose_statement",
    "choose_statement_from_picture",
    "choose_step_by_step",
    "classify_atypicality",
    "classify_from_picture",
    "combine",
    "detect_statement",
    "fill_from_picture",
    "fill_statement",
    "judge_equivalence",
    "read_answer",
    "read_categories",
    "read_filled",
    "write_negative",
]
