"""The head of a page as values: what was run, how it ended, what it took, and its figures in tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.amounts import many
from askance.evals.metric import Figure
from askance.evals.report.elements import Field, PageLink, Sortable, estimate_fields
from askance.evals.report.run_part import RESULTS, RunPart, Spent
from askance.evals.run_tables import notes_of, table_of_runs
from askance.evals.sample import told_reads
from askance.evals.tables import NONE, Cell, shown_figure, shown_value

if TYPE_CHECKING:
    from askance.evals.report.published_part import PublishedBeside


Fact: TypeAlias = "tuple[str, Sequence[str], str]"
"""Name of a fact, the pieces of its text, and a digest behind them or none; a fact without pieces is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One run: its main figure, how its answers ended, and what it was made of."""

    part: RunPart
    results: Sequence[tuple[str, str, int]]
    """Each result that samples have: in words, its name, and how many have it."""
    facts: Sequence[Fact]
    prompts: Sequence[tuple[str, str, str | None]]
    """Name, digest and text of each prompt file; a text that is not there is None."""
    notes: Sequence[str]
    configuration: str
    """As text; what could be chosen from stands with each picture."""


def summary_of(part: RunPart) -> Summary:
    """One run of a report."""
    run, hidden = part.run, {"samples"} if part.run.of_pictures else set[str]()
    digests: Mapping[str, Any] = run.solver.get("prompts", {})
    form = {name: value for name, value in run.configuration.items() if name not in hidden}
    return Summary(
        part=part,
        results=[(RESULTS[result], result, count) for result, count in part.results.items()],
        facts=[*_facts(part)],
        prompts=[(str(name), str(digest), run.prompts.get(str(name))) for name, digest in sorted(digests.items())],
        notes=notes_of([run]),
        configuration=json.dumps(form, ensure_ascii=False, indent=2, sort_keys=True),
    )


def _facts(part: RunPart) -> Iterator[Fact]:
    run = part.run
    yield "Chain" if run.of_pictures else "Task", [run.task], ""
    yield "Models", [*_models(run.roles)], ""
    if not run.of_pictures:
        samples: Mapping[str, Any] = run.configuration.get("samples", {})
        count = many(samples.get("count", len(part.rows)), "sample")
        yield "Data", [f"{count}, digest "], str(samples.get("digest", ""))
    if reads := run.totals.get("read"):
        yield "Answers read", [told_reads(reads).partition(": ")[2]], ""
    yield "Calls", [*_calls(part.spent)], ""
    yield "Cost", [*_cost(part)], ""
    yield "Time", [*_time(part)], ""
    made_by, digest = f"askance {run.facts.get('askance', '?')}", run.facts.get("hash", "")
    yield "Made by", [f"{made_by}, run " if digest else made_by], digest


def _models(roles: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Each model with its roles; a model that has all of them is named alone."""
    named: dict[str, list[str]] = {}
    for role, form in roles:
        named.setdefault(_model(form), []).append(role)
    for name, several in named.items():
        role_names = ", ".join(role for role in several if role)
        yield f"{role_names}: {name}" if role_names and len(named) > 1 else name


def _model(form: Mapping[str, Any]) -> str:
    identity: Mapping[str, Any] = form.get("id", {})
    spec = ":".join(str(identity[each]) for each in ("provider", "model") if each in identity)
    sampling: Mapping[str, Any] = form.get("sampling") or {}
    drawn = ", ".join(f"{name} {value}" for name, value in sampling.items())
    named = str(identity.get("name") or spec)
    return f"{named} ({drawn})" if drawn else named


def _calls(spent: Spent) -> Iterator[str]:
    yield f"{spent.calls:,} made, {spent.replayed:,} replayed" + (f", {spent.shared:,} shared" if spent.shared else "")
    if spent.again:
        yield f"{many(spent.again, 'try', 'tries')} again"
    if spent.input or spent.output:
        yield f"{many(spent.input, 'token')} in, {spent.output:,} out"


def _cost(part: RunPart) -> Iterator[str]:
    spent = part.spent
    if _is_unpriced(part):
        yield "not known"
    else:
        yield f"${_dollars(spent.cost)} paid"
        if spent.unpriced:
            yield f"and {many(spent.unpriced, 'sample')} whose price is not known"
    if part.asked is not None:
        yield f"${_dollars(part.asked)} as asked, at list price"


def _is_unpriced(part: RunPart) -> bool:
    """Whether nothing is known of what the run paid."""
    spent = part.spent
    return spent.unpriced == len(part.rows) or (spent.unpriced > 0 and not spent.cost)


def _dollars(amount: float) -> str:
    return f"{amount:,.4f}" if amount < 1 else f"{amount:,.2f}"


def _time(part: RunPart) -> Iterator[str]:
    yield f"{part.spent.seconds:,.1f} s in calls"
    started, finished = part.run.facts.get("started"), part.run.facts.get("finished")
    if finished:
        yield f"finished {_moment(finished)}" + (f", started {_moment(started)}" if started else "")
    elif part.run.kept:
        yield "not finished"


def _moment(written: str) -> str:
    return written.replace("T", " ").replace("+00:00", " UTC")


# --- figures ---

FIRST = 8
"""Most figures that are shown openly; the others unfold."""
_SIDE_BY_SIDE = 4
"""Most runs that have a column each; more of them have a row each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTables:
    """The figures of runs of one task, and notes on them."""

    tables: Sequence[Sortable]
    notes: Sequence[str] = ()


def runs_table(parts: Sequence[RunPart]) -> Sortable:
    """The runs in a row each: which, its main figure, its answers, and what it took; the name leads to its samples."""
    tasks = len({part.run.task for part in parts}) > 1
    figures = {part.run.figures[0].metric for part in parts if part.run.figures}
    rows = [_run_row(number, part, named=len(figures) > 1) for number, part in enumerate(parts)]
    figure = next(iter(figures)) if len(figures) == 1 else "main figure"
    heads = ["run", figure, "95 % interval", "answered", "calls made", "paid, $", "as asked, $", "seconds"]
    if all(part.run.of_pictures for part in parts):  # nobody scores them
        heads[1:3] = []
        for row in rows:
            row[1:3] = []
    return Sortable(heads=heads, rows=rows, caption="" if tasks else parts[0].run.task)


def _run_row(number: int, part: RunPart, *, named: bool) -> list[Field]:
    """The row of a run, with the name of its main figure where runs have several."""
    figure = next(iter(part.run.figures), None)
    answered = part.outcomes.get("answered", 0)
    spent = part.spent
    note = f" · {figure.metric}" if named and figure is not None else ""
    if figure is None and part.run.finished is None:
        note = " · not finished"
    sort = "order" if part.run.of_pictures else "worst"
    return [
        PageLink(text=part.name, to={"run": number, "sort": sort}, note=note),
        *([NONE] * 2 if figure is None else estimate_fields(figure.value, figure.interval, percent=figure.percent)),
        (answered, f"{answered:,} of {len(part.rows):,}"),
        spent.calls,
        NONE if _is_unpriced(part) else (spent.cost, _dollars(spent.cost)),
        NONE if part.asked is None else (part.asked, _dollars(part.asked)),
        (spent.seconds, f"{spent.seconds:,.1f}"),
    ]


def tables_of_runs(parts: Sequence[RunPart]) -> FigureTables:
    """The figures of runs of one task: a column for each run, or a row for each if there are many."""
    runs = [part.run for part in parts]
    if len(parts) > _SIDE_BY_SIDE:
        table = table_of_runs(runs)
        rows = [[_figure_field(cell) for cell in row] for row in table.rows]
        return FigureTables(tables=[Sortable(heads=table.columns, rows=rows)], notes=table.notes)
    if len(parts) > 1:
        return FigureTables(tables=_side_by_side(parts), notes=notes_of(runs))
    return FigureTables(tables=_alone(parts[0]))


def _alone(part: RunPart) -> list[Sortable]:
    heads = ("figure", "value", "95 % interval", "samples", "answered", "if wrong", "if right")
    rows: list[list[Field]] = [
        [
            each.metric,
            *estimate_fields(each.value, each.interval, percent=each.percent),
            each.samples,
            each.answered,
            *((end, shown_value(end, percent=each.percent)) for end in (each.if_wrong, each.if_right)),
        ]
        for each in part.run.figures
    ]
    return _unfolding(heads, rows, FIRST) if rows else []


def _side_by_side(parts: Sequence[RunPart]) -> list[Sortable]:
    figures = _by_metric(parts)
    metrics = dict.fromkeys(metric for each in figures for metric in each)
    rows: list[list[Field]] = [
        [f"{parts[0].run.noun}s", *(_figure_field(len(part.rows)) for part in parts)],
        ["answered", *(_figure_field(part.outcomes.get("answered", 0)) for part in parts)],
        *([metric, *(_figure_field(each.get(metric)) for each in figures)] for metric in metrics),
    ]
    return _unfolding(("figure", *(part.name for part in parts)), rows, FIRST + 2)


def _unfolding(heads: Sequence[str], rows: Sequence[Sequence[Field]], first: int) -> list[Sortable]:
    """The first rows, and the others in a table that unfolds."""
    shown, others = Sortable(heads=heads, rows=rows[:first]), rows[first:]
    if not others:
        return [shown]
    return [shown, Sortable(heads=heads, rows=others, summary=f"{len(others):,} more figures")]


def published_table(table: PublishedBeside, parts: Sequence[RunPart]) -> Sortable:
    """Our figures, and published ones in columns of their own."""
    figures = _by_metric(parts)
    ours = ["ours"] if len(parts) == 1 else [part.name for part in parts]
    rows: list[list[Field]] = []
    for metric, values in table.rows:
        percent = figures[0][metric].percent
        theirs = [(value, shown_value(value, percent=percent)) for value in values]
        rows.append([metric, *(_figure_field(each.get(metric)) for each in figures), *theirs])
    return Sortable(heads=("figure", *ours, *(f"{head} †" for head in table.heads)), rows=rows)


def _by_metric(parts: Sequence[RunPart]) -> list[dict[str, Figure]]:
    return [{figure.metric: figure for figure in part.run.figures} for part in parts]


def _figure_field(cell: Cell) -> Field:
    if isinstance(cell, Figure):
        return cell.value, shown_figure(cell)
    return NONE if cell is None else cell
