"""`Metric`, a number over the scores of many samples, and `Figure`, its value with interval, counts and bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from typing_extensions import override

from askance import statistics
from askance.statistics import Interval

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from askance.chat import JsonObject
    from askance.evals.sample import Score

    Matrix: TypeAlias = NDArray[float64]

MissingAnswerPolicy = Literal["wrong", "answered"]
"""Whether samples without an answer count as wrong, as in the paper's tables, or are left out (`answered`)."""

CONVENTIONS: dict[MissingAnswerPolicy, str] = {
    "wrong": "samples without an answer count as wrong",
    "answered": "samples without an answer are left out",
}


Better = Literal["higher", "lower", "neither"]
"""Whether higher or lower values of a metric are better; runs are not compared by a metric with `neither`."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number computed from the scores of many samples.

    Samples whose score lacks one of the columns are left out.
    """

    name: str
    columns: tuple[str, ...]
    """Names of the score's values that it is computed from."""
    statistic: Callable[[Matrix], float] | None = None
    """Computes the number from a matrix of samples × columns; None takes the mean of the only column."""
    of_sums: Callable[[Sequence[float]], float] | None = None
    """Computes the number from the sums of the columns, NaN if it has none; samples may have weights that are no whole
    numbers. It takes the place of `statistic`, and is far faster to resample."""
    percent: bool = True
    """Whether it is shown times 100."""
    better: Better = "higher"
    summary: str = ""
    """What it says, for tables."""
    beside: bool = False
    """Whether it only stands beside another metric, such as that of one fold; runs are compared by it on request."""

    def of(self, scores: Sequence[Score]) -> float | None:
        """The number for `scores`; None if no score has the columns, or if it has no value."""
        matrix = self.matrix(scores)
        return None if len(matrix) == 0 else self.figured(matrix)

    def covers(self, score: Score) -> bool:
        """Whether `score` has all columns of the metric."""
        return self._needed <= score.values.keys()

    @cached_property
    def _needed(self) -> frozenset[str]:
        return frozenset(self.columns)

    def matrix(self, scores: Sequence[Score]) -> Matrix:
        """The columns of `scores`, samples × columns."""
        import numpy as np

        rows = [[score.values[name] for name in self.columns] for score in scores if self.covers(score)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.columns))

    def strata_of(self, scores: Sequence[Score]) -> Sequence[int] | None:  # noqa: ARG002  # `StratifiedMetric` has some
        """The stratum of each row of `matrix`, if the number is the plain mean of those of strata; else None."""
        return None

    def figured(self, matrix: Matrix) -> float | None:
        """The number for a matrix of samples × columns, all of one stratum; None if it is NaN."""
        if self.of_sums is not None:
            value = float(self.of_sums(matrix.sum(axis=0).tolist()))
        else:
            value = float(matrix.mean()) if self.statistic is None else float(self.statistic(matrix))
        return None if math.isnan(value) else value

    def totalled(self, sums: Matrix) -> Matrix:
        """`of_sums` for many sums at once, from shape (…, columns) to (…); NaN stands for no value."""
        import numpy as np

        rows: list[list[float]] = sums.reshape(-1, sums.shape[-1]).tolist()
        values = [math.nan if self.of_sums is None else self.of_sums(row) for row in rows]
        return np.array(values, dtype=np.float64).reshape(sums.shape[:-1])


@dataclass(frozen=True, kw_only=True)
class StratifiedMetric(Metric):
    """The plain mean of a metric over disjoint sets of samples, such as the folds of a cross-validation.

    A set without a number is left out of the mean. Samples of no set are left out of the metric.
    """

    strata: tuple[Metric, ...]
    """The same metric over each set."""

    @classmethod
    def over(cls, metric: Metric, strata: Sequence[Metric], *, summary: str) -> StratifiedMetric:
        """The mean of `metric` over sets, under its name."""
        settings: dict[str, Any] = {each.name: getattr(metric, each.name) for each in fields(Metric)}
        settings["summary"] = summary
        return cls(**settings, strata=tuple(strata))

    @override
    def of(self, scores: Sequence[Score]) -> float | None:
        figures = [each.of(scores) for each in self.strata]
        known = [figure for figure in figures if figure is not None]
        return math.fsum(known) / len(known) if known else None

    @override
    def covers(self, score: Score) -> bool:
        return any(each.covers(score) for each in self.strata)

    @override
    def matrix(self, scores: Sequence[Score]) -> Matrix:
        import numpy as np

        strata = np.array(self.strata_of(scores), dtype=np.int64)
        parts = [each.matrix(scores) for each in self.strata]
        matrix = np.zeros((len(strata), parts[0].shape[1]))
        for number, part in enumerate(parts):
            matrix[strata == number] = part
        return matrix

    @override
    def strata_of(self, scores: Sequence[Score]) -> Sequence[int]:
        numbers = (next((n for n, each in enumerate(self.strata) if each.covers(score)), None) for score in scores)
        return [stratum for stratum in numbers if stratum is not None]

    def without_value(self, rows: Sequence[Scored], *, convention: MissingAnswerPolicy) -> tuple[str, ...]:
        """The labels of the sets that the mean leaves out, such as `fold 2`."""
        scores = _counted(self, rows, convention=convention)
        lacking = (each.name for each in self.strata if each.of([row.score or row.if_wrong for row in scores]) is None)
        return tuple(name.removeprefix(f"{self.name}: ") for name in lacking)


def pooled_name(name: str) -> str:
    """Name of the metric over all samples that stands beside a mean over strata."""
    return f"{name}, pooled"


def mean(
    column: str, *, name: str | None = None, percent: bool = True, better: Better = "higher", summary: str = ""
) -> Metric:
    """The mean of one value, which is a share where the value is 0 or 1."""
    return Metric(name=name or column, columns=(column,), percent=percent, better=better, summary=summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The score of one sample, with its group and its bounds."""

    cluster: str
    score: Score | None
    """None if there is no answer."""
    if_wrong: Score
    """The score of a wrong answer; `if_right` is that of a right one. They are the score itself where there is one."""
    if_right: Score
    ends: Callable[[], tuple[Score, Score] | None] | None = None
    """Gives the scores of a wrong and of a right answer even where there is a score; they bound the interval where all
    samples agree. None: they are `if_wrong` and `if_right`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One metric of one run."""

    metric: str
    value: float | None
    """By the convention; None if no sample counts."""
    interval: Interval | None
    convention: MissingAnswerPolicy
    samples: int
    """How many samples have the columns of the metric."""
    clusters: int
    answered: int
    """How many of them have an answer."""
    among_answered: float | None
    """The value over the samples with an answer."""
    if_wrong: float | None
    """The value if every non-answer were wrong."""
    if_right: float | None
    """The value if every non-answer were right."""
    percent: bool = True

    def form(self) -> JsonObject:
        """The figure as JSON."""
        return asdict(self)

    @classmethod
    def from_form(cls, form: dict[str, Any]) -> Figure:
        """The figure in `form`; entries of other names are left out, since a run folder may have some."""
        entries, interval = _fields_of(cls, form), form["interval"]
        entries["interval"] = None if interval is None else Interval(**_fields_of(Interval, interval))
        return cls(**entries)


def _fields_of(kind: type[Figure | Interval], form: Mapping[str, Any]) -> dict[str, Any]:
    return {each.name: form[each.name] for each in fields(kind) if each.name in form}


def figure(
    metric: Metric, rows: Sequence[Scored], *, convention: MissingAnswerPolicy = "wrong", seed: int = 0
) -> Figure:
    """The figure of `metric` over `rows`.

    The interval is Wilson's for a share of independent samples, else a bootstrap of whole clusters, within the metric's
    strata if it has any; where all samples agree, it reaches to what samples that were not seen could make of it.

    Args:
        metric: the metric.
        rows: one for each sample.
        convention: whether samples without an answer count as wrong or are left out of the value.
        seed: of the bootstrap.
    """
    about = [row for row in rows if metric.covers(row.score or row.if_wrong)]
    answered = [row for row in about if row.score is not None]
    counted = _counted(metric, rows, convention=convention)
    scores = [row.score or row.if_wrong for row in counted]
    return Figure(
        metric=metric.name,
        value=metric.of(scores),
        interval=_interval(metric, counted, seed=seed),
        convention=convention,
        samples=len(about),
        clusters=len({row.cluster for row in about}),
        answered=len(answered),
        among_answered=metric.of([row.score for row in answered if row.score is not None]),
        if_wrong=metric.of([row.score or row.if_wrong for row in about]),
        if_right=metric.of([row.score or row.if_right for row in about]),
        percent=metric.percent,
    )


def _counted(metric: Metric, rows: Sequence[Scored], *, convention: MissingAnswerPolicy) -> list[Scored]:
    """The rows that count in the value of `metric`."""
    about = [row for row in rows if metric.covers(row.score or row.if_wrong)]
    return about if convention == "wrong" else [row for row in about if row.score is not None]


def _interval(metric: Metric, rows: Sequence[Scored], *, seed: int) -> Interval | None:
    if not rows:
        return None
    scores, clusters = [row.score or row.if_wrong for row in rows], [row.cluster for row in rows]
    matrix, strata = metric.matrix(scores), metric.strata_of(scores)
    if metric.of_sums is not None:
        bounds = partial(_ends, metric, rows)
        return statistics.bootstrap_totals(metric.totalled, matrix, clusters, strata=strata, bounds=bounds, seed=seed)
    if metric.statistic is None:
        values: list[float] = matrix[:, 0].tolist()
        binary = all(value in {0.0, 1.0} for value in values)
        return statistics.mean_estimate(
            values, clusters, strata=strata, bounds=lambda: first_columns(_ends(metric, rows)), seed=seed, binary=binary
        ).interval
    # Rows are places in a matrix that also holds those of the ends, so that a draw is one step of numpy.
    ends, count = _ends(metric, rows), len(matrix)
    whole = matrix if ends is None else stacked(matrix, *ends)
    return statistics.cluster_bootstrap(
        lambda drawn: metric.figured(whole[drawn]),
        range(count),
        clusters,
        strata=strata,
        bounds=None if ends is None else lambda: (range(count, 2 * count), range(2 * count, 3 * count)),
        seed=seed,
    )


def _ends(metric: Metric, rows: Sequence[Scored]) -> tuple[Matrix, Matrix] | None:
    ends = [(row.if_wrong, row.if_right) if row.ends is None else row.ends() for row in rows]
    return ends_of_rows(metric, [row.score or row.if_wrong for row in rows], ends)


def ends_of_rows(
    metric: Metric, scores: Sequence[Score], ends: Sequence[tuple[Score, Score] | None]
) -> tuple[Matrix, Matrix] | None:
    """The columns as they would be if all answers were wrong, and if all were right; None where one would lack them."""
    known = [pair for pair in ends if pair is not None and all(map(metric.covers, pair))]
    wrong, right = ([pair[end] for pair in known] for end in (0, 1))
    if len(known) < len(ends) or not metric.strata_of(wrong) == metric.strata_of(right) == metric.strata_of(scores):
        return None
    return metric.matrix(wrong), metric.matrix(right)


def stacked(*matrices: Matrix) -> Matrix:
    """One below the other."""
    import numpy as np

    return np.vstack(matrices)


def first_columns(ends: tuple[Matrix, Matrix] | None) -> tuple[list[float], list[float]] | None:
    """The first column of each matrix."""
    return None if ends is None else (ends[0][:, 0].tolist(), ends[1][:, 0].tolist())
