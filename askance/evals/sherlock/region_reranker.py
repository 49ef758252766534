"""An encoder first, and a model on its best.

In a chunk a region is held against all inferences, and an inference against all regions; in a picture with proposals,
an inference against these. The model is asked about the `keep` best by the encoder; the others stay below these, in the
encoder's order. The encoder's matrix of a sample is on record, under one key: then a plan knows which pairs are
asked about, and a replay needs no encoder. In a chunk of a thousand such a record has 40 kB.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

from pydantic import Field
from typing_extensions import override

from askance.chains.planner import check_mode
from askance.chat import key_of
from askance.errors import BadImage, BadRecord, UsageError
from askance.evals.sample import INFERENCES
from askance.evals.sherlock.pools import regions_of
from askance.evals.sherlock.region_solver import AskedRegions, EncodedRegions, SampleScores
from askance.evals.sherlock.task import RegionModel
from askance.images import WHOLE_IMAGE
from askance.models import ScorerLike, get_scorer
from askance.replay import DAMAGED_HINT

if TYPE_CHECKING:
    from askance.agents.plausibility import PlausibilityScorer
    from askance.chains import Planner
    from askance.chat import JsonObject
    from askance.evals.part import Question
    from askance.evals.sample import Sample
    from askance.evals.sherlock.pools import Region, SamplePools
    from askance.evals.solver import PlanSample
    from askance.models import RecordedScorer

    _Pair: TypeAlias = tuple[Region, str]


MOST_ASKED: Final = 10_000
"""Calls about all pairs of pools at most, as of 100 regions in one chunk; a whole chunk has a million. Where there are
more, an encoder has to rank first."""


class RecordedMatrices(EncodedRegions):
    """Scores by an encoder, whose matrix of a sample is on record as one response."""

    on_record = True

    def __init__(self, scorer: RecordedScorer, pools: SamplePools) -> None:
        super().__init__(scorer, pools)
        self._responses = scorer.responses("score")

    @override
    async def scores_of(self, sample: Sample, counts: Counter[str]) -> SampleScores:
        import numpy as np

        async def make(_: Sequence[int]) -> list[JsonObject]:
            made = await super(RecordedMatrices, self).scores_of(sample, counts)
            return [{"matrix": made.scores.tolist(), "missing": [*made.missing]}]

        form = self._form(sample)
        (response,) = await self._responses.get([form], make)
        try:
            scores = np.array(response["matrix"], dtype=np.float64)
            if scores.ndim == 2 and np.isfinite(scores).all():
                return SampleScores(scores, [int(place) for place in response["missing"]])
        except (KeyError, TypeError, ValueError):
            pass
        raise BadRecord(f"The record {key_of('score', form)[:12]!r} holds no matrix.", hint=DAMAGED_HINT)

    def lacking(self, sample: Sample) -> tuple[str, bool]:
        """The key of the matrix of a sample, and whether it is not on record.

        Raises:
            BadImage: the file of the sample's picture cannot be read.
        """
        form = self._form(sample)
        return key_of("score", form), bool(self._responses.lacking([form]))

    def _form(self, sample: Sample) -> JsonObject:
        """What decides the matrix of a sample."""
        regions = regions_of(sample)
        if self.pools:
            own = self.scorer.request(regions[0].picture, sample.inputs[INFERENCES][0], view=regions[0].view)
            return {**own, "pool": self.pools.of(sample).digest}
        form = self.scorer.request(regions[0].picture, "", view=WHOLE_IMAGE)
        return {
            **{name: value for name, value in form.items() if name != "text"},
            "views": [region.view.canonical() for region in regions],
            "texts": [*sample.inputs[INFERENCES]],
        }


@dataclass(frozen=True, slots=True)
class _Line:
    """A row or a column of a matrix, of which the best are asked about."""

    index: Any
    """Of the line in the matrix."""
    pairs: Sequence[_Pair]
    """What each place of it is a score of."""
    best: Sequence[int]
    """The places with the highest scores, the best first; ties in their order."""


class RerankedRegions(AskedRegions):
    """Scores by chat models of the best pairs of an encoder, above the encoder's of the others.

    Args:
        scorer: asks the models.
        first: the encoder.
        pools: the samples.
        keep: how many of its best the models are asked about, in each line.
    """

    def __init__(self, scorer: PlausibilityScorer, pools: SamplePools, *, first: RecordedScorer, keep: int) -> None:
        super().__init__(scorer, pools)
        self.first = RecordedMatrices(first, pools)
        self.keep = keep

    @override
    def among(self, samples: Sequence[Sample]) -> Self:
        other = super().among(samples)
        other.first = RecordedMatrices(self.first.scorer, other.pools)
        return other

    @override
    def form(self) -> JsonObject:
        return {**super().form(), "first": self.first.scorer.form(), "keep": self.keep}

    @override
    async def scores_of(self, sample: Sample, counts: Counter[str]) -> SampleScores:
        import numpy as np

        first = await self.first.scores_of(sample, counts)
        wanted = self._wanted(sample, first)
        rows = await asyncio.gather(*(self.row(region, texts, counts) for region, texts in wanted))
        own = {region.name for region in regions_of(sample)}
        known: dict[tuple[str, str], float] = {}
        for (region, texts), row in zip(wanted, rows, strict=True):
            if not isinstance(row, BadImage):
                known |= {(region.name, text): float(score) for text, score in zip(texts, row, strict=True)}
            elif region.name in own:
                raise row
        scores, missing = first.scores.copy(), {*first.missing}
        for line in self._lines(sample, first):
            asked = {place: known.get((line.pairs[place][0].name, line.pairs[place][1])) for place in line.best}
            better = {place: score for place, score in asked.items() if score is not None}
            missing |= asked.keys() - better.keys()
            if better:
                whole, values = scores[line.index], np.array([*better.values()])
                whole[[*better]] = whole.max() + 1 + values - values.min()  # a view: `scores` changes
        return SampleScores(scores, sorted(missing))

    def _wanted(self, sample: Sample, first: SampleScores | None) -> Sequence[tuple[Region, Sequence[str]]]:
        """The regions that the models are asked about, each with different texts.

        Args:
            sample: that is answered.
            first: the encoder's matrix; None where it is not known, so that as many others stand for the best.
        """
        wanted: dict[str, tuple[Region, dict[str, None]]] = {}
        for line in self._lines(sample, first):
            for place in line.best:
                region, text = line.pairs[place]
                wanted.setdefault(region.name, (region, {}))[1].setdefault(text)
        return [(region, [*texts]) for region, texts in wanted.values()]

    def _lines(self, sample: Sample, first: SampleScores | None) -> Iterator[_Line]:
        """The rows, or the columns, of the matrix of a sample."""
        import numpy as np

        def line(index: Any, pairs: Sequence[_Pair], *, missing: Sequence[int] = (), start: int = 0) -> _Line:
            if first is None:
                order = [(start + step) % len(pairs) for step in range(len(pairs))]
            else:
                order = np.argsort(-first.scores[index], kind="stable").tolist()
            return _Line(index, pairs, [place for place in order if place not in missing][: self.keep])

        regions, inferences = regions_of(sample), cast("Sequence[str]", sample.inputs[INFERENCES])
        if not self.pools:
            for column, text in enumerate(inferences):
                yield line((slice(None), column), [(region, text) for region in regions])
            return
        pool = self.pools.of(sample)
        start = pool.places[sample.id] + 1  # as many pairs from here on are asked about by no other sample
        yield line(0, [(regions[0], text) for text in pool.inferences], start=start)
        missing = () if first is None else first.missing
        yield line(1, [(region, inferences[0]) for region in pool.regions], missing=missing, start=start)

    @override
    def plan(self, planner: Planner) -> PlanSample:
        for model in self.models:
            check_mode(model.mode)

        async def count(sample: Sample, draw: int) -> None:
            key, lacking = self.first.lacking(sample)
            planner.add_computed("scores", self.first.scorer.id, keys=[key], lacking=[key] if lacking else [])
            first = None if lacking else await self.first.scores_of(sample, Counter())
            for region, texts in self._wanted(sample, first):
                await self.scorer.plan_view(planner, region.picture, texts, region.view, draw=draw)

        return count


class RerankingModel(RegionModel):
    """A model that is asked about all pairs of a sample, or about the best of an encoder."""

    first: ScorerLike | None = None
    """An encoder that scores all first; the model is asked about the best alone, see `keep`."""
    keep: int | None = Field(default=None, ge=1)
    """How many of the best by `first` the model is asked about; the others stay below, in the order of the encoder."""

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """As of every model; and that an encoder and a number go together.

        Raises:
            UsageError: one of them is missing, or they have no model to go with.
        """
        super().check(options)
        if (self.first is None) != (self.keep is None):
            raise UsageError(
                "An encoder that ranks first and how many of its best are kept go together.",
                hint="Give -T first=clip:FOLDER and -T keep=20.",
            )

    @cached_property
    def _first(self) -> RecordedScorer | None:
        if self.first is None:
            return None
        engine = self.engine or self.plausibility.models[0].engine
        return get_scorer(self.first, engine=engine).as_encoder()

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), **({} if self._first is None else {"first": self._first.form()})}

    @override
    def words(self) -> tuple[str, ...]:
        return (*super().words(), *(() if self._first is None else (f"best {self.keep} of {self._first.id}",)))

    @override
    def solver(self, question: Question) -> AskedRegions:
        """What asks the model about each region.

        Raises:
            UsageError: as of every model; or a whole chunk would be asked about, without an encoder.
        """
        asked = super().solver(question)
        if self._first is not None and self.keep is not None:
            return RerankedRegions(asked.scorer, asked.pools, first=self._first, keep=self.keep)
        self._check_pools(asked.pools)
        return asked

    def _check_pools(self, pools: SamplePools) -> None:
        """Checks that all pairs of the pools are few enough to be asked about."""
        calls = self.draws * sum(size**2 for size in pools.sizes) if pools else 0
        if calls > MOST_ASKED:
            raise UsageError(
                f"To ask about {sum(pools.sizes):,} regions with each inference of their chunks takes up to {calls:,} "
                f"calls; without an encoder {MOST_ASKED:,} is the most.",
                hint="Have an encoder rank first, and ask about its best: -T first=clip:FOLDER -T keep=20. "
                "Or ask about fewer regions, by `limit` or `ids`, which are held against each other alone.",
            )
