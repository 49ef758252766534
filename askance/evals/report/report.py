"""A report as a value, counted from the folders of runs alone: runs, their samples, and what stands beside them.

Published figures stand beside a run where it asks what a published table asks: the packaged grid says which task and
metric are behind each column, and how each row is asked. Who answered is for the reader to see: a published row stands
beside a run of any model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from askance.errors import UsageError
from askance.evals.grid import NAMED, Grid, read_grid
from askance.evals.reference import PERCENT, Suite, read_reference
from askance.evals.report.blame import blames_of, check_blames
from askance.evals.report.row import RESULTS, Result, Row, Spent, column_of, marks_of, mistakes, row_of, total, worth_of
from askance.evals.run_folder import DESCRIPTION
from askance.evals.tables import names_of, table_of_runs
from askance.statistics import mean_estimate

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.grid import CellSpec
    from askance.evals.reference import Reference, ReferenceTable
    from askance.evals.report.blame import Blames
    from askance.evals.run import Answer, Run
    from askance.evals.tables import Table
    from askance.statistics import Interval

_FACTS = ("hash", "askance", "started", "finished")
_MOST_MARKS = 40
"""Values of a tag beyond which it tells samples apart rather than sorts them."""
_ALIKE = 1e-6
"""Two means that differ by less are one."""
_TELLING = ("context", "small", "step_by_step", "which", "qa", "negatives", "true", "statement", "control")
"""Options that make two runs of a task answers to different questions; the others are seeds and sizes."""
_USUAL: Mapping[str, Any] = {
    "small": False,
    "step_by_step": False,
    "which": "usable",
    "negatives": "easy",
    "true": "all",
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


def build_report(runs: Sequence[Run], *, title: str | None = None, blames: Sequence[Path] = ()) -> Report:
    """The report of `runs`, finished or not; of their folders alone, with no model, no data and no network.

    Args:
        runs: with what their folders hold of their blame.
        title: by default the tasks.
        blames: folders of further blames, as `askance blame --out` makes them.

    Raises:
        UsageError: there is no run, a folder holds lines that are none, or no blame of any of the runs.
        CassetteError: the records of a run cannot be read.
    """
    if not runs:
        raise UsageError("A report is of at least one run.", hint="Name the folder of a run.")
    names = names_of(runs)
    check_blames(runs, blames)
    parts = tuple(part_of(run, name=name, blames=blames_of(run, blames)) for run, name in zip(runs, names, strict=True))
    tasks = dict.fromkeys(run.task for run in runs)
    return Report(title=title or " · ".join(tasks), runs=parts, table=table_of_runs(runs))


def part_of(run: Run, *, name: str, blames: Blames | None = None) -> RunPart:
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
    common = _common_marks(answers)
    rows = tuple(row_of(answer, column, share=share, common=common) for answer in answers)
    kinds = Counter[str]()
    for answer in answers:
        kinds.update(mistakes(answer))
    results = Counter(each.result for each in rows)
    return RunPart(
        run=run,
        name=name,
        facts=_facts(run),
        column=column,
        share=share,
        answers=answers,
        rows=rows,
        spent=total([each.spent for each in rows]),
        outcomes=dict(sorted(Counter(each.outcome for each in rows).items())),
        results={result: results[result] for result in RESULTS if results[result]},
        kinds=dict(sorted(kinds.items(), key=lambda each: (-each[1], each[0]))),
        breakdowns=tuple(breakdowns_of(run, answers, column, common=common, share=share)),
        judges=tuple(_judges(answers)),
        beside=tuple(beside_of(run)),
        blames=blames if blames is not None and (blames.parts or blames.notes) else None,
    )


def _is_share(run: Run, answers: Sequence[Answer], column: str | None) -> bool:
    """Whether the value that stands for a sample goes from all wrong to all right."""
    figure = next((each for each in run.figures if each.metric == column), None)
    worths = [worth_of(answer, column) for answer in answers]
    return (figure is None or figure.percent) and all(worth is None or 0 <= worth <= 1 for worth in worths)


def _common_marks(answers: Sequence[Answer]) -> frozenset[str]:
    """Names of tags that sort samples into few kinds."""
    values: dict[str, set[str]] = {}
    for answer in answers:
        for name, value in marks_of(answer.sample):
            values.setdefault(name, set()).add(value)
    return frozenset(name for name, found in values.items() if len(found) <= _MOST_MARKS)


def _facts(run: Run) -> Mapping[str, str]:
    form: Mapping[str, Any] = json.loads((run.path / DESCRIPTION).read_text(encoding="utf-8"))
    return {name: str(form[name]) for name in _FACTS if form.get(name)}


def _judges(answers: Sequence[Answer]) -> Iterator[Mapping[str, Any]]:
    """What scores say of the judges that made them, each once."""
    seen: set[str] = set()
    for answer in answers:
        note: Any = None if answer.score is None else answer.score.notes.get("judge")
        written = json.dumps(note, sort_keys=True)
        if isinstance(note, dict) and written not in seen:
            seen.add(written)
            yield note


# --- breakdowns ---


def breakdowns_of(
    run: Run, answers: Sequence[Answer], column: str | None, *, common: frozenset[str], share: bool
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
    parts: dict[str, dict[str, list[Answer]]] = {}
    for answer in answers:
        for name, value in dict.fromkeys(marks_of(answer.sample)):
            if name in common:
                parts.setdefault(name, {}).setdefault(value, []).append(answer)
    for name, by_value in parts.items():
        if len(by_value) > 1:
            ordered = sorted(by_value.items())
            shares = [_part_mean(value, some, column, zero=zero, seed=run.seed) for value, some in ordered]
            yield Breakdown(name=name, shares=tuple(shares), note=note)


def _non_answers_are_zero(run: Run, answers: Sequence[Answer], column: str) -> bool:
    """Whether the run's own figure is what it is with 0 for every sample without a score."""
    figure = next((each for each in run.figures if each.metric == column), None)
    if figure is None or figure.value is None or figure.convention != "wrong" or figure.samples != len(answers):
        return False
    return abs(sum(worth_of(answer, column) or 0.0 for answer in answers) / len(answers) - figure.value) < _ALIKE


def _part_mean(name: str, answers: Sequence[Answer], column: str, *, zero: bool, seed: int) -> Share:
    worths = [worth_of(answer, column) for answer in answers]
    pairs = zip(worths, answers, strict=True)
    counted = [(worth or 0.0, answer) for worth, answer in pairs if zero or worth is not None]
    values = [worth for worth, _ in counted]
    found = mean_estimate(
        values,
        [answer.sample.cluster for _, answer in counted],
        seed=seed,
        binary=all(value in {0.0, 1.0} for value in values),
    )
    return Share(
        name=name,
        value=found.value,
        interval=found.interval,
        samples=len(answers),
        answered=sum(answer.prediction.answered for answer in answers),
    )


# --- published figures ---


def beside_of(run: Run) -> Iterator[Beside]:
    """The published tables that `run` stands beside."""
    suite: Suite | None = next((each for each in get_args(Suite) if each == run.task.partition("/")[0]), None)
    grid = _grid_of(suite)
    if suite is None or grid is None:
        return
    reference = read_reference(suite)
    for name, spec in grid.tables.items():
        number = (spec.published or "").rpartition("/")[2]
        if number.isdecimal():
            found = _beside(run, name, grid, reference=reference, table=reference.tables[int(number)])
            yield from () if found is None else (found,)


@cache
def _grid_of(suite: Suite | None) -> Grid | None:
    """The packaged grid of a suite, read once: every run of a report asks for it."""
    file = Path(__file__).parents[1] / f"{suite}" / "grid.yaml"
    return read_grid(file) if file.is_file() else None


def _beside(run: Run, name: str, grid: Grid, *, reference: Reference, table: ReferenceTable) -> Beside | None:
    spec = grid.tables[name]
    figures: dict[str, dict[str, float | None]] = {}
    for cell in grid.only([name]).cells:
        published = spec.rows[cell.row].published
        if published is None or not _asks_the_same(run, cell) or cell.head not in table.columns:
            continue
        value = table.value(*published, column=cell.head)
        if value is not None and any(figure.metric == cell.metric for figure in run.figures):
            unit = 100.0 if table.units[cell.head] == PERCENT else 1.0
            figures.setdefault(cell.metric, {})[", ".join(published)] = value / unit
    heads = tuple(dict.fromkeys(head for row in figures.values() for head in row))
    if not heads:
        return None
    return Beside(
        title=f"Table {table.number}: {table.title}",
        source=reference.source,
        heads=heads,
        rows=tuple((metric, tuple(row.get(head) for head in heads)) for metric, row in figures.items()),
    )


def _asks_the_same(run: Run, cell: CellSpec) -> bool:
    if cell.task != run.task:
        return False
    own: Mapping[str, Any] = run.configuration.get("options", {})
    asked = {name: value for name, value in cell.options.items() if name not in NAMED}
    return all(_shown(own, name) == _shown(asked, name) for name in _TELLING) and all(
        own.get(name) == value for name, value in asked.items() if name not in _TELLING
    )


def _shown(options: Mapping[str, Any], name: str) -> Any:
    value = options.get(name, _USUAL.get(name))
    return Path(value).name if name == "qa" and isinstance(value, str) else value
