"""Base classes of the tasks over Sherlock: which regions are asked about, how they are shown, who scores inferences.

All tasks share one interface (section 4): a picture, a region of it and an inference have a plausibility. It is scored
by an encoder (`-T scorer=clip:…`), by a model that is asked about each inference (`--vlm …`), or drawn at random.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from pydantic import Field
from typing_extensions import override

from askance.agents.plausibility import TOP, By, PlausibilityScorer
from askance.errors import BadData, UsageError
from askance.evals.metric import mean
from askance.evals.part import Answerer, Question
from askance.evals.sample import INFERENCES, REGIONS, Prediction, Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.sherlock.dataset import Sherlock
from askance.evals.sherlock.instance import CONFIDENCES
from askance.evals.sherlock.pools import SHOW, SamplePools
from askance.evals.sherlock.region_solver import FLOORED, MARKS, MISSING, AskedRegions, EncodedRegions, RandomScores
from askance.evals.suite.any_solver import AnySolver, AnySolverLike
from askance.evals.suite.breakdown import by_tag
from askance.evals.suite.context import PICTURE
from askance.evals.suite.ranker import Encoder
from askance.evals.suite.selection import Subset, read_names
from askance.evals.task import Task
from askance.models import ModelLike, get_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.chat import JsonObject
    from askance.evals.metric import Metric
    from askance.evals.sherlock.instance import Instance
    from askance.evals.solver import Solver
    from askance.images import Image
    from askance.images.regions import Box
    from askance.models import Model

    Scores = NDArray[np.float64]

RegionShow: TypeAlias = Literal["highlight", "hide", "blackout", "position", "crop", "whole"]
"""Beside the highlighted region the ablations of the paper (Fig. 5a): only context, no context, position only, and, as
`whole`, no region. The region cut out, `crop`, is none of them."""
RegionText: TypeAlias = Literal["inference", "clue"]

REGION = "region"
"""The context in which a VLM describes a region and an LLM scores inferences by that."""
TAGS: Mapping[str, Callable[[Any], str]] = {"source": str, "confidence": lambda value: CONFIDENCES[value]}
"""By tag, what figures by its values are called."""


def facts_of(instance: Instance) -> Mapping[str, Any]:
    """The tags of a region."""
    sure = {} if instance.confidence is None else {"confidence": instance.confidence}
    return {"source": instance.source, **sure}


def text_of(instance: Instance, which: RegionText) -> str:
    """What is held against regions of an instance."""
    return instance.clue if which == "clue" else instance.inference


def text_words(which: RegionText) -> tuple[str, ...]:
    """How the label of a task says what is held against regions; nothing of inferences."""
    return () if which == "inference" else (f"text={which}",)


def check_text(which: RegionText) -> None:
    """Checks that the leaderboard's files have what is held against regions.

    Raises:
        UsageError: it is a clue.
    """
    if which == "clue":
        raise UsageError(
            "The leaderboard's files have no clues.", hint="Hold inferences against regions: leave `text` out."
        )


class RegionModel(Answerer):
    """A model that is asked how plausible inferences are of a region that it sees, or that is described to it."""

    chosen_by = ("vlm", "llm")

    vlm: ModelLike | None = None
    """Sees the picture."""
    llm: ModelLike | None = None
    """Judges by a description, in the context `region`; by default the VLM does."""
    context: Literal["I", "region"] = PICTURE
    """What inferences are judged by: the picture, `I`, or what a VLM says of the `region` and of the scene."""
    by: By | None = None
    """What is asked of an inference: yes-no, a rating, or a choice among all; by default yes-no, of words a rating."""
    draws: int = Field(default=1, ge=1)
    """How often each is asked; the mean counts."""
    orders: int = Field(default=1, ge=1)
    """In how many orders a choice shows the inferences."""
    top: int = Field(default=TOP, ge=0)
    """Likeliest tokens whose log-probabilities are asked for; 0 takes a rating as it is written."""

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """Checks that there is a model for what is asked.

        Raises:
            UsageError: an LLM is given that nobody would ask, or settings do not go together.
        """
        if not self.is_chosen:
            return
        if self.llm is not None and self.context == PICTURE:
            raise UsageError(
                "An LLM judges by what is said of a region, and the context `I` shows the picture.",
                hint=f"Give --context {REGION} as well, or leave the LLM out.",
            )
        _ = self.plausibility

    @cached_property
    def plausibility(self) -> PlausibilityScorer:
        """What asks the models.

        Raises:
            UsageError: there is no VLM, or settings do not go together.
        """
        if self.vlm is None:
            raise UsageError(
                "There is no model that sees the picture.", hint="Give `vlm`, or an encoder: -T scorer=clip:FOLDER."
            )
        return PlausibilityScorer(
            self.vlm,
            self.llm,
            describes=self.context == REGION,
            by=self.by,
            draws=self.draws,
            orders=self.orders,
            top=self.top,
        )

    @override
    def label(self) -> str:
        judge: Model = get_model(cast("ModelLike", self.llm or self.vlm))
        return str(judge.id)

    @override
    def words(self) -> tuple[str, ...]:
        draws = (f"{self.draws} draws",) if self.draws > 1 else ()
        orders = (f"{self.orders} orders",) if self.orders > 1 else ()
        return (self.context, self.plausibility.asked_by, *draws, *orders)

    @override
    def solver(self, question: Question) -> AskedRegions:
        """What asks the models about each region.

        Raises:
            UsageError: scores of different regions are compared, and a choice gives none; or there is no VLM.
        """
        scorer = self.plausibility
        if not scorer.across_regions and not question.count:
            raise UsageError(
                f"by={scorer.asked_by} puts the inferences of one region in order, "
                f"and {self._task!r} compares regions.",
                hint="Ask by=yes-no or by=rating.",
            )
        return AskedRegions(scorer, SamplePools(question.pooled, question.samples))


class RegionEncoder(Encoder):
    """An encoder that says how well an inference fits a region."""

    alone = ("An encoder sees the picture itself.", "Leave out the models and the context, or the scorer.")

    @override
    def words(self) -> tuple[str, ...]:
        return ()

    @override
    def solver(self, question: Question) -> EncodedRegions:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What scores regions by the encoder.

        Raises:
            UsageError: it takes no views, or asks models.
        """
        return EncodedRegions(self.recorded.as_encoder(), SamplePools(question.pooled, question.samples))


class RegionBaseline(AnySolver):
    """Random scores, or a solver of one's own that gives a matrix, regions × inferences."""

    chosen: AnySolverLike | None = Field(default=None, alias="solver")
    """Scores in place of a model: random, or FILE.py:NAME, which gives a matrix, regions × inferences."""

    @override
    def solver(self, question: Question) -> Solver:
        """The solver.

        Raises:
            UsageError: it chooses among options.
        """
        if self.label() == "random":
            return RandomScores(SamplePools(question.pooled, question.samples), seed=question.seed)
        own = self._chosen_solver
        if isinstance(own, str):
            raise UsageError(
                f"The solver {own!r} scores no regions.",
                hint="There is random, and FILE.py:NAME; an encoder is given as `scorer`.",
            )
        return own


class RegionTask(Task):
    """A task over regions of pictures."""

    headlines: ClassVar[tuple[str, ...]] = ()
    """Figures that stand also by source and by confidence."""

    data: Path
    """Folder of the data set."""
    images: Path | None = None
    """Folder of the pictures, if it is another one than `images` of the data set."""
    ids: Path | Sequence[str] | None = None
    """File that lists instances by their `instance_id`, or pictures by their url."""
    limit: int | None = Field(default=None, ge=1, exclude=True)
    """How many samples at most."""
    seed: int = 0
    """Seed of all random choices."""
    region: RegionShow = "highlight"
    """How a region is shown: highlighted, hidden, alone, as its position, cropped, or not at all (`whole`)."""

    @cached_property
    def dataset(self) -> Sherlock:
        """The data."""
        return Sherlock.open(self.data, images=self.images)

    def picture(self, url: str) -> Image | None:
        """The picture of an image, once for all of its regions; None if it is not there."""
        if url not in self._pictures:
            self._pictures[url] = self.dataset.picture(url)
        return self._pictures[url]

    @cached_property
    def _pictures(self) -> dict[str, Image | None]:
        return {}

    @override
    def words(self) -> tuple[str, ...]:
        return () if self.region == "highlight" else (f"region={self.region}",)

    @override
    def notes(self) -> tuple[str, ...]:
        return (*self.subset.notes, *self.dataset.notes)

    @cached_property
    @abstractmethod
    def subset(self) -> Subset[Any]:
        """What the task asks about."""

    # --- which samples ---

    def sample_of(
        self,
        name: str,
        url: str,
        regions: Sequence[Sequence[Box]],
        *,
        inferences: Sequence[str] | None = None,
        target: JsonObject | None = None,
        group: str = "",
        tags: Mapping[str, Any],
    ) -> Sample:
        """The sample of some regions of an image.

        Args:
            name: id of the sample.
            url: of the image.
            regions: the boxes of each region.
            inferences: held against the regions, where there are any.
            target: what is right, where it is known.
            group: of the sample; by default the image.
            tags: of the sample.
        """
        held = {} if inferences is None else {INFERENCES: [*inferences]}
        return Sample(
            id=name,
            image=self.picture(url) if self.answerer.looks else None,
            inputs={REGIONS: [[list(box) for box in region] for region in regions], **held, SHOW: self.region},
            target=target,
            group=group or url,
            tags=tags,
        )

    def chosen(
        self, subset: Subset[Any], names: Callable[[Any], Collection[str]], url: Callable[[Any], str]
    ) -> Subset[Any]:
        """Those of some items that are listed, that have a picture, and that are within the limit.

        Args:
            subset: the items.
            names: by which names an item may be listed.
            url: of its image.

        Raises:
            BadData: a listed one is unknown, or none is left.
        """
        if self.ids is not None:
            wanted = {*read_names(self.ids)} if isinstance(self.ids, Path) else {*self.ids}
            unknown = wanted - {name for item in subset.items for name in names(item)}
            if unknown:
                raise BadData(
                    f"{len(unknown):,} of {len(wanted):,} names in the list are unknown, such as {min(unknown)!r}.",
                    hint="Instances go by their `instance_id`, and images by their url.",
                )
            subset = subset.where(lambda item: not wanted.isdisjoint(names(item)), left_out="not in the list")
        if self.answerer.looks:
            subset = subset.where(lambda item: self.picture(url(item)) is not None, left_out="no picture")
        if not subset.items:
            raise BadData(
                f"No {subset.noun[:-1]} of {str(self.data)!r} has a picture.",
                hint="Give `images`, the folder with VG_100K, VG_100K_2 and vcr1images; nothing is fetched. "
                "`askance data check sherlock DIR` says which pictures are there.",
            )
        return subset.first(self.limit)

    @cached_property
    def breakdown(self) -> Mapping[str, Sequence[Any]]:
        """By tag, its values, by which figures are broken down; a run keeps them."""
        return dict(self.kept_or("breakdown", self._breakdown))

    def _breakdown(self) -> Mapping[str, Sequence[Any]]:
        values = {tag: sorted({each.tags[tag] for each in self._made if tag in each.tags}) for tag in TAGS}
        return {tag: some for tag, some in values.items() if len(some) > 1}

    @cached_property
    def _made(self) -> Sequence[Sample]:
        return tuple(self.regions())

    @abstractmethod
    def regions(self) -> Iterator[Sample]:
        """The samples, made anew."""

    @override
    def samples(self) -> Sequence[Sample]:
        return self._made

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "breakdown": {tag: [*values] for tag, values in self.breakdown.items()}}

    def broken_down(self, scorer: Scorer) -> Scorer:
        """`scorer` with its headlines by source and by confidence as well."""
        for tag, label in TAGS.items():  # in one order, which the JSON of a run does not keep
            if values := self.breakdown.get(tag):
                scorer = by_tag(scorer, tag, values, *self.headlines, label=label)
        return scorer


class SherlockTask(RegionTask):
    """A task that holds inferences against regions of pictures."""

    ranks: ClassVar[int] = 0
    """How many inferences one region is held against, where only scores of one region are compared; else 0."""

    model: RegionModel = RegionModel()
    """The model that is asked."""
    encoder: RegionEncoder = RegionEncoder()
    """An encoder in its place."""
    other: RegionBaseline = RegionBaseline()
    """A solver in its place."""

    @override
    def question(self) -> Question:
        return Question(name=self.name, count=self.ranks, seed=self.seed)

    # --- the figures ---

    @abstractmethod
    def metrics(self) -> Sequence[Metric]:
        """The figures; the first stands for the task."""

    @abstractmethod
    def given_values(self, sample: Sample) -> Mapping[str, float] | None:
        """The values of a sample that no answer changes; None where what is right is hidden, so that it has none."""

    @abstractmethod
    def values_of(self, sample: Sample, scores: Scores) -> Mapping[str, float]:
        """The values of the scores of a sample whose right answer is known."""

    @abstractmethod
    def bounds_of(self, sample: Sample, *, right: bool) -> Mapping[str, float]:
        """The same values if the answer is all right, or all wrong."""

    def shape_of(self, sample: Sample) -> tuple[int, int]:
        """How many rows and columns the scores of a sample have."""
        return len(sample.inputs[REGIONS]), len(sample.inputs[INFERENCES])

    @override
    def scorer(self) -> Scorer:
        scorer = Scorer(
            score=self._score,
            metrics=(*self.metrics(), *self._counted()),
            if_wrong=lambda sample: self._bound(sample, right=False),
            if_right=lambda sample: self._bound(sample, right=True),
            takes="prediction",
        )
        return self.broken_down(scorer)

    def _counted(self) -> Sequence[Metric]:
        if not isinstance(self.answerer, RegionModel):
            return ()
        return (
            mean(FLOORED, percent=False, better="neither", summary="labels without a log-probability, by sample"),
            mean(MARKS, percent=False, better="neither", summary="descriptions that speak of the marks, by sample"),
        )

    def _score(self, sample: Sample, prediction: Prediction) -> Score:
        import numpy as np

        scores = self._scores_of(sample, prediction)
        counts = {name: float(cast("int", prediction.trace.get(name, 0))) for name in (FLOORED, MARKS)}
        missing = int(np.isnan(scores).sum())
        notes = {MISSING: missing} if missing else {}
        given = self.given_values(sample)
        values = {} if given is None else {**given, **self.values_of(sample, scores)}
        return Score(values={**values, **counts}, notes=notes)

    def _bound(self, sample: Sample, *, right: bool) -> Score:
        given = self.given_values(sample)
        return Score(values={} if given is None else {**given, **self.bounds_of(sample, right=right)})

    def _scores_of(self, sample: Sample, prediction: Prediction) -> Scores:
        """The scores of a sample; NaN for those of regions that cannot be shown.

        Raises:
            UsageError: they are none, have another shape, or one is not finite.
        """
        import numpy as np

        try:
            given: Any = prediction.value if prediction.matrix is None else prediction.matrix.array
            scores = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            scores = np.empty(0)
        shape = self.shape_of(sample)
        if scores.shape != shape or not np.isfinite(scores).all():
            raise UsageError(
                f"The answer to {sample.id!r} is no matrix of {shape[0]} × {shape[1]} finite numbers.",
                hint="Give Prediction(matrix=Matrix(scores)): regions × inferences, a higher number is more plausible.",
            )
        return scores
