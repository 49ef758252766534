"""One act of LLM reasoning each: combine, detect a statement, classify, choose, write negatives, judge."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# These are named like their modules, which would stand in their places.
from askance.agents.choose_statement import choose_statement, choose_statement_from_picture
from askance.agents.combine import Description, combine

if TYPE_CHECKING:
    from askance.agents.answers import read_answer
    from askance.agents.blind import choose_blind
    from askance.agents.categories import LABELS, Atypicalities, Label, read_categories
    from askance.agents.choose import Choice, Mode, choose_action_reasons, choose_from_picture
    from askance.agents.choose_other import (
        choose_caption,
        choose_caption_from_picture,
        choose_explanation,
        choose_explanation_from_picture,
    )
    from askance.agents.classify import classify_atypicality, classify_from_picture
    from askance.agents.detect import detect_statement
    from askance.agents.fill import FillQuestion, PictureFillQuestion, fill_from_picture, fill_statement, read_filled
    from askance.agents.judge import EquivalenceQuestion, JudgeForm, judge_equivalence
    from askance.agents.judging import VERDICTS, Judge, Verdict, VerdictValue, canonical_judge
    from askance.agents.negatives import (
        KINDS,
        Domain,
        Negative,
        NegativeKind,
        NegativeQuestion,
        Negatives,
        write_negative,
    )
    from askance.agents.panel import Panel, PanelAgreement, PanelVerdict, judge_panel, panel_agreement
    from askance.agents.preference import Preference, PreferenceQuestion, Preferred, Said, judge_preference
    from askance.agents.questioning import AnswerInCaption, Candidates, find_candidates, write_question
    from askance.agents.questions import (
        OptionsQuestion,
        PictureQuestion,
        StatementQuestion,
        Verbalizations,
        check_options,
    )
    from askance.agents.references import ReferencesVerdict, judge_references
    from askance.agents.replying import (
        ODDNESS,
        AboutDescription,
        AboutPicture,
        Identified,
        Oddness,
        Reply,
        answer_from_description,
        answer_from_picture,
        caption_from_description,
        explain_from_description,
        explain_from_picture,
        identify_from_description,
        identify_from_picture,
    )
    from askance.agents.stepwise import choose_step_by_step

_HOMES = {
    "answers": ("read_answer",),
    "blind": ("choose_blind",),
    "categories": (
        "LABELS",
        "Atypicalities",
        "Label",
        "read_categories",
    ),
    "choose": (
        "Choice",
        "Mode",
        "choose_action_reasons",
        "choose_from_picture",
    ),
    "choose_other": (
        "choose_caption",
        "choose_caption_from_picture",
        "choose_explanation",
        "choose_explanation_from_picture",
    ),
    "choose_statement": (
        "choose_statement",
        "choose_statement_from_picture",
    ),
    "classify": (
        "classify_atypicality",
        "classify_from_picture",
    ),
    "combine": (
        "Description",
        "combine",
    ),
    "detect": ("detect_statement",),
    "fill": (
        "FillQuestion",
        "PictureFillQuestion",
        "fill_from_picture",
        "fill_statement",
        "read_filled",
    ),
    "judge": (
        "EquivalenceQuestion",
        "JudgeForm",
        "judge_equivalence",
    ),
    "judging": (
        "VERDICTS",
        "Judge",
        "Verdict",
        "VerdictValue",
        "canonical_judge",
    ),
    "negatives": (
        "KINDS",
        "Domain",
        "Negative",
        "NegativeKind",
        "NegativeQuestion",
        "Negatives",
        "write_negative",
    ),
    "panel": (
        "Panel",
        "PanelAgreement",
        "PanelVerdict",
        "judge_panel",
        "panel_agreement",
    ),
    "preference": (
        "Preference",
        "PreferenceQuestion",
        "Preferred",
        "Said",
        "judge_preference",
    ),
    "questioning": (
        "AnswerInCaption",
        "Candidates",
        "find_candidates",
        "write_question",
    ),
    "questions": (
        "OptionsQuestion",
        "PictureQuestion",
        "StatementQuestion",
        "Verbalizations",
        "check_options",
    ),
    "references": (
        "ReferencesVerdict",
        "judge_references",
    ),
    "replying": (
        "ODDNESS",
        "AboutDescription",
        "AboutPicture",
        "Identified",
        "Oddness",
        "Reply",
        "answer_from_description",
        "answer_from_picture",
        "caption_from_description",
        "explain_from_description",
        "explain_from_picture",
        "identify_from_description",
        "identify_from_picture",
    ),
    "stepwise": ("choose_step_by_step",),
}
"""Modules and what is shown of them; each is loaded when something of it is first asked for."""

__all__ = [
    "KINDS",
    "LABELS",
    "ODDNESS",
    "VERDICTS",
    "AboutDescription",
    "AboutPicture",
    "AnswerInCaption",
    "Atypicalities",
    "Candidates",
    "Choice",
    "Description",
    "Domain",
    "EquivalenceQuestion",
    "FillQuestion",
    "Identified",
    "Judge",
    "JudgeForm",
    "Label",
    "Mode",
    "Negative",
    "NegativeKind",
    "NegativeQuestion",
    "Negatives",
    "Oddness",
    "OptionsQuestion",
    "Panel",
    "PanelAgreement",
    "PanelVerdict",
    "PictureFillQuestion",
    "PictureQuestion",
    "Preference",
    "PreferenceQuestion",
    "Preferred",
    "ReferencesVerdict",
    "Reply",
    "Said",
    "StatementQuestion",
    "Verbalizations",
    "Verdict",
    "VerdictValue",
    "answer_from_description",
    "answer_from_picture",
    "canonical_judge",
    "caption_from_description",
    "check_options",
    "choose_action_reasons",
    "choose_blind",
    "choose_caption",
    "choose_caption_from_picture",
    "choose_explanation",
    "choose_explanation_from_picture",
    "choose_from_picture",
    "choose_statement",
    "choose_statement_from_picture",
    "choose_step_by_step",
    "classify_atypicality",
    "classify_from_picture",
    "combine",
    "detect_statement",
    "explain_from_description",
    "explain_from_picture",
    "fill_from_picture",
    "fill_statement",
    "find_candidates",
    "identify_from_description",
    "identify_from_picture",
    "judge_equivalence",
    "judge_panel",
    "judge_preference",
    "judge_references",
    "panel_agreement",
    "read_answer",
    "read_categories",
    "read_filled",
    "write_negative",
    "write_question",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.agents.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
