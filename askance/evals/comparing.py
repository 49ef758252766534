"""Two runs of a task on the same samples: better, worse, or tied at this size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from askance.errors import UsageError
from askance.evals.catalog import definition_of
from askance.evals.html import comparison_html
from askance.models import Engine
from askance.statistics import Comparison, compare_paired, compare_statistics, compare_totals, holm_adjusted

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.figures import Convention, Metric
    from askance.evals.run import Answer, Run
    from askance.evals.tasks import Scoring
    from askance.evals.values import Score

Pair = tuple["Answer", "Answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """What two runs' answers to the same samples say of one metric; of the first run against the second."""

    metric: str
    comparison: Comparison
    percent: bool
    cluster: Literal["image", "group"]
    """What samples that are no independent evidence share."""

    def sentence(self, name_a: str, name_b: str) -> str:
        """The verdict in plain words."""
        unit = "%" if self.percent else ""
        return self.comparison.sentence(name_a, name_b, self.metric, unit=unit, cluster=self.cluster)

    def _repr_html_(self) -> str:
        return comparison_html(self)

    def form(self) -> JsonObject:
        """The comparison as JSON."""
        return {"metric": self.metric, **asdict(self.comparison)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Which samples two runs have in common; samples that are answered several times count as often."""

    pairs: tuple[Pair, ...]
    only_a: int
    only_b: int
    unlike: int
    """Pairs that were not asked the same: another picture, other options, another target."""
    answered: tuple[int, int, int]
    """Pairs that both answered, that the first alone did, that the second alone did."""


def paired(run_a: Run, run_b: Run) -> Pairing:
    """The answers of two runs to the same samples, in the order of the samples."""
    a, b = ({(answer.sample.id, answer.epoch): answer for answer in run.answers} for run in (run_a, run_b))
    pairs = tuple((a[key], b[key]) for key in a if key in b)
    unlike = sum(one.sample.form() != other.sample.form() for one, other in pairs)
    answered = [(one.prediction.answered, other.prediction.answered) for one, other in pairs]
    return Pairing(
        pairs=pairs,
        only_a=len(a) - len(pairs),
        only_b=len(b) - len(pairs),
        unlike=unlike,
        answered=(answered.count((True, True)), answered.count((True, False)), answered.count((False, True))),
    )


def compare(
    run_a: Run,
    run_b: Run,
    metric: str | Sequence[str] | None = None,
    *,
    task: str | None = None,
    convention: Convention | None = None,
    seed: int = 0,
) -> tuple[MetricComparison, ...]:
    """What the samples that both runs have say of the first against the second.

    Several metrics are a family: their p is adjusted by Holm's method.

    Args:
        run_a: a run.
        run_b: another run of the same task.
        metric: one or several; None is all of which one end is better.
        task: where the task is found, if not where the runs say.
        convention: what becomes of non-answers: `answered` compares the samples that both answered; None is that of
            the first run.
        seed: of the resampling.

    Raises:
        UsageError: the runs are of different tasks, have no sample in common, or no metric of a name.
    """
    if run_a.task != run_b.task:
        raise UsageError(
            f"The runs are of different tasks, {run_a.task!r} and {run_b.task!r}.", hint="Compare runs of one task."
        )
    pairs = paired(run_a, run_b).pairs
    if not pairs:
        raise UsageError(
            f"The runs {str(run_a.path)!r} and {str(run_b.path)!r} have no sample in common.",
            hint="Run both over the same data, or the same `--ids`.",
        )
    definition = definition_of(run_a, task)
    scoring = definition.scored(Engine(mode="replay", records=run_a.records), run_a.configuration["options"])
    rows = [*_rows(pairs, scoring, convention or run_a.convention)]
    found = [_compared(each, rows, seed=seed) for each in _chosen(scoring.metrics, metric, rows)]
    adjusted = holm_adjusted([each.comparison for each in found]) if len(found) > 1 else None
    if adjusted is None:
        return tuple(found)
    return tuple(
        MetricComparison(metric=each.metric, comparison=one, percent=each.percent, cluster=each.cluster)
        for each, one in zip(found, adjusted, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """The scores of one pair."""

    a: Score
    b: Score
    cluster: str
    has_image: bool


def _rows(pairs: Sequence[Pair], scoring: Scoring, convention: Convention) -> Iterator[_Row]:
    for a, b in pairs:
        if convention == "answered" and (a.score is None or b.score is None):
            continue
        score_a, score_b = (each.score or scoring.if_wrong(each.sample) for each in (a, b))
        yield _Row(score_a, score_b, a.sample.cluster, a.sample.image is not None)


def _chosen(metrics: Sequence[Metric], wanted: str | Sequence[str] | None, rows: Sequence[_Row]) -> list[Metric]:
    """The metrics that are wanted, or else all that have a good end and that any sample counts for."""
    known = {metric.name: metric for metric in metrics}
    if wanted is None:
        ended = [metric for metric in metrics if metric.better != "neither"]
        return [metric for metric in ended if any(metric.covers(row.a) or metric.covers(row.b) for row in rows)]
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in known:
            raise UsageError(f"The task has no metric {name!r}.", hint=f"It has {', '.join(known)}.")
        if known[name].better == "neither":
            raise UsageError(f"No value of {name!r} is better than another.", hint="Leave it out.")
    return [known[name] for name in dict.fromkeys(names)]


def _compared(metric: Metric, rows: Sequence[_Row], *, seed: int) -> MetricComparison:
    about = [row for row in rows if metric.covers(row.a) and metric.covers(row.b)]
    clusters = [row.cluster for row in about]
    better = metric.better == "higher"
    a, b = metric.matrix([row.a for row in about]), metric.matrix([row.b for row in about])
    if metric.of_sums is not None:
        comparison = compare_totals(metric.totalled, a, b, seed=seed, clusters=clusters, higher_is_better=better)
    elif metric.statistic is None:
        left: list[float] = a[:, 0].tolist()
        right: list[float] = b[:, 0].tolist()
        binary = all(value in {0.0, 1.0} for value in (*left, *right))
        comparison = compare_paired(left, right, clusters, seed=seed, binary=binary, higher_is_better=better)
    else:
        both = metric.matrix([*(row.a for row in about), *(row.b for row in about)])
        comparison = compare_statistics(
            lambda drawn: metric.figured(both[list(drawn)]),
            range(len(about)),
            range(len(about), 2 * len(about)),
            seed=seed,
            clusters=clusters,
            higher_is_better=better,
        )
    return MetricComparison(
        metric=metric.name,
        comparison=comparison,
        percent=metric.percent,
        cluster="image" if all(row.has_image for row in about) else "group",
    )


def differences(run_a: Run, run_b: Run) -> Iterator[tuple[str, Any, Any]]:
    """Where the configurations of two runs differ: the place, and what stands there; None where nothing does."""
    yield from _differing(run_a.configuration, run_b.configuration, "")


def _differing(a: Any, b: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        one, other = cast("Mapping[str, Any]", a), cast("Mapping[str, Any]", b)
        for name in dict.fromkeys([*one, *other]):
            yield from _differing(one.get(name), other.get(name), f"{place}.{name}" if place else name)
    elif a != b:
        yield place, a, b
