"""One answer at a glance, whatever the task: what is true and chosen, what the answer is worth, what it took."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.run import Answer, Run
    from askance.evals.values import Sample

Result = Literal["right", "partly", "wrong", "scored", "unscored", "answered", "no answer"]
"""What an answer is worth in a word; `scored` where the number is no share of what is right, `answered` where nobody
scores."""

RESULTS: Mapping[Result, str] = {
    "right": "Right",
    "partly": "Partly right",
    "wrong": "Wrong",
    "scored": "Scored",
    "unscored": "Not scored",
    "answered": "Answered",
    "no answer": "No answer",
}

_TOLERANCE = 1e-9
_WHOLE = ("accuracy", "exact", "subset accuracy")
"""Values that say whether an answer is right as a whole, for runs whose figures are none of a score's own values."""
SNIPPET = 140
"""Characters of an answer in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What answers took, by what their lines say."""

    calls: int = 0
    """Made; those that were on record are `replayed`."""
    replayed: int = 0
    shared: int = 0
    again: int = 0
    """Tries beyond the first of each call."""
    input: int = 0
    """Tokens, and below."""
    output: int = 0
    seconds: float = 0.0
    """Of all calls together, side by side or not."""
    cost: float = 0.0
    """Dollars, as far as they are known."""
    unpriced: int = 0
    """Samples of which the cost is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One answer at a glance."""

    id: str
    epoch: int
    outcome: str
    result: Result
    worth: float | None
    """The value that stands for the sample; None where there is none."""
    said: str
    """The answer in a line."""
    kinds: tuple[str, ...] = ()
    """Of mistakes."""
    marks: tuple[str, ...] = ()
    """Labels and tags to filter by, as `name: value`."""
    picture: str | None = None
    """Digest."""
    spent: Spent = field(default_factory=Spent)

    def form(self) -> JsonObject:
        """The row as JSON; tokens and tries as one number each."""
        return {
            "id": self.id,
            "epoch": self.epoch,
            "outcome": self.outcome,
            "result": self.result,
            "worth": self.worth,
            "said": self.said,
            "kinds": list(self.kinds),
            "marks": list(self.marks),
            "seconds": self.spent.seconds,
            "cost": None if self.spent.unpriced else self.spent.cost,
            "tokens": self.spent.input + self.spent.output,
            "again": self.spent.again,
        }


def row_of(
    answer: Answer, column: str | None = None, *, share: bool = False, common: frozenset[str] = frozenset()
) -> Row:
    """One answer at a glance.

    Args:
        answer: what is shown.
        column: the value of scores that stands for it.
        share: whether that is a share of what is right.
        common: names of tags to filter by.
    """
    worth = worth_of(answer, column)
    marks = [f"{name}: {value}" for name, value in marks_of(answer.sample) if name in common]
    image = answer.sample.image
    return Row(
        id=answer.sample.id,
        epoch=answer.epoch,
        outcome=answer.prediction.outcome,
        result=result_of(answer, worth, share=share),
        worth=worth,
        said=said_by(answer, options_of(answer.sample)),
        kinds=tuple(mistakes(answer)),
        marks=tuple(dict.fromkeys(marks)),
        picture=None if image is None else image.sha256,
        spent=spent_on(answer),
    )


def column_of(run: Run, answers: Sequence[Answer]) -> str | None:
    """The value of scores that stands for a sample: the first figure of the run that each sample has by itself."""
    there: dict[str, None] = {name: None for answer in answers if answer.score for name in answer.score.values}
    names = [figure.metric for figure in run.figures]
    return next((name for name in (*names, *_WHOLE) if name in there), None)


def worth_of(answer: Answer, column: str | None) -> float | None:
    """The value that stands for an answer."""
    return None if answer.score is None or column is None else answer.score.values.get(column)


def result_of(answer: Answer, worth: float | None, *, share: bool) -> Result:
    """What an answer is worth in a word."""
    if not answer.prediction.answered:
        return "no answer"
    if worth is None:
        return "unscored"
    if not share:
        return "scored"
    if worth >= 1 - _TOLERANCE:
        return "right"
    return "wrong" if worth <= _TOLERANCE else "partly"


def options_of(sample: Sample) -> list[str]:
    """The options that an answer chooses among; none where it is free."""
    options: Any = sample.inputs.get("options")
    return [str(each) for each in cast("list[Any]", options)] if isinstance(options, list) else []


def true_places(sample: Sample, options: Sequence[str]) -> list[int] | None:
    """Which options are true, counted from 1; None where the target does not say it of options."""
    target: Any = sample.target
    if isinstance(target, dict):
        form = cast("dict[str, Any]", target)
        target = form.get("true", form.get("labels"))
    return places_in(target, options)


def places_in(value: Any, options: Sequence[str]) -> list[int] | None:
    """The options that a value names by number or by text, in its order; None where it names anything else."""
    named: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    found: list[int] = []
    for each in named:
        if type(each) is int and 1 <= each <= len(options):
            found.append(each)
        elif isinstance(each, str) and each in options:
            found.append(options.index(each) + 1)
        else:
            return None
    return list(dict.fromkeys(found)) if options else None


def kinds_of_options(sample: Sample, options: Sequence[str]) -> list[str]:
    """The kind of each option, where the target says it; else none."""
    target: Any = sample.target
    kinds: Any = cast("dict[str, Any]", target).get("kinds") if isinstance(target, dict) else None
    fits = isinstance(kinds, list) and len(cast("list[Any]", kinds)) == len(options)
    return [str(kind) for kind in cast("list[Any]", kinds)] if fits else []


def mistakes(answer: Answer) -> dict[str, int]:
    """Kinds of mistakes and how often an answer makes each, as its score notes them."""
    notes: Mapping[str, Any] = {} if answer.score is None else answer.score.notes
    errors: Any = notes.get("errors")
    found = {str(kind): int(count) for kind, count in _counts(errors)}
    for name in ("missed", "wrong"):
        labels: Any = notes.get(name)
        if isinstance(labels, list):
            found |= {f"{name} {label}": 1 for label in cast("list[Any]", labels)}
    return found


def _counts(errors: Any) -> Iterator[tuple[Any, int]]:
    if isinstance(errors, dict):
        yield from ((kind, n) for kind, n in cast("dict[Any, Any]", errors).items() if isinstance(n, int))


def marks_of(sample: Sample) -> Iterator[tuple[str, str]]:
    """Names and values to filter and to break figures down by: tags, and labels of the target."""
    for name, value in sample.tags.items():
        for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
            if each is None or isinstance(each, (str, int, float)):
                yield str(name), plain(each)
    target: Any = sample.target
    labels: Any = cast("dict[str, Any]", target).get("labels") if isinstance(target, dict) else target
    for each in cast("list[Any]", labels) if isinstance(labels, list) else [labels]:
        if isinstance(each, (str, bool)) and len(str(each)) <= 60:
            yield "label", plain(each)


def plain(value: Any) -> str:
    """A JSON value as a person writes it."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def said_by(answer: Answer, options: Sequence[str]) -> str:
    """An answer in a line: the options that it chooses, or what it says."""
    if not answer.prediction.answered:
        return answer.prediction.reason or ""
    value = answer.prediction.value
    places = places_in(value, options)
    text = plain(value) if places is None else " · ".join(options[place - 1] for place in places)
    line = " ".join(text[: 4 * SNIPPET].split())
    return line if len(line) <= SNIPPET else f"{line[: SNIPPET - 1]}…"


def spent_on(answer: Answer) -> Spent:
    """What an answer took, by its line."""
    meta: Mapping[str, Any] = answer.prediction.meta
    tokens: Mapping[str, Any] = meta.get("tokens") or {}
    tries: Mapping[str, Any] = meta.get("tries") or {}
    cost = meta.get("cost")
    return Spent(
        calls=int(meta.get("calls") or 0),
        replayed=int(meta.get("replayed") or 0),
        shared=int(meta.get("shared") or 0),
        again=sum(max(len(each) - 1, 0) for each in tries.values()),
        input=int(tokens.get("input") or 0),
        output=int(tokens.get("output") or 0),
        seconds=float(meta.get("seconds") or 0.0),
        cost=float(cost or 0.0),
        unpriced=int(cost is None),
    )


def total(several: Sequence[Spent]) -> Spent:
    """All of it together."""
    return Spent(
        calls=sum(each.calls for each in several),
        replayed=sum(each.replayed for each in several),
        shared=sum(each.shared for each in several),
        again=sum(each.again for each in several),
        input=sum(each.input for each in several),
        output=sum(each.output for each in several),
        seconds=round(sum(each.seconds for each in several), 3),
        cost=round(sum(each.cost for each in several), 6),
        unpriced=sum(each.unpriced for each in several),
    )
