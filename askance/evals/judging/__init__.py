"""Judges held against people: labels, cards, corrected rates, and scores that say who judged."""

from __future__ import annotations

from askance.evals.judging.card import JudgeCard, ask_about, judge_card, planned_card, read_card
from askance.evals.judging.labels import Label, Labels, read_labels
from askance.evals.judging.rates import CorrectedRate, PreferenceFigures, corrected_rate, preference_figures
from askance.evals.judging.scores import JUDGED, PER_REFERENCE, JudgeNote, judged_score, judged_scoring
from askance.evals.judging.verdicts import CardFigure, JudgedPair, figures_of_pairs

__all__ = [
    "JUDGED",
    "PER_REFERENCE",
    "CardFigure",
    "CorrectedRate",
    "JudgeCard",
    "JudgeNote",
    "JudgedPair",
    "Label",
    "Labels",
    "PreferenceFigures",
    "ask_about",
    "corrected_rate",
    "figures_of_pairs",
    "judge_card",
    "judged_score",
    "judged_scoring",
    "planned_card",
    "preference_figures",
    "read_card",
    "read_labels",
]
