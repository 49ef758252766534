"""One run of a page, read from its folder alone: a row for each answer, counts, costs and breakdowns."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from askance.amounts import shortened
from askance.evals.analysis.asked_cost import asked_costs, sum_of
from askance.evals.metric import pooled_name
from askance.evals.ranking import texts_of_hits
from askance.evals.report.published_part import published_beside
from askance.evals.report.transcript_part import tools_of
from askance.evals.sample import INFERENCES
from askance.statistics import mean_estimate

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.analysis.asked_cost import AskedCost
    from askance.evals.report.blame_part import RunBlames
    from askance.evals.report.published_part import PublishedBeside
    from askance.evals.run import Run
    from askance.evals.sample import Sample, SampleResult
    from askance.statistics import Interval

_FEW_MARKS = 40
"""A tag of at most so many values is a filter, and is broken down."""
_MOST_MARKS = 1000
"""So is one of at most so many, if there are two samples or more for each value, on average."""
_ALIKE = 1e-6
"""Means that differ by less are taken as equal."""

Result = Literal["right", "partly", "wrong", "scored", "unscored", "answered", "no answer"]
"""How an answer was scored, in a word; `scored` where the score is no share of what is right, `answered` where nothing
is scored."""

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
"""Values of scores that say whether an answer is right as a whole, where no figure of the run is a value of scores."""
SNIPPET = 140
"""Characters of an answer in a list."""
_HASH = re.compile(r"(?=\d*[a-f])[0-9a-f]{12,}(?:[-_:#.][0-9a-f]+)*")
"""Hex digits, a letter among them; perhaps with numbers behind."""
_TITLES = ("question", "description", "caption", "statement", "text")
"""Inputs that say in a line what a sample is about, the first of them before the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Calls, tokens, seconds and dollars that answers took, by their lines."""

    calls: int = 0
    """Calls that were made."""
    replayed: int = 0
    """Calls that were on record."""
    shared: int = 0
    again: int = 0
    """Tries beyond the first of each call."""
    input: int = 0
    """Tokens in."""
    output: int = 0
    """Tokens out."""
    seconds: float = 0.0
    """Of all calls together, although many run at the same time."""
    cost: float = 0.0
    """US dollars, of the samples whose cost is known."""
    unpriced: int = 0
    """Samples of which the cost is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow:
    """The row of one answer."""

    id: str
    epoch: int
    outcome: str
    result: Result
    worth: float | None
    """The value of its score that stands for the sample; None where there is none."""
    said: str
    """The answer in a line."""
    title: str = ""
    """What is asked, or described, of a sample whose id is a hash; else empty."""
    about: str = ""
    """The same of a sample whose id is a name."""
    kinds: tuple[str, ...] = ()
    """Kinds of mistakes."""
    marks: tuple[str, ...] = ()
    """Labels and tags to filter by, as `name: value`."""
    tools: tuple[str, ...] = ()
    """Tools by which an agent looked."""
    picture: str | None = None
    """sha256 of the picture, hex."""
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
            **({"title": self.title} if self.title else {}),
            **({"about": self.about} if self.about else {}),
            "kinds": list(self.kinds),
            "marks": list(self.marks),
            **({"tools": list(self.tools)} if self.tools else {}),
            "seconds": self.spent.seconds,
            "cost": None if self.spent.unpriced else self.spent.cost,
            "tokens": self.spent.input + self.spent.output,
            "again": self.spent.again,
        }


def row_of(
    answer: SampleResult,
    column: str | None = None,
    *,
    share: bool = False,
    common: frozenset[str] = frozenset(),
    scored: bool = True,
) -> SampleRow:
    """The row of one answer.

    Args:
        answer: what is shown.
        column: the value of scores that stands for it.
        share: whether that is a share of what is right.
        common: names of tags to filter by.
        scored: whether the run's answers are scored.
    """
    worth = worth_of(answer, column)
    marks = [f"{name}: {value}" for name, value in marks_of(answer.sample) if name in common]
    image = answer.sample.image
    return SampleRow(
        id=answer.sample.id,
        epoch=answer.epoch,
        outcome=answer.prediction.outcome,
        result=result_of(answer, worth, share=share, scored=scored),
        worth=worth,
        said=said_by(answer, options_of(answer.sample)),
        title=title_of(answer.sample),
        about=about_of(answer.sample),
        kinds=tuple(mistakes(answer)),
        marks=tuple(dict.fromkeys(marks)),
        tools=tools_of(answer),
        picture=None if image is None else image.sha256,
        spent=spent_on(answer),
    )


def column_of(run: Run, answers: Sequence[SampleResult]) -> str | None:
    """The value of scores that stands for a sample: the first figure of the run that single samples have as well."""
    score_names: dict[str, None] = {name: None for answer in answers if answer.score for name in answer.score.values}
    names = [figure.metric for figure in run.figures]
    return next((name for name in (*names, *_WHOLE) if name in score_names), None)


def worth_of(answer: SampleResult, column: str | None) -> float | None:
    """The value of its score that stands for an answer."""
    return None if answer.score is None or column is None else answer.score.values.get(column)


def result_of(answer: SampleResult, worth: float | None, *, share: bool, scored: bool = True) -> Result:
    """How an answer was scored, in a word."""
    if not answer.prediction.answered:
        return "no answer"
    if not scored:
        return "answered"
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
    """Which options are true, counted from 1; None where the target names no options."""
    target: Any = sample.target
    if isinstance(target, dict):
        form = cast("dict[str, Any]", target)
        target = form.get("true", form.get("labels"))
    return places_in(target, options)


def places_in(value: Any, options: Sequence[str]) -> list[int] | None:
    """The options that a value names by number or text, counted from 1, in its order; None where it names others."""
    named: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    places: list[int] = []
    for each in named:
        if type(each) is int and 1 <= each <= len(options):
            places.append(each)
        elif isinstance(each, str) and each in options:
            places.append(options.index(each) + 1)
        else:
            return None
    return list(dict.fromkeys(places)) if options else None


def kinds_of_options(sample: Sample, options: Sequence[str]) -> list[str]:
    """The kind of each option, where the target says it; else none."""
    target: Any = sample.target
    kinds: Any = cast("dict[str, Any]", target).get("kinds") if isinstance(target, dict) else None
    fits = isinstance(kinds, list) and len(cast("list[Any]", kinds)) == len(options)
    return [str(kind) for kind in cast("list[Any]", kinds)] if fits else []


def mistakes(answer: SampleResult) -> dict[str, int]:
    """Kinds of mistakes and how often an answer makes each, as its score notes them."""
    notes: Mapping[str, Any] = {} if answer.score is None else answer.score.notes
    errors: Any = notes.get("errors")
    counts = {str(kind): int(count) for kind, count in _counts(errors)}
    for name in ("missed", "wrong"):
        labels: Any = notes.get(name)
        if isinstance(labels, list):
            counts |= {f"{name} {label}": 1 for label in cast("list[Any]", labels)}
    return counts


def _counts(errors: Any) -> Iterator[tuple[Any, int]]:
    if isinstance(errors, dict):
        yield from ((kind, n) for kind, n in cast("dict[Any, Any]", errors).items() if isinstance(n, int))


def marks_of(sample: Sample) -> Iterator[tuple[str, str]]:
    """Tags of a sample and labels of its target, as names and values to filter and to break figures down by."""
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


def said_by(answer: SampleResult, options: Sequence[str]) -> str:
    """An answer in a line: the options that it chooses, or what it says."""
    if not answer.prediction.answered:
        return answer.prediction.reason or ""
    value = answer.prediction.value
    places, hits = places_in(value, options), texts_of_hits(value)
    if places is None:
        text = _best_of(answer) or (plain(value) if hits is None else " · ".join(islice(hits.values(), 3)))
    else:
        text = " · ".join(options[place - 1] for place in places)
    line = " ".join(text[: 4 * SNIPPET].split())
    return shortened(line, SNIPPET)


def title_of(sample: Sample) -> str:
    """The question or the description of a sample whose id is a hash, in a line; empty where the id is a name."""
    return _told_of(sample) if _HASH.fullmatch(sample.id) else ""


def about_of(sample: Sample) -> str:
    """The question or the description of a sample whose id is a name, in a line; empty where the id is a hash."""
    return "" if _HASH.fullmatch(sample.id) else _told_of(sample)


def _told_of(sample: Sample) -> str:
    """The question or the description of a sample, in a line; empty where it has none of its own."""
    texts = (sample.inputs.get(name) for name in _TITLES)
    return next((shortened(" ".join(text.split()), SNIPPET) for text in texts if isinstance(text, str)), "")


def _best_of(answer: SampleResult) -> str:
    """The inference with the highest score of the only region of a sample; empty for other answers."""
    value, matrix = answer.prediction.value, answer.prediction.matrix
    texts: Any = answer.sample.inputs.get(INFERENCES)
    if matrix is None or not isinstance(texts, list) or matrix.shape != (1, len(cast("list[Any]", texts))):
        return ""
    places = dict(enumerate(cast("list[Any]", texts), 1))
    best = cast("list[Any]", value)[0] if isinstance(value, list) and value else None
    return plain(places[best]) if type(best) is int and best in places else ""


def spent_on(answer: SampleResult) -> Spent:
    """Calls, tokens, seconds and dollars that an answer took, by its line."""
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
    """The sum of several."""
    sums = {each.name: sum(getattr(spent, each.name) for spent in several) for each in fields(Spent)}
    return Spent(**{**sums, "seconds": round(sums["seconds"], 3), "cost": round(sums["cost"], 6)})


# --- a run ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The mean of one part of the samples."""

    name: str
    value: float | None
    interval: Interval | None
    samples: int
    answered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The samples by the values of one tag, or by their labels."""

    name: str
    shares: tuple[Share, ...]
    note: str
    """What is averaged, and how non-answers count."""


@dataclass(frozen=True, kw_only=True)
class RunPart:
    """One run in a report."""

    run: Run
    name: str
    column: str | None
    """The value of scores that stands for a sample."""
    share: bool
    """Whether that value is a share of what is right, shown in percent."""
    answers: Sequence[SampleResult]
    rows: tuple[SampleRow, ...]
    breakdowns: tuple[Breakdown, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tags that have too many values to be filters or to be broken down, and how many each has."""
    judges: tuple[Mapping[str, Any], ...] = ()
    beside: tuple[PublishedBeside, ...] = ()
    blames: RunBlames | None = None
    """Which links of its chain are to blame; None without a blame."""

    @cached_property
    def spent(self) -> Spent:
        """Calls, tokens, seconds and dollars of all answers."""
        return total([row.spent for row in self.rows])

    @cached_property
    def asked_costs(self) -> Sequence[AskedCost]:
        """What each answer cost as it was asked."""
        return [*asked_costs(self.run, self.answers)]

    @cached_property
    def asked(self) -> float | None:
        """US dollars of all answers as they were asked, at list price; None where that is not known of one of them."""
        return sum_of(each.dollars for each in self.asked_costs)

    @cached_property
    def outcomes(self) -> Mapping[str, int]:
        """How many answers ended in each outcome, by its name."""
        return dict(sorted(Counter(row.outcome for row in self.rows).items()))

    @cached_property
    def results(self) -> Mapping[Result, int]:
        """How many answers have each result, in the order of `RESULTS`."""
        counts = Counter(row.result for row in self.rows)
        return {result: counts[result] for result in RESULTS if counts[result]}

    @cached_property
    def kinds(self) -> Mapping[str, int]:
        """How often each kind of mistake was made, the most frequent first."""
        counts = Counter[str]()
        for answer in self.answers:
            counts.update(mistakes(answer))
        return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))

    def form(self) -> JsonObject:
        """The run as JSON, without the texts of its samples."""
        return {
            "name": self.name,
            "folder": self.run.path.name,
            "task": self.run.task,
            **self.run.facts,
            "left": self.run.left,
            "outcomes": dict(self.outcomes),
            "results": dict(self.results),
            "figures": [figure.form() for figure in self.run.figures],
            "spent": asdict(self.spent),
            "kinds": dict(self.kinds),
            "breakdowns": [asdict(each) for each in self.breakdowns],
            "judges": [dict(each) for each in self.judges],
            "published": [asdict(each) for each in self.beside],
            **({} if self.blames is None else {"blames": [each.form() for each in self.blames.parts]}),
            "samples": [row.form() for row in self.rows],
        }


def part_of(run: Run, *, name: str, blames: RunBlames | None = None) -> RunPart:
    """One run of a report.

    Args:
        run: finished or not.
        name: what it is called there.
        blames: what is known of who is to blame in it.

    Raises:
        UsageError: the folder holds lines that are none.
    """
    answers = run.answers
    column = column_of(run, answers)
    share = _is_share(run, answers, column)
    values = _values_by_name(answers)
    common = frozenset(
        name
        for name, counts in values.items()
        if len(counts) <= _FEW_MARKS or len(counts) <= min(_MOST_MARKS, counts.total() / 2)
    )
    rows = tuple(row_of(answer, column, share=share, common=common, scored=not run.of_pictures) for answer in answers)
    return RunPart(
        run=run,
        name=name,
        column=column,
        share=share,
        answers=answers,
        rows=rows,
        breakdowns=tuple(breakdowns_of(run, answers, column, common=common, share=share)),
        left_out={name: len(counts) for name, counts in values.items() if name not in common},
        judges=tuple(_judges(answers)),
        beside=tuple(published_beside(run)),
        blames=blames if blames is not None and (blames.parts or blames.notes) else None,
    )


def by_task(parts: Iterable[RunPart]) -> Mapping[str, Sequence[RunPart]]:
    """The runs of each task."""
    tasks: dict[str, list[RunPart]] = {}
    for part in parts:
        tasks.setdefault(part.run.task, []).append(part)
    return tasks


def _is_share(run: Run, answers: Sequence[SampleResult], column: str | None) -> bool:
    """Whether the value that stands for a sample is a share, from 0 (all wrong) to 1 (all right)."""
    figure = next((each for each in run.figures if each.metric == column), None)
    worths = [worth_of(answer, column) for answer in answers]
    return (figure is None or figure.percent) and all(worth is None or 0 <= worth <= 1 for worth in worths)


def _values_by_name(answers: Sequence[SampleResult]) -> Mapping[str, Counter[str]]:
    """By tag, and for labels, how many samples have each value."""
    values: dict[str, Counter[str]] = {}
    for sample in {answer.sample.id: answer.sample for answer in answers}.values():
        for name, value in dict.fromkeys(marks_of(sample)):
            values.setdefault(name, Counter())[value] += 1
    return values


def _judges(answers: Sequence[SampleResult]) -> Iterator[Mapping[str, Any]]:
    """The notes of judges on scores, each once."""
    seen: set[str] = set()
    for answer in answers:
        note: Any = None if answer.score is None else answer.score.notes.get("judge")
        written = json.dumps(note, sort_keys=True)
        if isinstance(note, dict) and written not in seen:
            seen.add(written)
            yield note


# --- breakdowns ---


def breakdowns_of(
    run: Run, answers: Sequence[SampleResult], column: str | None, *, common: frozenset[str], share: bool
) -> Iterator[Breakdown]:
    """One breakdown for each name in `common` that has at least two values.

    Args:
        run: whose figures say what becomes of non-answers.
        answers: of the run.
        column: the value of scores that is averaged.
        common: names of tags.
        share: whether the value is a share, of which a sample without an answer may count as 0.
    """
    if column is None:
        return
    zero = share and _non_answers_are_zero(run, answers, column)
    note = f"mean of {column}; samples without an answer {'count as 0' if zero else 'are left out'}"
    parts: dict[str, dict[str, list[SampleResult]]] = {}
    for answer in answers:
        for name, value in dict.fromkeys(marks_of(answer.sample)):
            if name in common:
                parts.setdefault(name, {}).setdefault(value, []).append(answer)
    for name, by_value in parts.items():
        if len(by_value) > 1:
            shares = [
                _part_mean(value, by_value[value], column, zero=zero, share=share, seed=run.seed)
                for value in natural(by_value)
            ]
            yield Breakdown(name=name, shares=tuple(shares), note=note)


def natural(names: Iterable[str]) -> list[str]:
    """Names in order, the numbers in them by size."""
    return sorted(
        names,
        key=lambda name: [
            (float(part), "") if place % 2 else (0.0, part) for place, part in enumerate(_NUMBERS.split(name))
        ],
    )


_NUMBERS = re.compile(r"(\d+(?:\.\d+)?)")


def _non_answers_are_zero(run: Run, answers: Sequence[SampleResult], column: str) -> bool:
    """Whether the run's own figure, over all samples, counts every sample without a score as 0."""
    figures = {each.metric: each for each in run.figures}
    figure = figures.get(pooled_name(column), figures.get(column))
    if figure is None or figure.value is None or figure.convention != "wrong" or figure.samples != len(answers):
        return False
    return abs(sum(worth_of(answer, column) or 0.0 for answer in answers) / len(answers) - figure.value) < _ALIKE


def _part_mean(name: str, answers: Sequence[SampleResult], column: str, *, zero: bool, share: bool, seed: int) -> Share:
    worths = [worth_of(answer, column) for answer in answers]
    pairs = zip(worths, answers, strict=True)
    counted = [(worth or 0.0, answer) for worth, answer in pairs if zero or worth is not None]
    values = [worth for worth, _ in counted]
    estimate = mean_estimate(
        values,
        [answer.sample.cluster for _, answer in counted],
        seed=seed,
        binary=share and all(value in {0.0, 1.0} for value in values),
    )
    return Share(
        name=name,
        value=estimate.value,
        interval=estimate.interval,
        samples=len(answers),
        answered=sum(answer.prediction.answered for answer in answers),
    )
