"""What a report is made of, as plain values: runs, their samples at a glance, and what was counted over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.report.blames import Blames
    from askance.evals.run import Answer, Run
    from askance.evals.tables import Table
    from askance.statistics import Interval

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
    """What is averaged, and what becomes of non-answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Published figures that a run stands beside: a row a metric, a column a published row."""

    title: str
    source: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    """Name of our metric, and the figures in percent or in the unit of their column."""


@dataclass(frozen=True, kw_only=True)
class RunPart:
    """One run in a report."""

    run: Run
    name: str
    facts: Mapping[str, str]
    """What `run.json` says of itself: `hash`, `askance` (the version), `started`, `finished`; as far as it does."""
    column: str | None
    """The value of scores that stands for a sample."""
    share: bool
    """Whether that value is a share of what is right, shown in percent."""
    answers: Sequence[Answer]
    rows: tuple[Row, ...]
    spent: Spent
    outcomes: Mapping[str, int]
    results: Mapping[Result, int]
    kinds: Mapping[str, int]
    breakdowns: tuple[Breakdown, ...]
    judges: tuple[Mapping[str, Any], ...] = ()
    beside: tuple[Beside, ...] = ()
    blames: Blames | None = None
    """Which links of its chain are to blame, as far as that was asked; None is not."""

    def form(self) -> JsonObject:
        """The run as JSON, without the texts of its samples."""
        return {
            "name": self.name,
            "folder": self.run.path.name,
            "task": self.run.task,
            **self.facts,
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


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that a page about runs shows, but for pictures and the texts of calls."""

    title: str
    runs: tuple[RunPart, ...]
    table: Table

    def form(self) -> JsonObject:
        """The report as JSON: what the page says, to be held against another one."""
        return {"title": self.title, "table": self.table.form(), "runs": [run.form() for run in self.runs]}
