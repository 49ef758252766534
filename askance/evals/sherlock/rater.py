"""A VLM that rates inferences, beside the judge that compares them: is what was written plausible, whoever wrote it?

It sees the highlighted region and rates from 1 to 3, as people did for the comparison task; 2 or 3 is plausible. What
it is worth is its *card*: how far the same model agrees with people, from a run of `sherlock/comparison` in which it
rates their candidates (`-T by=rating -T top=0`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.inference import RATINGS, InferenceQuestion, InferenceRater, Rating
from askance.agents.plausibility import PlausibilityScorer
from askance.chains import REGION, REPLY, Chain, Link, Step, picture
from askance.chat import canonical_json
from askance.errors import BadData, UsageError
from askance.evals.metric import mean
from askance.evals.part import Part
from askance.evals.run import Run
from askance.evals.sample import HUMAN_RATINGS
from askance.evals.scorer import Scorer, map_score
from askance.evals.sherlock.pools import view_of
from askance.images import RegionView
from askance.models import Model, ModelLike
from askance.statistics import cohen_kappa

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from askance.chains import Reading
    from askance.chat import JsonObject
    from askance.evals.metric import Metric
    from askance.evals.sample import Prediction, Sample, Score

RATING = Link("rating", Rating, label="how plausible it is")
HIGHLIGHTED: Link[RegionView] = Link("highlighted", RegionView, read=REGION.read, write=REGION.write)
"""The region as a rater sees it, however it is shown to the model that writes."""

PLAUSIBLE, RATED = "plausible", "rating"
LEAST = 2
"""The least rating that is called plausible."""
NOTE = "'plausible' is of the region that was shown, so that swapped regions leave it as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterCard:
    """How far a rater agrees with people."""

    ratings: int
    """Of people, that it is held against."""
    accuracy: float
    """Share of them on which it says the same, plausible or not."""
    base_rate: float
    """Share of them that are plausible."""
    kappa: float | None
    """Cohen's κ; None where it is not defined."""

    @classmethod
    def of_run(cls, folder: Path, rater: Model) -> RaterCard:
        """The card of a rater from a run of `sherlock/comparison`.

        Raises:
            BadData: the folder is no such run, its ratings are hidden, or another rater's.
        """
        run = Run.open(folder)
        solver: Mapping[str, Any] = run.configuration.get("solver") or {}
        own = PlausibilityScorer(rater, by="rating", top=0).parameters
        if run.task != _CARD_TASK or canonical_json({name: solver.get(name) for name in own}) != canonical_json(own):
            raise BadData(
                f"The run {str(folder)!r} is no card of {rater.id}.",
                hint=f"Make one: askance eval run {_CARD_TASK} --data DIR --vlm {rater.id} -T by=rating -T top=0",
            )
        pairs = [pair for answer in run.answers for pair in _pairs(answer.sample.target, answer.prediction)]
        if not pairs:
            raise BadData(
                f"The run {str(folder)!r} has no ratings of people.", hint="Those of the split `test` are hidden."
            )
        people, said = zip(*pairs, strict=True)
        return cls(
            ratings=len(pairs),
            accuracy=sum(one == other for one, other in pairs) / len(pairs),
            base_rate=sum(people) / len(pairs),
            kappa=cohen_kappa(people, said).value,
        )


_CARD_TASK = "sherlock/comparison"


def _pairs(target: Mapping[str, Any], prediction: Prediction) -> Sequence[tuple[bool, bool]]:
    """Of each rating of a person, whether it calls an inference plausible, and whether the rater does."""
    ratings: Sequence[Sequence[int]] | None = target[HUMAN_RATINGS]
    if ratings is None or prediction.matrix is None:
        return ()
    said = [score >= LEAST for score in prediction.matrix.array[0].tolist()]
    return [(one >= LEAST, other) for person in ratings for one, other in zip(person, said, strict=True)]


class InferenceRating(Part):
    """A VLM that rates what was written about regions."""

    rater: ModelLike | None = None
    """A VLM that rates from 1 to 3 how plausible each inference is of the region, which it sees."""
    rater_card: Path | None = None
    """Folder of a run of sherlock/comparison in which the rater rates what people rated (by=rating, top=0)."""

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """Checks that a card has a rater.

        Raises:
            UsageError: it has none.
        """
        if self.rater is None and self.rater_card is not None:
            raise UsageError("A card of a rater is given, and no rater.", hint="Give `rater` as well.")

    @cached_property
    def node(self) -> InferenceRater | None:
        """What rates."""
        return None if self.rater is None else InferenceRater(self.model_of(self.rater), sees=True)

    @cached_property
    def card(self) -> RaterCard | None:
        """Its card; None without one.

        Raises:
            BadData: the card is none, or another rater's.
        """
        kept: JsonObject | None = self.kept_or("rater_figures", lambda: None)
        if kept:
            return RaterCard(**kept)
        node = self.node
        return None if node is None or self.rater_card is None else RaterCard.of_run(self.rater_card, node.model)

    @override
    def kept(self) -> JsonObject:
        if self.node is None:
            return {}
        figures = {} if self.card is None else {"rater_figures": asdict(self.card)}
        return {"rater": self.node.model.form(), **figures}

    @override
    def notes(self) -> tuple[str, ...]:
        if self.node is None:
            return ()
        rated, card = f"Rated by {self.node.model.id}", self.card
        if card is None:
            return (f"{rated}, which has no card: how often it is wrong is not known.", NOTE)
        kappa = "unknown" if card.kappa is None else f"{card.kappa:.3f}"
        figures = f"its accuracy is {card.accuracy:.3f} beside a base rate of {card.base_rate:.3f}"
        return (f"{rated}; on {card.ratings:,} ratings of people {figures}, and Cohen's κ {kappa}.", NOTE)

    def measured(self, chain: Chain) -> Chain:
        """`chain`, with a rating of what it writes."""
        if self.node is None:
            return chain
        step = Step(link=RATING, node=self.node, needs=(chain.target, HIGHLIGHTED), subject=_question)
        return Chain(chain.get_name(), target=chain.target, steps=[*chain.steps, step], mode=chain.mode)

    def given(self, boxes: Sequence[Sequence[float]]) -> Mapping[str, Any]:
        """What a chain is given beside the region; nothing where nobody rates."""
        return {} if self.node is None else {HIGHLIGHTED.name: view_of(boxes, show="highlight")}

    def scorer(self, scorer: Scorer) -> Scorer:
        """`scorer`, with the ratings beside its figures; without a rating a sample counts in neither."""
        if self.node is None:
            return scorer

        def score(sample: Sample, prediction: Prediction) -> Score | Awaitable[Score]:
            link: Mapping[str, Any] = prediction.links.get(RATING.name) or {}
            form: JsonObject | None = link.get("value")
            own = dict[str, float]() if form is None else _values(int(form["value"]))
            return map_score(scorer.score(sample, prediction.value), lambda found: _with(found, own))

        def bound(of: Callable[[Sample], Score], rating: int) -> Callable[[Sample], Score]:
            return lambda sample: _with(of(sample), _values(rating))

        metrics: tuple[Metric, ...] = (
            mean(PLAUSIBLE, summary=f"is rated {LEAST} or higher by the model that sees the region"),
            mean(RATED, percent=False, summary="the rating, from 1 to 3"),
        )
        return replace(
            scorer,
            score=score,
            takes="prediction",
            metrics=(*scorer.metrics, *metrics),
            if_wrong=bound(scorer.if_wrong, 1),
            if_right=bound(scorer.if_right, len(RATINGS)),
        )


def _values(rating: int) -> Mapping[str, float]:
    return {PLAUSIBLE: float(rating >= LEAST), RATED: float(rating)}


def _with(score: Score, values: Mapping[str, float]) -> Score:
    return replace(score, values={**score.values, **values})


def _question(reading: Reading) -> InferenceQuestion:
    """What was written about a region, and the region as a rater sees it."""
    view, text = reading.require(HIGHLIGHTED), reading.require(REPLY).text
    return InferenceQuestion(image=picture(reading), view=view, inference=text)
