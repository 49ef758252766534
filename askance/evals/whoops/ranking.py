"""Ranking two captions by how well each fits the picture, with a scorer and without a language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from askance.chains import DESCRIPTION, Chain
from askance.evals.baselines import options_of
from askance.evals.solving import given_of
from askance.evals.values import Prediction
from askance.models import get_scorer

if TYPE_CHECKING:
    from askance.chains import Planner, Reading
    from askance.chat import JsonObject
    from askance.evals.values import Sample
    from askance.models import Engine, ScorerLike


class PairRanker:
    """Gives the number of the option that fits the picture better; none where both fit alike.

    Args:
        scorer: how well a text fits a picture.
        engine: whose records and mode its scores go by.
    """

    def __init__(self, scorer: ScorerLike, *, engine: Engine | None = None) -> None:
        self.scorer = get_scorer(scorer, engine=engine)
        self.chain = Chain("given", target=DESCRIPTION, steps=(), mode=self.scorer.engine.mode)
        """Asks nothing, for nothing is said of a picture: what is made is scores alone."""

    @property
    def engine(self) -> Engine:
        """Whose records the scores are in."""
        return self.scorer.engine

    @property
    def label(self) -> str:
        """What it is called."""
        return str(self.scorer.id)

    def form(self) -> JsonObject:
        """Everything that decides the answers."""
        return {"ranks": "pairs", "scorer": self.scorer.form()}

    def given(self, sample: Sample) -> Mapping[str, Any]:
        """What is given to the chain that asks nothing."""
        return given_of(sample)

    def plan(self, sample: Sample, reading: Reading, planner: Planner) -> None:  # noqa: ARG002  # nothing is said of it
        """Counts the scores that a ranking rests on; nothing is made.

        Raises:
            BadImage: the file of the picture cannot be read.
        """
        if sample.image is not None:
            image, options, scorer = sample.image, options_of(sample), self.scorer
            keys, lacking = scorer.keys(image, options), scorer.lacking(image, options)
            planner.compute("scores", scorer.id, keys=keys, lacking=lacking)

    async def ainvoke(self, sample: Sample, /, config: Any = None) -> Prediction:  # noqa: ARG002  # as of a Runnable
        """The prediction for one sample.

        Raises:
            AskanceError: the picture or a score cannot be had.
        """
        options = options_of(sample)
        if sample.image is None:
            return Prediction(outcome="failed", reason="there is no picture")
        fits = await self.scorer.score(sample.image, options)
        best = [number for number, fit in enumerate(fits, start=1) if fit == max(fits)]
        return Prediction(
            outcome="answered",
            value=best if len(best) == 1 else [],
            links={"scores": {"outcome": "answered", "calls": list(self.scorer.keys(sample.image, options))}},
            trace={"scores": fits},
        )
