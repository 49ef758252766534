"""The task of multi-label atypicality classification: which relations an ad shows, if any (section 3.1).

The true labels of an image are all that its annotators give: every relation that any of them sees, and NA where any of
them sees a regular object. Other categories are ignored.

*With NA* the figures are over five labels, *without NA* over the four relations; the samples are the same. So read, the
printed tables agree with themselves. LLaVA with IN has a macro precision of 25.12 with NA and of 31.40 without it, and
5 · 25.12 = 4 · 31.40: NA has a precision of 0. GPT-4 with V+T has a recall of 22.56 and of 6.69, and 5 · 22.56 −
4 · 6.69 = 86.04, which section 5.1 gives as the recall of NA.

Without NA, subset accuracy asks whether the relations given are exactly the true ones, whatever was said of NA.

The figures themselves are those of `askance.statistics.classification`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents import LABELS, Atypicalities, classify_atypicality
from askance.atypicality import RELATIONS
from askance.chains import Link
from askance.errors import UsageError
from askance.evals.metric import Metric, mean
from askance.evals.part import Question
from askance.evals.pittads.task import AdModel, AdsTask
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.any_solver import AnySolver
from askance.evals.suite.shots import SHOTS_NOTE, Examples
from askance.statistics import (
    LabelCounts,
    LabelFigure,
    average_precision,
    f1,
    macro,
    micro,
    precision,
    recall,
    roc_area,
)

if TYPE_CHECKING:
    from askance.chains import Reading
    from askance.chat import Json
    from askance.evals.pittads.dataset import Ad


def _write_labels(value: Atypicalities) -> Json:
    return list(value.labels)


CATEGORIES = Link("labels", Atypicalities, read=Atypicalities.of, write=_write_labels)
"""The link with the labels that the model gives, the likeliest first."""


class Mac(AdsTask):
    """Which of TR1, TR2, OIO, OR and NA an ad has."""

    name = "pittads/mac"
    asked_with = ()

    model: AdModel = AdModel(context="UH")
    """The model that answers."""
    other: AnySolver = AnySolver()
    """A solver in its place."""
    examples: Examples = Examples(note=SHOTS_NOTE)
    """The answered examples before each question."""

    @override
    def usable(self) -> Mapping[str, Callable[[Ad], bool]]:
        return {"that nobody gave one of the five labels": lambda ad: bool(true_labels(ad))}

    @override
    def samples_of(self, ad: Ad) -> Iterator[Sample]:
        inputs, target = {**self.links[ad.id], "options": list(LABELS)}, {"labels": true_labels(ad)}
        yield Sample(id=ad.id, image=self.image_of(ad), inputs=inputs, target=target, group=ad.id)

    @override
    def answer_of(self, sample: Sample) -> Mapping[str, Any]:
        return {"answer": tuple(sample.target["labels"])}

    @override
    def label_of(self, sample: Sample) -> str:
        return "+".join(sample.target["labels"])

    @override
    def question(self) -> Question:
        return Question(
            name=self.parsed_context.name,
            agent=classify_atypicality,
            asks=self.parsed_context.visual_question,
            target=CATEGORIES,
            given=self.given,
            value=labels_of,
        )

    @override
    def scorer(self) -> Scorer:
        return label_scorer()


def labels_of(reading: Reading, sample: Sample) -> Json:  # noqa: ARG001  # the signature of every such function
    """The labels of a reading, in their fixed order."""
    categories = reading.value(CATEGORIES)
    labels = () if categories is None else categories.labels
    return [label for label in LABELS if label in labels]


def true_labels(ad: Ad) -> list[str]:
    """The labels that any annotator gives an ad, in their fixed order."""
    labels = {*ad.labels, *(vote for vote in ad.votes if vote is not None)}
    return [label for label in LABELS if label in labels]


WITHOUT = " without NA"
"""Suffix of the names of figures over the four relations."""

NOTES = (
    "'Without NA' leaves NA out of the labels; the samples are the same",
    "Macro averages unless micro is said; AUC-PR is average precision",
    "A wrong answer, which a non-answer counts as, gives exactly the labels that are not true",
    "AUC-PR alone can fall below its lower bound: a true label among many wrong ones costs more than none",
)


def true_in(sample: Sample) -> frozenset[str]:
    """The true labels of a sample."""
    target: Any = sample.target
    return frozenset(target["labels"])


def score_labels(sample: Sample, value: Json) -> Score:
    """The score of the labels in an answer.

    Raises:
        UsageError: the answer is not a list of labels.
    """
    labels: list[Any] = list(value) if isinstance(value, list) else [value]
    unknown = [label for label in labels if label not in LABELS]
    if unknown:
        raise UsageError(f"The answer {unknown[0]!r} is no label.", hint=f"Labels are {', '.join(LABELS)}.")
    true = true_in(sample)
    notes = {"missed": _ordered(true - {*labels}), "wrong": _ordered({*labels} - true)}
    return Score(
        values=values_of(true, labels),
        notes={name: labels_noted for name, labels_noted in notes.items() if labels_noted},
    )


def _ordered(labels: Collection[str]) -> list[str]:
    return [label for label in LABELS if label in labels]


def values_of(true: Collection[str], predicted: Collection[str]) -> dict[str, float]:
    """The columns of a score, each 0 or 1."""
    values: dict[str, float] = {"samples": 1.0}
    for label in LABELS:
        values[f"both {label}"] = float(label in true and label in predicted)
        values[f"true {label}"] = float(label in true)
        values[f"given {label}"] = float(label in predicted)
    relations = [label for label in RELATIONS if (label in true) != (label in predicted)]
    values[f"subset accuracy{WITHOUT}"] = float(not relations)
    values["subset accuracy"] = float({*true} == {*predicted})
    return values


def counts_in(sums: Sequence[float]) -> list[LabelCounts]:
    """The counts of each label, from sums of the columns `_columns`."""
    samples, *counts = sums
    return [LabelCounts(counts[at], counts[at + 1], counts[at + 2], samples) for at in range(0, len(counts), 3)]


def _columns(labels: Sequence[str]) -> tuple[str, ...]:
    return ("samples", *(f"{what} {label}" for label in labels for what in ("both", "true", "given")))


def _averaged(
    average: Callable[[LabelFigure, Sequence[LabelCounts]], float], figure: LabelFigure, sums: Sequence[float]
) -> float:
    return average(figure, counts_in(sums))


PRINTED: dict[str, LabelFigure] = {"precision": precision, "recall": recall, "F1": f1}
AREAS: dict[str, LabelFigure] = {"AUC-ROC": roc_area, "AUC-PR": average_precision}


def _averages(labels: Sequence[str], end: str) -> list[Metric]:
    columns = _columns(labels)
    over = f"over {', '.join(labels)}"
    of_macro = {**PRINTED, **AREAS}
    return [
        *(
            Metric(
                name=f"{name}{end}",
                columns=columns,
                of_sums=partial(_averaged, macro, figure),
                summary=f"macro {name} {over}",
            )
            for name, figure in of_macro.items()
        ),
        *(
            Metric(
                name=f"micro {name}{end}",
                columns=columns,
                of_sums=partial(_averaged, micro, figure),
                summary=f"{name} over all pairs of sample and label, {over}",
            )
            for name, figure in PRINTED.items()
        ),
        mean(f"subset accuracy{end}", summary=f"share of samples given exactly their labels, {over}"),
    ]


def _of_label(label: str) -> list[Metric]:
    figures = {**PRINTED, **AREAS}
    return [
        Metric(name=f"{name} {label}", columns=_columns([label]), of_sums=partial(_averaged, macro, figure))
        for name, figure in figures.items()
    ]


def label_scorer() -> Scorer:
    """The scorer of labels; its first metric is the macro F1 with NA."""
    averages = [*_averages(LABELS, ""), *_averages(RELATIONS, WITHOUT)]
    first = [metric for metric in averages if metric.name == "F1"]
    return Scorer(
        score=score_labels,
        metrics=(
            *first,
            *(metric for metric in averages if metric not in first),
            *(metric for label in LABELS for metric in _of_label(label)),
        ),
        if_wrong=lambda sample: Score(values=values_of(true_in(sample), {*LABELS} - true_in(sample))),
        if_right=lambda sample: Score(values=values_of(true_in(sample), true_in(sample))),
        notes=NOTES,
    )
