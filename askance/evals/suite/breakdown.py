"""Figures of parts of the samples, such as categories and folds, and means over folds.

A figure of a cross-validation is the plain mean of its folds' own figures. So every metric of a scorer stands in three
forms: the mean over the folds, under its own name; the figure over all samples, `accuracy, pooled`; and that of each
fold, `accuracy: fold 0`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from askance.evals.metric import Metric, StratifiedMetric, pooled_name
from askance.evals.scorer import Scorer, map_score
from askance.evals.suite.selection import FOLDS

if TYPE_CHECKING:
    from askance.evals.sample import Sample, SampleResult, Score


def by_tag(scorer: Scorer, tag: str, values: Sequence[Any], *names: str, label: Callable[[Any], str] = str) -> Scorer:
    """`scorer` with further metrics for the samples of each value of a tag, such as `accuracy: Physical rules`.

    Args:
        scorer: its samples have the tag; those without it are in no part.
        tag: name of the tag.
        values: all values of the tag.
        names: names of the metrics that are given by part.
        label: what stands for a value in the names of figures.
    """
    apart = [metric for metric in scorer.metrics if metric.name in names]
    columns = tuple(dict.fromkeys(column for metric in apart for column in metric.columns))

    def labelled(score: Score, sample: Sample) -> Score:
        """The score with its values also under names with the label of the sample's part."""
        value = sample.tags.get(tag)
        if value is None:
            return score
        part = label(value)
        own = {f"{name}: {part}": score.values[name] for name in columns if name in score.values}
        return replace(score, values={**score.values, **own})

    def score(sample: Sample, value: Any) -> Score | Awaitable[Score]:
        return map_score(scorer.score(sample, value), lambda found: labelled(found, sample))

    def bound(of: Callable[[Sample], Score]) -> Callable[[Sample], Score]:
        return lambda sample: labelled(of(sample), sample)

    return replace(
        scorer,
        score=score,
        metrics=(*scorer.metrics, *(_part(metric, label(value)) for metric in apart for value in values)),
        if_wrong=bound(scorer.if_wrong),
        if_right=bound(scorer.if_right),
    )


def over_folds(scorer: Scorer, folds: Sequence[int], *names: str, count: int = FOLDS, tag: str = "fold") -> Scorer:
    """`scorer` with the mean over folds in place of each metric; the pooled figure and each fold's own stand beside it.

    A mean leaves out folds without a figure, and samples without a fold; the pooled figure has all samples. Intervals
    of means come from clusters that are drawn within their fold. With one fold the metrics stay as they are, and a note
    says so; without folds nothing changes.

    Args:
        scorer: its samples have the tag, and a cluster that lies in one fold, such as their contest.
        folds: those that the samples are of.
        names: names of the metrics that all this is said of; by default all. Of the others those with a better and a
            worse are means without more beside them, and the rest is over all samples.
        count: how many folds the data have.
        tag: name of the tag, and what folds are called, such as `chunk`.
    """
    plain = [metric for metric in scorer.metrics if names and metric.name not in names and metric.better == "neither"]
    apart = [metric for metric in scorer.metrics if metric not in plain]
    parts = by_tag(scorer, tag, folds, *(metric.name for metric in apart), label=lambda fold: f"{tag} {fold}")
    notes = (*scorer.notes, *_notes(folds, count, tag))
    if len(folds) < 2:
        return replace(parts, metrics=scorer.metrics, notes=notes)
    means, pooled, of_folds = dict[str, Metric](), list[Metric](), list[Metric]()
    for metric in apart:
        own = [replace(_part(metric, f"{tag} {fold}"), beside=True) for fold in folds]
        means[metric.name] = StratifiedMetric.over(metric, own, summary=f"{_summary_of(metric)}, mean over {tag}s")
        if not names or metric.name in names:
            summary = f"{_summary_of(metric)}, over all samples"
            pooled.append(replace(metric, name=pooled_name(metric.name), summary=summary, beside=True))
            of_folds += own
    shown = (means.get(metric.name, metric) for metric in scorer.metrics)
    return replace(parts, metrics=(*shown, *pooled, *of_folds), notes=notes)


def joined_over_folds(
    scorers: Sequence[Scorer], answers: Mapping[int, Sequence[SampleResult]], *names: str
) -> tuple[Scorer, list[SampleResult]]:
    """One scorer for all folds, and the answers of their runs with scores that it makes figures of.

    Args:
        scorers: of the run of each fold; a metric that one of them has is a metric of all.
        answers: by fold, from 0, with their scores.
        names: as for `over_folds`.
    """
    of_one = {note for fold in answers for note in _notes((fold,), FOLDS, "fold")}
    notes = dict.fromkeys(note for scorer in scorers for note in scorer.notes if note not in of_one)
    metrics = {metric.name: metric for scorer in scorers for metric in scorer.metrics}

    def as_scored(_: Sample, score: Score) -> Score:
        return score

    whole = replace(scorers[0], score=as_scored, metrics=(*metrics.values(),), notes=(*notes,))
    joined = over_folds(whole, sorted(answers), *names)

    def labelled(sample: Sample, score: Score) -> Score:
        found = cast("Score", joined.score(sample, score))
        if score.withheld is None:
            return found
        withheld = cast("Score", joined.score(sample, replace(score, values=score.withheld)))
        return replace(found, withheld=withheld.values)

    def of_fold(answer: SampleResult, fold: int) -> SampleResult:
        sample = replace(answer.sample, tags={**answer.sample.tags, "fold": fold})
        if answer.score is not None:
            return replace(answer, sample=sample, score=labelled(sample, answer.score))
        # A run's folder has the reason in its notes alone.
        lacks = answer.prediction.answered and answer.unscored is None
        return replace(answer, sample=sample, unscored="the run of its fold says why" if lacks else answer.unscored)

    return joined, [of_fold(answer, fold) for fold, some in answers.items() for answer in some]


def folds_of(samples: Sequence[Sample]) -> tuple[int, ...]:
    """The folds that samples are of, by their tag `fold`."""
    return tuple(sorted({sample.tags["fold"] for sample in samples if sample.tags.get("fold") is not None}))


def _notes(folds: Sequence[int], count: int, tag: str) -> Iterator[str]:
    if len(folds) > 1:
        yield (
            f"Figures are plain means over {tag}s ({len(folds)} where no note says otherwise), with clusters drawn "
            f"within {tag}s; 'pooled' ones are over all samples"
        )
    if 0 < len(folds) < count:
        noun = tag.capitalize()
        named = f"{noun} {folds[0]}" if len(folds) == 1 else f"{noun}s {', '.join(map(str, folds))}"
        yield f"{named} of {count}, not comparable with means over all {count} {tag}s"


def _part(metric: Metric, label: str) -> Metric:
    return replace(
        metric,
        name=f"{metric.name}: {label}",
        columns=tuple(f"{column}: {label}" for column in metric.columns),
        summary=f"{_summary_of(metric)}, {label}",
    )


def _summary_of(metric: Metric) -> str:
    return metric.summary or metric.name
