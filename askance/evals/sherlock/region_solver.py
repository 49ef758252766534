"""Solvers that say how plausible inferences are of regions: the one interface that the tasks share (section 4).

Every answer is a matrix, regions × inferences, in which a higher number is more plausible. The scores of a picture with
few pairs are on record, each by itself. Of a chunk, which has a million pairs, and of a hundred proposals, each region
and each inference is encoded once, and their scores lie, at 32 bits, in the matrix of the sample alone: a file beside
the run's lines, so that figures need no weights.

A region of a pool that cannot be shown, since its picture is damaged, fails its own sample alone. In the matrices of
the others its place has the least score of the row, and the trace says that it is no score (`MISSING`).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias

from typing_extensions import override

from askance.chains.planner import check_mode
from askance.errors import BadImage, UsageError
from askance.evals.matrix import Matrix
from askance.evals.sample import INFERENCES, REGIONS, Prediction, Sample
from askance.evals.sherlock.measures import draw
from askance.evals.sherlock.pools import SamplePools, regions_of
from askance.evals.solver import Solver, prompt_files
from askance.models import collect_keys
from askance.models.call_scope import current_scope
from askance.models.loop import PerLoop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.agents.plausibility import PlausibilityScorer
    from askance.chains import Planner
    from askance.chat import JsonObject
    from askance.evals.sherlock.pools import Region
    from askance.evals.solver import PlanSample
    from askance.models import Engine, Model, RecordedScorer

    Scores = NDArray[np.float64]
    Row: TypeAlias = Scores | BadImage
    """The scores of a region with inferences, or why it cannot be shown."""

FLOORED: Final = "floored"
"""Entry of a prediction's trace: labels that were not among a model's likeliest tokens, so that they have a bound."""
MARKS: Final = "marks described"
"""Entry of a prediction's trace: descriptions that speak of the marks of a region as if they were in the picture."""
MISSING: Final = "missing"
"""Entry of a prediction's trace: the places in its pool whose regions cannot be shown, so that they have no score."""

MOST_RECORDED: Final = 200
"""Most pairs of a sample whose scores are recorded one by one: a picture has 12 regions at most, and 12 inferences."""
MOST_HELD: Final = 2
"""Pools whose scores are held at the same time."""


@dataclass(frozen=True, slots=True)
class SampleScores:
    """The matrix of a sample, and the places of its second row that have no score but the least of the others."""

    scores: Scores
    missing: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class _Table:
    """The scores of regions, row by row."""

    scores: Scores
    """Regions × inferences; 0 where a region cannot be shown."""
    errors: Mapping[int, BadImage]
    """By place why a region cannot be shown."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Table:
        import numpy as np

        errors = {place: row for place, row in enumerate(rows) if isinstance(row, BadImage)}
        width = next((len(row) for row in rows if not isinstance(row, BadImage)), 1)
        return cls(np.stack([np.zeros(width) if isinstance(row, BadImage) else row for row in rows]), errors)

    def row(self, place: int) -> Scores:
        """The scores of a region.

        Raises:
            BadImage: it cannot be shown.
        """
        if place in self.errors:
            raise self.errors[place]
        return self.scores[place]

    def beside(self, row: Scores, place: int) -> SampleScores:
        """The scores of a region with all inferences, and below them the column at `place`: those of its inference."""
        import numpy as np

        column, missing = self.scores[:, place].copy(), [*self.errors]
        column[missing] = np.delete(column, missing).min()
        return SampleScores(np.stack([row, column]), missing)


class RegionSolver(Solver):
    """Fills the matrix of a sample.

    By default it has the regions and the inferences of the sample. Where samples are pooled, each is one region with
    its own inference, and the matrix has two rows: its region with the inferences of the pool, and its inference with
    the regions of the pool.

    Args:
        pools: the samples.
    """

    plannable = True
    whole_pools = True
    """Whether all pairs of a pool are scored at once, and not only those of one sample."""

    def __init__(self, pools: SamplePools) -> None:
        self.pools = pools
        self._of_pools: PerLoop[dict[Any, asyncio.Future[_Table]]] = PerLoop(dict[Any, "asyncio.Future[_Table]"])

    @abstractmethod
    async def rows(self, regions: Sequence[Region], inferences: Sequence[str], counts: Counter[str]) -> Sequence[Row]:
        """For each region its scores with all inferences, or why it cannot be shown.

        Args:
            regions: of one picture or of a pool.
            inferences: held against each region.
            counts: takes how often something happened that a reader should know of.

        Raises:
            AskanceError: a score cannot be computed.
        """

    @override
    def among(self, samples: Sequence[Sample]) -> Self:
        other = copy(self)
        RegionSolver.__init__(other, SamplePools(self.pools.by, lambda: samples))
        return other

    @override
    async def answer(self, sample: Sample) -> Prediction:
        """The prediction for one sample; its value is by row the number of the best column, from 1.

        Raises:
            AskanceError: a picture cannot be read, or a score cannot be computed.
        """
        counts = Counter[str]()
        with collect_keys() as keys:
            found = await self.scores_of(sample, counts)
        scores = found.scores
        return Prediction(
            outcome="answered",
            value=(scores.argmax(axis=1) + 1).tolist(),
            links={"scores": {"outcome": "answered", "calls": sorted(keys)}},
            trace={**counts, **({MISSING: [*found.missing]} if found.missing else {})},
            matrix=Matrix(scores.astype("float32") if scores.size > MOST_RECORDED else scores),
        )

    async def scores_of(self, sample: Sample, counts: Counter[str]) -> SampleScores:
        """The scores of a sample.

        Args:
            sample: with its regions and its inferences.
            counts: as of `rows`.

        Raises:
            AskanceError: as `answer`.
        """
        if self.pools:
            return await self._in_pool(sample, counts)
        table = _Table.of(await self.rows(regions_of(sample), sample.inputs[INFERENCES], counts))
        for error in table.errors.values():
            raise error
        return SampleScores(table.scores)

    # --- pools ---

    async def _in_pool(self, sample: Sample, counts: Counter[str]) -> SampleScores:
        pool = self.pools.of(sample)
        if self.whole_pools:
            place, table = pool.places[sample.id], await self._of_pool(sample)
            return table.beside(table.row(place), place)
        own = _Table.of(await self.rows(regions_of(sample), pool.inferences, counts)).row(0)
        table = _Table.of(await self.rows(pool.regions, sample.inputs[INFERENCES], counts))
        return table.beside(own, 0)

    async def _of_pool(self, sample: Sample) -> _Table:
        """The scores of all pairs of a pool; few pools are held, since samples come pool by pool."""
        value, running = (self.pools.value(sample), current_scope().draw), self._of_pools()
        if value not in running:
            while len(running) >= MOST_HELD:
                del running[next(iter(running))]
            pool = self.pools.of(sample)

            async def table() -> _Table:
                return _Table.of(await self.rows(pool.regions, pool.inferences, Counter()))

            running[value] = asyncio.ensure_future(table())
        return await asyncio.shield(running[value])  # a sample that is cancelled leaves the scores to the others


def _is_large(sample: Sample) -> bool:
    """Whether the scores of a sample are too many to be recorded one by one."""
    return len(sample.inputs[REGIONS]) * len(sample.inputs[INFERENCES]) > MOST_RECORDED


class EncodedRegions(RegionSolver):
    """Scores by an encoder of pictures and texts.

    Its scores are too many to be recorded one by one where samples are pooled, or a sample has more than
    `MOST_RECORDED`; a subclass may keep them on record in another way.

    Args:
        scorer: the encoder, whose scores are recorded.
        pools: the samples.

    Raises:
        UsageError: the encoder cannot be shown a part of a picture, or the mode is `replay` and its scores are too many
            to be on record.
    """

    on_record: ClassVar[bool] = False
    """Whether what is computed anew by `rows` is on record as a whole."""

    def __init__(self, scorer: RecordedScorer, pools: SamplePools) -> None:
        super().__init__(pools)
        scorer.check_views()
        if not self.on_record and scorer.engine.mode == "replay" and (pools or any(map(_is_large, pools.samples()))):
            raise UsageError(
                f"The scores of {str(scorer.id)!r} are too many to be on record: they lie in the matrices of the run.",
                hint="Figures need no more, `askance eval score RUN`; or compute them anew without `--mode replay`.",
            )
        self.scorer = scorer

    @property
    @override
    def engine(self) -> Engine:
        return self.scorer.engine

    @override
    def form(self) -> JsonObject:
        return {"solver": "regions", "scorer": self.scorer.form()}

    @override
    async def rows(self, regions: Sequence[Region], inferences: Sequence[str], counts: Counter[str]) -> Sequence[Row]:
        import numpy as np

        pairs = [(region.picture, region.view) for region in regions]
        if self.on_record or self.pools or len(pairs) * len(inferences) > MOST_RECORDED:
            rows = await self.scorer.fresh_rows(pairs, inferences)
        else:
            rows = await asyncio.gather(*(self.scorer.score(image, inferences, view=view) for image, view in pairs))
        return [row if isinstance(row, BadImage) else np.array(row, dtype=np.float64) for row in rows]

    @override
    def plan(self, planner: Planner) -> PlanSample:
        check_mode(self.scorer.engine.mode)

        async def count(sample: Sample, _: int) -> None:
            scorer, inferences, regions = self.scorer, sample.inputs[INFERENCES], regions_of(sample)
            pairs = len(self.pools.of(sample).samples) if self.pools else len(regions) * len(inferences)
            if self.pools or pairs > MOST_RECORDED:
                planner.add_computed("scores", scorer.id, keys=(), lacking=(), dependent=pairs)
                return
            for region in regions:
                keys = scorer.keys(region.picture, inferences, view=region.view)
                lacking = scorer.lacking(region.picture, inferences, view=region.view)
                planner.add_computed("scores", scorer.id, keys=keys, lacking=lacking)

        return count


class AskedRegions(RegionSolver):
    """Scores by chat models, whose calls are on record.

    Args:
        scorer: asks the models.
        pools: the samples.
    """

    whole_pools = False

    def __init__(self, scorer: PlausibilityScorer, pools: SamplePools) -> None:
        super().__init__(pools)
        self.scorer = scorer

    @property
    @override
    def models(self) -> Sequence[Model]:
        return self.scorer.models

    @property
    @override
    def prompts(self) -> Mapping[str, str]:
        return prompt_files(self.scorer.nodes)

    @override
    def form(self) -> JsonObject:
        return {"solver": "regions", **self.scorer.parameters}

    @override
    async def rows(self, regions: Sequence[Region], inferences: Sequence[str], counts: Counter[str]) -> Sequence[Row]:
        return await asyncio.gather(*(self.row(region, inferences, counts) for region in regions))

    async def row(self, region: Region, inferences: Sequence[str], counts: Counter[str]) -> Row:
        """As `rows`, for one region."""
        import numpy as np

        try:
            asked = await self.scorer.plausibility(region.picture, inferences, region.view)
        except BadImage as error:
            return error
        counts[FLOORED] += asked.floored
        counts[MARKS] += asked.marks_described
        return np.array(asked.scores, dtype=np.float64)

    @override
    def plan(self, planner: Planner) -> PlanSample:
        for model in self.models:
            check_mode(model.mode)

        async def count(sample: Sample, draw: int) -> None:
            own, inferences = regions_of(sample), sample.inputs[INFERENCES]
            asked: list[tuple[Sequence[Region], Sequence[str]]] = [(own, inferences)]
            if self.pools:
                pool = self.pools.of(sample)
                asked = [(own, pool.inferences), (pool.regions, inferences)]
            for regions, texts in asked:
                for region in regions:
                    await self.scorer.plan_view(planner, region.picture, texts, region.view, draw=draw)

        return count


class RandomScores(RegionSolver):
    """Random scores; the same for an image, boxes and a text whenever they are drawn.

    Args:
        pools: the samples.
        seed: of the draws.
    """

    plannable = False

    def __init__(self, pools: SamplePools, *, seed: int) -> None:
        super().__init__(pools)
        self.seed = seed

    @override
    def form(self) -> JsonObject:
        return {"baseline": "random", "seed": self.seed, "version": 2}

    @override
    async def rows(self, regions: Sequence[Region], inferences: Sequence[str], counts: Counter[str]) -> Sequence[Row]:
        import numpy as np

        epoch = str(current_scope().draw)
        return [np.array([draw(self.seed, epoch, region.name, text) for text in inferences]) for region in regions]
