"""What goes with agreement with people: how far a model was trained, how well it retrieves, and what can be predicted.

Two figures of the paper, from runs of comparison and retrieval.

- Section 5.2: over checkpoints of one model, Pearson's correlation of human accuracy with P@1 of retrieval and with the
  training step. A run of comparison goes with the run of retrieval by the same scorer.
- Section 5.3: whether a model does above or below its average on a region is predicted by logistic regression, in five
  folds; the area under the ROC curve is 50 % by chance. Features are the vector of the picture, the mean vector of the
  inferences, or one number, how far the raters agree. Regions are the 340 on which they agree most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from askance.chat import canonical_json
from askance.errors import BadData, UsageError, optional_library
from askance.evals.analysis.compare import check_scores
from askance.evals.sample import INFERENCES
from askance.evals.sherlock.comparison import HUMAN, PEOPLE
from askance.evals.sherlock.retrieval import FIRST
from askance.models import get_embedder
from askance.statistics import pearson

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.run import Run, SampleResult
    from askance.evals.sherlock.dataset import Sherlock
    from askance.models.encoders.embedder import EmbedderLike, RecordedEmbedder
    from askance.models.engine import Engine
    from askance.statistics import Correlation

COMPARISON, RETRIEVAL = "sherlock/comparison", "sherlock/retrieval"
MOST: Final = 340
"""Regions with the highest agreement of raters, whose errors are predicted."""
FOLDS: Final = 5
AGREEMENT: Final = "agreement of the raters"


# --- checkpoints ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A model at one time of its training."""

    name: str
    step: int | None
    """Its training step, where it was given."""
    first: float
    """P@1 of retrieval."""
    human: float
    """Human accuracy of comparison."""


@dataclass(frozen=True, kw_only=True)
class CheckpointCorrelations:
    """How human accuracy goes with retrieval and with training, over checkpoints."""

    checkpoints: tuple[Checkpoint, ...]
    with_retrieval: Correlation
    """Pearson's, of P@1 with human accuracy."""
    with_step: Correlation | None
    """Pearson's, of the training step with human accuracy; None where no steps were given."""

    def form(self) -> JsonObject:
        """All of it as JSON."""
        return asdict(self)


def checkpoint_correlations(runs: Sequence[Run], *, steps: Sequence[int] | None = None) -> CheckpointCorrelations:
    """How human accuracy goes with retrieval and with training.

    Args:
        runs: of comparison and of retrieval, one of each by the scorer of a checkpoint.
        steps: the training step of each run of comparison, in their order.

    Raises:
        UsageError: a run is of another task, is not scored, or has no partner; or there are not as many steps.
    """
    by_task: dict[str, dict[str, Run]] = {COMPARISON: {}, RETRIEVAL: {}}
    for run in runs:
        if run.task not in by_task:
            raise UsageError(
                f"The run {str(run.path)!r} is of {run.task!r}.", hint=f"Name runs of {COMPARISON} and {RETRIEVAL}."
            )
        of_task, scorer = by_task[run.task], _scorer(run)
        if scorer in of_task:
            raise UsageError(
                f"The runs {str(of_task[scorer].path)!r} and {str(run.path)!r} are of one task by one scorer.",
                hint="Name one run of each task by each checkpoint.",
            )
        of_task[scorer] = run
    compared, retrieved = by_task.values()
    for name in compared.keys() ^ retrieved.keys():
        run = compared.get(name) or retrieved[name]
        missing = RETRIEVAL if name in compared else COMPARISON
        raise UsageError(
            f"The run {str(run.path)!r} has no run of {missing} by the same scorer.",
            hint="Name one run of each task by each checkpoint.",
        )
    if steps is not None and len(steps) != len(compared):
        raise UsageError(
            f"{len(steps)} steps do not go with {len(compared)} runs of comparison.",
            hint="Give one for each of them, in their order.",
        )
    checkpoints = [
        Checkpoint(
            name=run.name,
            step=None if steps is None else steps[place],
            first=_figure(retrieved[scorer], FIRST),
            human=_figure(run, HUMAN),
        )
        for place, (scorer, run) in enumerate(compared.items())
    ]
    human = [each.human for each in checkpoints]
    return CheckpointCorrelations(
        checkpoints=tuple(checkpoints),
        with_retrieval=pearson([each.first for each in checkpoints], human),
        with_step=None if steps is None else pearson(steps, human),
    )


def _scorer(run: Run) -> str:
    """What tells the scorer of a run, and what it was shown of regions, from another."""
    return canonical_json({"solver": dict(run.solver), "region": run.options.get("region")})


def _figure(run: Run, name: str) -> float:
    value = run.figure(name).value
    if value is None:
        raise UsageError(
            f"The run {str(run.path)!r} has no {name}.", hint="Finish it, over data whose answers are not hidden."
        )
    return value


# --- errors ---


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturePrediction:
    """How well some features predict on which regions a model does above its average."""

    features: str
    area: float
    """Mean over the folds of the area under the ROC curve; a half is chance."""
    by_fold: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ErrorPrediction:
    """How well the errors of a run of comparison can be predicted."""

    run: str
    regions: int
    """How many were looked at."""
    average: float
    """The mean of their human accuracy."""
    predicted: tuple[FeaturePrediction, ...]

    def form(self) -> JsonObject:
        """All of it as JSON."""
        return asdict(self)


async def error_prediction(
    run: Run,
    *,
    data: Sherlock | None = None,
    pictures: EmbedderLike | None = None,
    texts: EmbedderLike | None = None,
    most: int = MOST,
    seed: int = 0,
    engine: Engine | None = None,
) -> ErrorPrediction:
    """How well features predict on which regions a model does above its average.

    Args:
        run: of comparison.
        data: with the pictures; needed where `pictures` is given.
        pictures: an embedder whose vectors of pictures are features.
        texts: an embedder whose mean vectors of inferences are features.
        most: regions, those on which the raters agree most; of equal ones the first by id.
        seed: of the folds.
        engine: whose records and mode are used.

    Raises:
        UsageError: the run is of another task or is not scored, no data are given for pictures, or the regions above or
            below the average are fewer than the folds.
        BadData: a picture is missing.
        MissingExtra: scikit-learn is not installed.
        CallError: an embedder failed.
    """
    if run.task != COMPARISON:
        raise UsageError(f"The run {str(run.path)!r} is of {run.task!r}.", hint=f"Name a run of {COMPARISON}.")
    check_scores(run)
    known = [(each, each.score.values) for each in run.answers if each.score is not None and HUMAN in each.score.values]
    agreed = sorted(known, key=lambda pair: (-pair[1][PEOPLE], pair[0].sample.id))[:most]
    results, scored = [each for each, _ in agreed], [values[HUMAN] for _, values in agreed]
    average = fmean(scored or [0.0])
    above = [value > average for value in scored]
    better, worse = above.count(True), above.count(False)
    if min(better, worse) < FOLDS:
        raise UsageError(
            f"The run {str(run.path)!r} has {better} regions above its average and {worse} others.",
            hint=f"At least {FOLDS} of each are needed, one for each fold.",
        )
    features: dict[str, Sequence[Sequence[float]]] = {}
    if pictures is not None:
        features["pictures"] = await _of_pictures(results, data, get_embedder(pictures, engine=engine))
    if texts is not None:
        features["inferences"] = await _of_texts(results, get_embedder(texts, engine=engine))
    features[AGREEMENT] = [[values[PEOPLE]] for _, values in agreed]
    return ErrorPrediction(
        run=run.name,
        regions=len(agreed),
        average=average,
        predicted=tuple(_predicted(name, rows, above, seed=seed) for name, rows in features.items()),
    )


async def _of_pictures(
    results: Sequence[SampleResult], data: Sherlock | None, embedder: RecordedEmbedder
) -> list[list[float]]:
    """The vector of the picture of each result."""
    if data is None:
        raise UsageError("Pictures are features, and there are no data.", hint="Name the folder of the data set.")
    vectors: list[list[float]] = []
    for each in results:
        image = data.picture(each.sample.cluster)
        if image is None:
            raise BadData(
                f"The picture of {each.sample.cluster!r} is not there.",
                hint="`askance data check sherlock DIR` says which pictures are; or leave pictures out.",
            )
        vectors.append([*map(float, await embedder.embed_image(image))])
    return vectors


async def _of_texts(results: Sequence[SampleResult], embedder: RecordedEmbedder) -> list[list[float]]:
    """The mean vector of the inferences of each result."""
    means: list[list[float]] = []
    for each in results:
        vectors = await embedder.embed(each.sample.inputs[INFERENCES])
        means.append([fmean(column) for column in zip(*vectors, strict=True)])
    return means


def _predicted(name: str, rows: Sequence[Sequence[float]], above: Sequence[bool], *, seed: int) -> FeaturePrediction:
    """How far features predict which regions are above the average."""
    selection, linear = _sklearn("model_selection"), _sklearn("linear_model")
    folds: Any = selection.StratifiedKFold(n_splits=FOLDS, shuffle=True, random_state=seed)
    areas: Any = selection.cross_val_score(
        linear.LogisticRegression(max_iter=1000), list(map(list, rows)), list(above), cv=folds, scoring="roc_auc"
    )
    by_fold = tuple(float(area) for area in areas)
    return FeaturePrediction(features=name, area=fmean(by_fold), by_fold=by_fold)


def _sklearn(module: str) -> Any:
    lacking = "Errors are predicted with scikit-learn, which is not installed."
    return optional_library(f"sklearn.{module}", "audit", lacking=lacking)
