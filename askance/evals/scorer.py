"""Scorers: from answers to scores and figures. Models that answer are not needed for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance.amounts import many
from askance.errors import CallError, UsageError, boundary
from askance.evals.abstention import figures_of_abstention, names_of_abstention
from askance.evals.metric import Figure, Metric, MissingAnswerPolicy, Scored, StratifiedMetric, figure, mean
from askance.evals.run_folder import write_lines
from askance.evals.sample import Sample, SampleResult, Score
from askance.models import collect_keys

if TYPE_CHECKING:
    from pathlib import Path

    from askance.models.loop import Closable
    from askance.nodes import Node

ScoreFunction: TypeAlias = Callable[[Sample, Any], "Score | Awaitable[Score]"]
"""Takes a sample and its answer (see `Scorer.takes`), and gives the score."""


def map_score(score: Score | Awaitable[Score], change: Callable[[Score], Score]) -> Score | Awaitable[Score]:
    """What a `ScoreFunction` gives, changed: at once, or when it is awaited."""
    if isinstance(score, Score):
        return change(score)

    async def later() -> Score:
        return change(await score)

    return later()


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """How the answers to a task are scored. It needs neither the data nor the models of the task."""

    score: ScoreFunction
    metrics: tuple[Metric, ...]
    """The first one stands for the task where a single number is shown."""
    if_wrong: Callable[[Sample], Score]
    """The score of a wrong answer to a sample: non-answers count as it, and it is the lower bound."""
    if_right: Callable[[Sample], Score]
    """The score of a right answer to a sample: the upper bound."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures has to know."""
    notes_on_scores: Callable[[Sequence[Score]], Iterable[str]] = lambda _: ()
    """What a reader has to know that only the scores tell."""
    judges: tuple[Node[Any, Any], ...] = ()
    """Nodes that the scorer asks. They are tried before the first sample is answered, and closed when the run ends."""
    closing: tuple[Closable, ...] = ()
    """What else is closed when the run ends, such as an embedder."""
    takes: Literal["value", "prediction"] = "value"
    """What `score` gets beside the sample: the answer, or the whole prediction, for scores of more than the answer."""
    questions: Callable[[Sample], int | Sequence[int]] = lambda _: 0
    """For the plan of a run: how often one answer is judged, as one number for all judges or as a number for each."""


def right_or_wrong(
    right: Callable[[Sample, Any], bool] = lambda sample, value: value == sample.target,
    *,
    name: str = "accuracy",
    summary: str = "the answer is right",
) -> Scorer:
    """A scorer by which an answer is either right or wrong.

    Args:
        right: whether the answer to a sample is right; by default if it equals the target.
        name: name of the only metric, the share of right answers.
        summary: what the metric says.
    """
    return Scorer(
        score=lambda sample, value: Score(values={name: float(right(sample, value))}),
        metrics=(mean(name, summary=summary),),
        if_wrong=lambda _: Score(values={name: 0.0}),
        if_right=lambda _: Score(values={name: 1.0}),
    )


async def scored(answer: SampleResult, scorer: Scorer) -> SampleResult:
    """`answer` with its score; without a score if there is no answer, or if the call that judges it failed.

    An abstention counts as wrong; what its answer would be worth stands beside.

    Raises:
        UsageError: the scorer itself has an error.
        ReplayMiss: a call of the scorer is not on record.
    """
    if not answer.prediction.answered:
        return replace(answer, score=None, unscored=None)
    keys: list[str] = []

    def broken(words: str) -> UsageError:
        return UsageError(
            f"The scoring of the sample {answer.sample.id!r} raised {words}.",
            hint="Mend it; what was answered is kept, and the same command goes on.",
        )

    try:
        with boundary(broken), collect_keys() as keys:
            sample, prediction = answer.sample, answer.prediction
            if prediction.abstained and prediction.value is None:
                return replace(answer, score=scorer.if_wrong(sample), unscored=None)
            result = scorer.score(sample, prediction if scorer.takes == "prediction" else prediction.value)
            score = result if isinstance(result, Score) else await result
            if prediction.abstained:
                score = replace(score, values=scorer.if_wrong(sample).values, withheld=score.values)
            return replace(answer, score=score, unscored=None)
    except CallError as error:
        return replace(answer, score=None, unscored=str(error), tried=tuple(keys))


def notes_on(
    answers: Sequence[SampleResult], scorer: Scorer, *, convention: MissingAnswerPolicy = "wrong"
) -> tuple[str, ...]:
    """What a reader of the figures has to know of the answers: those without a score, and folds without a value."""
    scores = [answer.score for answer in answers if answer.score is not None]
    return (
        *_unscored_note(answers),
        *scorer.notes_on_scores(scores),
        *_mean_notes(answers, scorer, convention=convention),
    )


def _mean_notes(answers: Sequence[SampleResult], scorer: Scorer, *, convention: MissingAnswerPolicy) -> Iterator[str]:
    """Of means that leave out folds, of how many folds they are; a note for all figures that lack the same ones."""
    means = [metric for metric in scorer.metrics if isinstance(metric, StratifiedMetric)]
    rows = scored_rows(answers, scorer) if means else []
    lacking: dict[tuple[str, ...], list[StratifiedMetric]] = {}
    for metric in means:
        lacking.setdefault(metric.without_value(rows, convention=convention), []).append(metric)
    for folds, metrics in lacking.items():
        count = len(metrics[0].strata)
        if 0 < len(folds) < count:
            figures = f"{' and '.join(metric.name for metric in metrics)} {'are means' if metrics[1:] else 'is a mean'}"
            has, noun = "have" if folds[1:] else "has", folds[0].partition(" ")[0]
            yield f"{figures} over {count - len(folds)} of {count} {noun}s: {' and '.join(folds)} {has} no value"


def _unscored_note(answers: Iterable[SampleResult]) -> tuple[str, ...]:
    """A note on answers without a score, if there are any."""
    lacking = [answer for answer in answers if answer.unscored is not None]
    if not lacking:
        return ()
    first = min(lacking, key=lambda answer: (answer.sample.id, answer.epoch))
    count = many(len(lacking), "answer has no score and counts", "answers have no score and count")
    return (f"{count} as no answer, such as that to {first.sample.id!r}: {first.unscored}",)


def figures_of(
    answers: Sequence[SampleResult], scorer: Scorer, *, convention: MissingAnswerPolicy = "wrong", seed: int = 0
) -> tuple[Figure, ...]:
    """The figures of all metrics over `answers`, whatever their order; then those of abstention, if there are any."""
    ordered = sorted(answers, key=lambda answer: (answer.sample.id, answer.epoch))
    rows = scored_rows(ordered, scorer)
    figures = [figure(metric, rows, convention=convention, seed=seed) for metric in scorer.metrics]
    return *figures, *figures_of_abstention(scorer.metrics[0], ordered, rows, convention=convention, seed=seed)


def figure_names(scorer: Scorer) -> frozenset[str]:
    """The names of the figures that `figures_of` may give."""
    names = [metric.name for metric in scorer.metrics]
    return frozenset({*names, *names_of_abstention(names[0])})


def main_figure(
    answers: Sequence[SampleResult], scorer: Scorer, *, convention: MissingAnswerPolicy = "wrong"
) -> Figure:
    """The figure of the first metric over `answers`, whatever their order."""
    ordered = sorted(answers, key=lambda answer: (answer.sample.id, answer.epoch))
    rows = scored_rows(ordered, scorer)
    return figure(scorer.metrics[0], rows, convention=convention, seed=0)


def scored_rows(answers: Iterable[SampleResult], scorer: Scorer) -> list[Scored]:
    """The scores of answers with their bounds, in the same order, of which figures are made."""
    return [_scored_of(answer, scorer) for answer in answers]


def _scored_of(answer: SampleResult, scorer: Scorer) -> Scored:
    if answer.score is None:
        wrong, right = bounds_of(answer.sample, scorer)
        return Scored(cluster=answer.sample.cluster, score=None, if_wrong=wrong, if_right=right)
    # A score is its own lower and upper bound.
    return Scored(
        cluster=answer.sample.cluster,
        score=answer.score,
        if_wrong=answer.score,
        if_right=answer.score,
        ends=cache(partial(ends_of, answer.sample, scorer)),
    )


def ends_of(sample: Sample, scorer: Scorer) -> tuple[Score, Score] | None:
    """`bounds_of` a sample that has a score; None where they cannot be told, since only an interval needs them."""
    try:
        return bounds_of(sample, scorer)
    except UsageError:
        return None


def bounds_of(sample: Sample, scorer: Scorer) -> tuple[Score, Score]:
    """The scores of a wrong and of a right answer to a sample.

    Raises:
        UsageError: the scorer has an error, or the sample's target is not of its kind.
    """

    def broken(words: str) -> UsageError:
        return UsageError(
            f"What the sample {sample.id!r} is worth if it is wrong or right cannot be told: {words}.",
            hint="Mend the scoring, or the sample's target.",
        )

    with boundary(broken):
        return scorer.if_wrong(sample), scorer.if_right(sample)


def write_scores(path: Path, answers: Iterable[SampleResult]) -> None:
    """Writes `scores.jsonl`: a line for each score, ordered by sample and epoch."""
    ordered = sorted(answers, key=lambda answer: (answer.sample.id, answer.epoch))
    scores = ((answer, answer.score) for answer in ordered)
    forms = ({"id": each.sample.id, "epoch": each.epoch, **score.form()} for each, score in scores if score is not None)
    write_lines(path, forms)
