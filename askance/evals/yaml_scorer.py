"""The scorers of YAML tasks: `choice`, `exact`, `labels`, and `none`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

from askance.errors import UsageError
from askance.evals.metric import Metric, mean
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer, right_or_wrong
from askance.statistics import LabelCounts, LabelFigure, f1, macro, micro, precision, recall

ScoreName = Literal["choice", "exact", "labels", "none"]
SCORES: tuple[ScoreName, ...] = get_args(ScoreName)


def scorer_of(name: ScoreName, *, labels: Sequence[str], count: int, metrics: Sequence[str]) -> Scorer:
    """The scorer called `name`.

    Args:
        name: `choice` compares numbers of options, `exact` texts, `labels` sets of labels; `none` only counts answers.
        labels: for `labels`, all labels that there are.
        count: for `choice`, how many options an answer has.
        metrics: names of the metrics to show, in order; empty shows all.

    Raises:
        UsageError: the scorer has no such metric.
    """
    scorer = {
        "choice": partial(_choice, count),
        "exact": _exact,
        "labels": partial(_labels, tuple(labels)),
        "none": _none,
    }[name]()
    if not metrics:
        return scorer
    known = {metric.name: metric for metric in scorer.metrics}
    unknown = [metric for metric in metrics if metric not in known]
    if unknown:
        raise UsageError(f"`{name}` has no metric `{unknown[0]}`.", hint=f"It has {', '.join(known)}.")
    return replace(scorer, metrics=tuple(known[metric] for metric in metrics))


def folded(text: str) -> str:
    """`text` as it is compared: without case, extra blanks, quotes around it and a period at its end."""
    return " ".join(text.strip().strip("\"'`").rstrip(".").split()).casefold()


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
    )


def _exact() -> Scorer:
    """The answer equals one of the targets, apart from case, blanks and a period at its end."""
    return right_or_wrong(
        lambda sample, value: folded(str(value)) in {folded(str(each)) for each in sample.target},
        summary="the answer is that of the data, but for case and blanks",
    )


def _none() -> Scorer:
    """No right answers are known: the share of samples with an answer."""
    scorer = right_or_wrong(lambda _, __: True, name="answered", summary="samples with an answer")
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
