"""Judges held against people: labels, cards, corrected rates, and scores that say who judged."""

from __future__ import annotations

from askance.evals.judging.asking import Case, ask_about
from askance.evals.judging.card import JudgeCard, judge_card, planned_card, read_card
from askance.evals.judging.correcting import CorrectedRate, corrected_rate
from askance.evals.judging.figuring import CardFigure, figures_of_cases
from askance.evals.judging.labels import Label, Labels, read_labels
from askance.evals.judging.preferences import PreferenceFigures, preference_figures
from askance.evals.judging.scores import JUDGED, PER_REFERENCE, JudgeNote, judged_score, judged_scoring

__all__ = [
    "JUDGED",
    "PER_REFERENCE",
    "CardFigure",
    "Case",
    "CorrectedRate",
    "JudgeCard",
    "JudgeNote",
    "Label",
    "Labels",
    "PreferenceFigures",
    "ask_about",
    "corrected_rate",
    "figures_of_cases",
    "judge_card",
    "judged_score",
    "judged_scoring",
    "planned_card",
    "preference_figures",
    "read_card",
    "read_labels",
]
