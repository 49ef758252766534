"""The task of ranking: which of two captions of a cartoon is a finalist (section 2.1 of the New Yorker paper).

The editors of the magazine chose some of the finalists, and the crowd that rated all captions chose others. The paper
reports the accuracy over each of the two, NYAcc and CrowdAcc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from askance.agents import rank_captions
from askance.evals.metric import Metric, mean
from askance.evals.newyorker.task import ACCURACY, CaptionTask

if TYPE_CHECKING:
    from askance.evals.sample import Sample

BY_WINNER: Mapping[str, str] = {"official_winner": "accuracy_ny", "crowd_winner": "accuracy_crowd"}
"""By who chose the finalist, the name of the figure over such items, as the official scorer has it."""
FIRST = "first said"


class CartoonRanking(CaptionTask):
    """Which of two captions of a cartoon is the finalist."""

    name = "newyorker/ranking"
    about = "ranking"
    agent = rank_captions
    headlines = (ACCURACY, *BY_WINNER.values())

    @override
    def metrics(self) -> Sequence[Metric]:
        return (
            mean(BY_WINNER["official_winner"], summary="of the items whose finalist the editors chose"),
            mean(BY_WINNER["crowd_winner"], summary="of the items whose finalist the crowd chose"),
            mean(FIRST, better="neither", summary="share of answers that are the caption shown first"),
        )

    @override
    def values_of(self, sample: Sample, *, right: float) -> Mapping[str, float]:
        name = BY_WINNER.get(sample.target.get("winner", ""))
        return {} if name is None else {name: right}

    @override
    def values_said(self, sample: Sample, letter: str) -> Mapping[str, float]:
        return {FIRST: float(letter == "A")}
