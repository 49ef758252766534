"""The scorers of YAML tasks: `choice`, `labels`, `judge`, `none`, and the comparisons of `suite.answer_match`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from askance.errors import UsageError
from askance.evals.metric import Metric, mean
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer, right_or_wrong
from askance.evals.suite import answer_match
from askance.evals.suite.answer_match import MatchName, folded
from askance.statistics import LabelCounts, LabelFigure, f1, macro, micro, precision, recall

ScoreName: TypeAlias = MatchName | Literal["choice", "labels", "judge", "none"]

_SUMMARIES: Mapping[MatchName, str] = {
    "exact": "the answer is that of the data, but for case and blanks",
    "contains": "the answer contains one of the data",
    "regex": "a pattern of the data is found in the answer",
    "numeric": "the answer's number is that of the data",
    "relaxed": "the answer's number is at most 5 % off, or the text is that of the data",
    "anls": "mean similarity by edit distance (ANLS), 0 up to a half",
    "vqa": "the accuracy of visual question answering, over the answers of ten people",
}


def scorer_of(name: ScoreName, *, labels: Sequence[str], count: int) -> Scorer:
    """The scorer called `name`, which is not `judge`: that one needs a model.

    Args:
        name: `choice` compares numbers of options, `labels` sets of labels, `none` only counts answers; the others are
            comparisons of texts.
        labels: for `labels`, all labels that there are.
        count: for `choice`, how many options an answer has.
    """
    match name:
        case "choice":
            return _choice(count)
        case "labels":
            return _labels(tuple(labels))
        case "none" | "judge":  # the judge is not known yet
            return _none()
        case _:
            return _matched(name)


def with_metrics(scorer: Scorer, metrics: Sequence[str], *, name: str) -> Scorer:
    """`scorer` with some of its metrics, in order; with all of them if none is named.

    Raises:
        UsageError: the scorer, called `name`, has no such metric.
    """
    known = {metric.name: metric for metric in scorer.metrics}
    unknown = [metric for metric in metrics if metric not in known]
    if unknown:
        raise UsageError(f"`{name}` has no metric `{unknown[0]}`.", hint=f"It has {', '.join(known)}.")
    return replace(scorer, metrics=tuple(known[metric] for metric in metrics)) if metrics else scorer


def _choice(count: int) -> Scorer:
    """`accuracy` is that of the first option; `precision@k` is min(k, right ones among the first `count`) / k."""

    def worth(answers: Sequence[int], right: Sequence[int]) -> Score:
        hits = sum(number in right for number in answers[:count])
        first = float(bool(answers) and answers[0] in right)
        shares = {f"precision@{k}": min(k, hits) / k for k in range(1, count + 1)}
        return Score(values={"accuracy": first, **(shares if count > 1 else {})})

    names = ["accuracy", *(f"precision@{k}" for k in range(1, count + 1) if count > 1)]
    summaries = {"accuracy": "the first option chosen is right"}
    return Scorer(
        score=lambda sample, value: worth(value, sample.target),
        metrics=tuple(mean(name, summary=summaries.get(name, "of the first answers, at most k")) for name in names),
        if_wrong=lambda _: worth([], []),
        if_right=lambda sample: worth(sample.target, sample.target),
        notes=(f"Precision@k is min(k, right ones among the first {count} answers) / k",) if count > 1 else (),
    )


def _matched(name: MatchName) -> Scorer:
    """A comparison of texts; `accuracy` is its mean."""

    def worth(value: float) -> Score:
        return Score(values={"accuracy": value})

    return Scorer(
        score=lambda sample, value: worth(answer_match.match(name, str(value), sample.target)),
        metrics=(mean("accuracy", summary=_SUMMARIES[name]),),
        if_wrong=lambda _: worth(0.0),
        if_right=lambda _: worth(1.0),
    )


def _none() -> Scorer:
    """No right answers are known: the share of samples with an answer."""
    name = "share answered"  # beside the column `answered` of every table, which counts them
    scorer = right_or_wrong(lambda _, __: True, name=name, summary="samples with an answer")
    return replace(scorer, notes=("The data name nothing that is right, so that only outcomes are counted.",))


def _labels(labels: tuple[str, ...]) -> Scorer:
    """Sets of labels: equal as a whole, and precision, recall and F1 of the labels."""

    def worth(truth: Sequence[str], predicted: Sequence[str]) -> Score:
        values = {"exact": float(set(truth) == set(predicted))}
        for label in labels:
            is_true, is_predicted = label in truth, label in predicted
            values |= {
                f"is {label}": float(is_true),
                f"said {label}": float(is_predicted),
                f"hit {label}": float(is_true and is_predicted),
            }
        return Score(values=values)

    def score(sample: Sample, value: Any) -> Score:
        known = {folded(label): label for label in labels}
        predicted = [known[key] for part in str(value).split(",") if (key := folded(part)) in known]
        return worth(sample.target, predicted)

    columns = tuple(f"{kind} {label}" for label in labels for kind in ("is", "said", "hit"))
    figures = tuple(
        Metric(name=name, columns=columns, of_sums=of_sums, summary=summary)
        for name, (of_sums, summary) in _OF_LABELS.items()
    )
    return Scorer(
        score=score,
        metrics=(*figures, mean("exact", name="accuracy", summary="exactly the labels that are true")),
        if_wrong=lambda sample: worth(sample.target, [label for label in labels if label not in sample.target]),
        if_right=lambda sample: worth(sample.target, sample.target),
        notes=("A wrong answer, which a non-answer counts as, gives exactly the labels that are not true.",),
    )


def _averaged(
    average: Callable[[LabelFigure, Sequence[LabelCounts]], float], figure: LabelFigure, sums: Sequence[float]
) -> float:
    counts = zip(sums[::3], sums[1::3], sums[2::3], strict=True)
    return average(figure, [LabelCounts(both=hits, true=true, given=predicted) for true, predicted, hits in counts])


_OF_LABELS: Mapping[str, tuple[Callable[[Sequence[float]], float], str]] = {
    "f1": (partial(_averaged, macro, f1), "mean of the labels' F1"),
    "precision": (partial(_averaged, macro, precision), "mean of the labels' precision"),
    "recall": (partial(_averaged, macro, recall), "mean of the labels' recall"),
    "micro f1": (partial(_averaged, micro, f1), "F1 over all pairs of sample and label"),
}
