"""The task of comparison: are inferences ordered as people order them (section 4.3 and appendix E)?

Two people rated ten inferences for each region, from 1 to 3. The figure says how often two inferences that a rater
rates unequally are ordered so, from -100 to 100, where chance is 0; each rater counts in turn. What one rater says of
the other stands beside it (people), and so does what their mean says of both (oracle).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from typing_extensions import override

from askance.evals.metric import mean
from askance.evals.sample import HUMAN_RATINGS, Sample
from askance.evals.sherlock.measures import CANDIDATES, pairwise_accuracy, tied_pairs
from askance.evals.sherlock.task import SherlockTask, facts_of
from askance.evals.suite.selection import Subset

if TYPE_CHECKING:
    from askance.evals.metric import Metric
    from askance.evals.sherlock.leaderboard import RatedRegion
    from askance.evals.sherlock.task import Scores

HUMAN = "human accuracy"
RATERS = ("rater 1", "rater 2")
PEOPLE, ORACLE, TIED = "people", "oracle", "tied pairs"


class InferenceComparison(SherlockTask):
    """How well inferences about a region are ordered as people order them."""

    name = "sherlock/comparison"
    ranks: ClassVar[int] = CANDIDATES
    headlines = (HUMAN,)

    split: Literal["val", "test"] = "val"
    """Which of the leaderboard's regions; the ratings of `test` are hidden."""

    @cached_property
    @override
    def subset(self) -> Subset[RatedRegion]:
        regions = self.dataset.comparison(self.split)
        note = f"{len(regions):,} rated regions of {self.split}"
        hidden = "; their ratings are hidden" if all(each.candidates[0].ratings is None for each in regions) else ""
        return self.chosen(
            Subset(items=regions, noun="regions", notes=(f"{note}{hidden}",)),
            names=lambda each: (each.instance.id, each.instance.url),
            url=lambda each: each.instance.url,
        )

    @override
    def regions(self) -> Iterator[Sample]:
        for each in self.subset.items:
            ratings = [candidate.ratings for candidate in each.candidates]
            known = [list(one) for one in zip(*(pair for pair in ratings if pair is not None), strict=True)]
            yield self.sample_of(
                each.instance.id,
                each.instance.url,
                [each.instance.boxes],
                inferences=[candidate.text for candidate in each.candidates],
                target={HUMAN_RATINGS: None if None in ratings else known},
                tags=facts_of(each.instance),
            )

    @override
    def metrics(self) -> Sequence[Metric]:
        return (
            mean(HUMAN, summary="agreement with people on which of two inferences is better; 0 is chance"),
            *(mean(rater, summary=f"agreement with {rater}") for rater in RATERS),
            mean(PEOPLE, better="neither", summary="agreement of the raters with each other"),
            mean(ORACLE, better="neither", summary="agreement of the mean rating with both raters"),
            mean(
                TIED,
                better="neither",
                summary="share of the pairs whose scores are equal, so that their order is drawn",
            ),
        )

    @override
    def given_values(self, sample: Sample) -> Mapping[str, float] | None:
        """What people reach on the same inferences."""
        raters = _ratings_of(sample)
        if not raters:
            return None
        one, other = raters
        middle = [sum(pair) / 2 for pair in zip(one, other, strict=True)]
        return {
            PEOPLE: (pairwise_accuracy(one, other) + pairwise_accuracy(other, one)) / 2,
            ORACLE: (pairwise_accuracy(middle, one) + pairwise_accuracy(middle, other)) / 2,
        }

    @override
    def values_of(self, sample: Sample, scores: Scores) -> Mapping[str, float]:
        raters = _ratings_of(sample)
        by_rater = [pairwise_accuracy(scores[0], ratings) for ratings in raters]
        ties = [tied_pairs(scores[0], ratings) for ratings in raters]
        return {**_values(by_rater), TIED: sum(ties) / len(ties)}

    @override
    def bounds_of(self, sample: Sample, *, right: bool) -> Mapping[str, float]:
        own = (pairwise_accuracy(ratings, ratings) for ratings in _ratings_of(sample))
        return {**_values([each if right else -each for each in own]), TIED: 0.0}


def _ratings_of(sample: Sample) -> Sequence[Sequence[int]]:
    """By rater, the ratings of the inferences; nothing where they are hidden."""
    target: Mapping[str, Any] = sample.target
    return target[HUMAN_RATINGS] or ()


def _values(by_rater: Sequence[float]) -> dict[str, float]:
    return {HUMAN: sum(by_rater) / len(by_rater), **dict(zip(RATERS, by_rater, strict=True))}
