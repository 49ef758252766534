"""The task of matching: which of five captions was written for a cartoon (section 2.1 of the New Yorker paper).

The other four are finalists of other contests of the same split. Each caption is right once and wrong four times, so
captions alone give a fifth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from askance.agents import match_caption
from askance.evals.metric import Metric
from askance.evals.newyorker.layout import LETTERS
from askance.evals.newyorker.task import CaptionTask

if TYPE_CHECKING:
    from askance.evals.sample import Sample

_SAID, _TRUE = tuple(f"said {letter}" for letter in LETTERS), tuple(f"true {letter}" for letter in LETTERS)


class CartoonMatching(CaptionTask):
    """Which of five captions was written for a cartoon."""

    name = "newyorker/matching"
    about = "matching"
    agent = match_caption

    @override
    def metrics(self) -> Sequence[Metric]:
        letter_shares = (
            Metric(name=column, columns=(column,), better="neither", summary=f"share of answers that are {column[-1]}")
            for column in _SAID
        )
        chance = Metric(
            name="chance by letters",
            columns=(*_SAID, *_TRUE),
            of_sums=chance_by_letters,
            better="neither",
            summary="accuracy of answers drawn by these shares, whatever the cartoon",
        )
        return (chance, *letter_shares)

    @override
    def values_of(self, sample: Sample, *, right: float) -> Mapping[str, float]:
        return {}

    @override
    def values_said(self, sample: Sample, letter: str) -> Mapping[str, float]:
        true: Sequence[int] = sample.target["true"]
        by_letter = dict(zip(_SAID, (float(each == letter) for each in LETTERS), strict=True))
        return by_letter | {column: float([place] == true) for place, column in enumerate(_TRUE, start=1)}


def chance_by_letters(sums: Sequence[float]) -> float:
    """The accuracy of answers drawn by the shares in which letters are said, from sums of said and of true letters."""
    answered, true = sums[: len(LETTERS)], sums[len(LETTERS) :]
    total = sum(answered)
    return sum(one * other for one, other in zip(answered, true, strict=True)) / total**2 if total else float("nan")
