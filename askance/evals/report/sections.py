"""The still part of the page: what was run, what came out, in tables and plots that need no script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askance.evals.figures import Figure
from askance.evals.report.markup import Markup, element, joined
from askance.evals.report.values import RESULTS
from askance.evals.reports import notes_of
from askance.evals.run_folder import PROMPTS
from askance.evals.tables import NONE, shown_figure, shown_value

if TYPE_CHECKING:
    from askance.evals.report.values import Beside, RunPart, Spent
    from askance.evals.tables import Cell, Table

FIRST = 8
"""Figures of one run that are shown at once; the others unfold."""


def section(identity: str, title: str, *content: Markup | None) -> Markup:
    """A part of the page with its heading, to be led to from the top."""
    return element(
        "section", element("h2", title, id=f"h-{identity}"), *content, id=identity, aria_labelledby=f"h-{identity}"
    )


def summary(part: RunPart, *, alone: bool) -> Markup:
    """One run: its main figure, how its answers ended, and what it was made of."""
    title = None if alone else element("h3", part.name)
    return element(
        "article",
        title,
        element("div", _main_figure(part), _outcomes(part), class_="lead"),
        element("dl", *_facts(part), class_="facts"),
        listed(notes_of([part.run])) if alone else None,
        _configuration(part),
        class_="run",
    )


def _main_figure(part: RunPart) -> Markup | None:
    if not part.run.figures:
        return element("p", "Not finished: there are no figures yet.", class_="warning")
    figure = part.run.figures[0]
    unit = element("span", " %", class_="unit") if figure.percent and figure.value is not None else None
    about = f"{figure.metric} · {figure.answered:,} of {figure.samples:,} samples answered"
    return element(
        "div",
        element("p", shown_value(figure.value, percent=figure.percent), unit, class_="big"),
        element("p", _interval(figure), class_="num"),
        element("p", about, class_="soft"),
        class_="headline",
    )


def _interval(figure: Figure) -> str:
    if figure.interval is None:
        return "no interval"
    low, high = (shown_value(end, percent=figure.percent) for end in (figure.interval.low, figure.interval.high))
    return f"{100 * figure.interval.level:.0f} % interval {low} – {high}"


def _outcomes(part: RunPart) -> Markup:
    """One bar of all samples by result, and the counts beside it, outcomes of non-answers by name."""
    total = max(sum(part.results.values()), 1)
    place = 0.0
    bars: list[Markup] = []
    for result, count in part.results.items():
        share = 100 * count / total
        kind = result.replace(" ", "-")
        bars.append(element("rect", x=f"{place:.3f}%", width=f"{share:.3f}%", y=0, height=14, class_=f"r-{kind}"))
        place += share
    counts = [
        element("li", element("i", class_=f"key r-{result.replace(' ', '-')}"), f"{RESULTS[result]} ", _count(count))
        for result, count in part.results.items()
    ]
    lost = [
        element("li", f"{outcome} ", _count(count), class_="soft")
        for outcome, count in part.outcomes.items()
        if outcome != "answered"
    ]
    label = ", ".join(f"{result} {count:,}" for result, count in part.results.items())
    svg = element("svg", *bars, class_="stack", width="100%", height=14, role="img", aria_label=label)
    left = f"{part.run.left:,} samples had no budget left." if part.run.left else None
    return element(
        "div",
        svg,
        element("ul", *counts, *lost, class_="legend"),
        element("p", left, class_="warning") if left else None,
        class_="outcomes",
    )


def _count(count: int) -> Markup:
    return element("b", f"{count:,}", class_="num")


def _facts(part: RunPart) -> Iterator[Markup]:
    configuration = part.run.configuration
    yield from _fact("Task", part.run.task)
    yield from _fact("Models", *_models(configuration))
    samples: Mapping[str, Any] = configuration.get("samples", {})
    digest = str(samples.get("digest", ""))
    yield from _fact("Data", f"{samples.get('count', len(part.rows)):,} samples, digest ", _code(digest))
    yield from _fact("Calls", *_calls(part.spent))
    yield from _fact("Cost", *_cost(part.spent, len(part.rows)))
    yield from _fact("Time", *_time(part))
    yield from _fact("Made by", f"askance {part.facts.get('askance', '?')}, run ", _code(part.facts.get("hash", "")))
    prompts: Mapping[str, Any] = configuration.get("solver", {}).get("prompts", {})
    if prompts:
        files = (_prompt(part, str(name), str(digest)) for name, digest in sorted(prompts.items()))
        yield element("div", element("dt", "Prompts"), element("dd", *files), class_="broad")


def _fact(name: str, *content: str) -> Iterator[Markup]:
    several = [each if isinstance(each, Markup) else element("span", each) for each in content]
    if several:
        yield element("div", element("dt", name), element("dd", *several))


def _code(digest: str) -> Markup:
    return element("code", digest[:12], title=digest)


def _models(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Each model with what it does; where one does everything, it alone."""
    named: dict[str, list[str]] = {}
    for role, form in _roles(configuration):
        named.setdefault(_model(form), []).append(role)
    for name, roles in named.items():
        yield name if len(named) == 1 else f"{', '.join(roles)}: {name}"


def _roles(configuration: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    roles: Mapping[str, Any] = configuration.get("models", {}) or configuration.get("solver", {}).get("models", {})
    yield from roles.items()


def _model(form: Mapping[str, Any]) -> str:
    identity: Mapping[str, Any] = form.get("id", {})
    spec = ":".join(str(identity[each]) for each in ("provider", "model") if each in identity)
    sampling: Mapping[str, Any] = form.get("sampling") or {}
    drawn = ", ".join(f"{name} {value}" for name, value in sampling.items())
    named = str(identity.get("name") or spec)
    return f"{named} ({drawn})" if drawn else named


def _prompt(part: RunPart, name: str, digest: str) -> Markup:
    file = part.run.path / PROMPTS / name
    plain = "/" not in name and "\\" not in name  # anybody may have written the names, and the folder
    inside = plain and file.is_file() and not file.is_symlink()
    head = element("summary", name, " ", _code(digest))
    if not inside:
        return element("span", name, " ", _code(digest))
    return element("details", head, element("pre", file.read_text(encoding="utf-8", errors="replace")))


def _calls(spent: Spent) -> Iterator[str]:
    yield f"{spent.calls:,} made, {spent.replayed:,} replayed" + (f", {spent.shared:,} shared" if spent.shared else "")
    if spent.again:
        yield f"{spent.again:,} tries again"
    if spent.input or spent.output:
        yield f"{spent.input:,} tokens in, {spent.output:,} out"


def _cost(spent: Spent, samples: int) -> Iterator[str]:
    if spent.unpriced == samples:
        yield "not known"
        return
    yield f"${spent.cost:,.4f}" if spent.cost < 1 else f"${spent.cost:,.2f}"
    if spent.unpriced:
        yield f"and {spent.unpriced:,} samples whose price is not known"


def _time(part: RunPart) -> Iterator[str]:
    yield f"{part.spent.seconds:,.1f} s in calls"
    started, finished = part.facts.get("started"), part.facts.get("finished")
    if finished:
        yield f"finished {_moment(finished)}" + (f", started {_moment(started)}" if started else "")
    else:
        yield "not finished"


def _moment(written: str) -> str:
    return written.replace("T", " ").replace("+00:00", " UTC")


def _configuration(part: RunPart) -> Markup:
    written = json.dumps(part.run.configuration, ensure_ascii=False, indent=2, sort_keys=True)
    return element("details", element("summary", "Whole configuration"), element("pre", written), class_="whole")


def figures_table(part: RunPart) -> Markup | None:
    """Every figure of one run with its interval, counts and bounds."""
    figures = part.run.figures
    if not figures:
        return None
    first, others = _figures(figures[:FIRST]), figures[FIRST:]
    if not others:
        return first
    more = element("details", element("summary", f"{len(others):,} more figures"), _figures(others))
    return joined((first, more))


def _figures(figures: Sequence[Figure]) -> Markup:
    heads = ("figure", "value", "95 % interval", "samples", "answered", "if wrong", "if right")
    rows = [
        [
            figure.metric,
            (figure.value, shown_value(figure.value, percent=figure.percent)),
            (None if figure.interval is None else figure.interval.low, _interval_text(figure)),
            (figure.samples, f"{figure.samples:,}"),
            (figure.answered, f"{figure.answered:,}"),
            (figure.if_wrong, shown_value(figure.if_wrong, percent=figure.percent)),
            (figure.if_right, shown_value(figure.if_right, percent=figure.percent)),
        ]
        for figure in figures
    ]
    return sortable(heads, rows)


def _interval_text(figure: Figure) -> str:
    return NONE if figure.interval is None else _interval(figure).partition("interval ")[2]


def listed(notes: Sequence[str]) -> Markup | None:
    """What a reader should know, a line each."""
    return element("ul", *(element("li", note) for note in notes), class_="notes") if notes else None


def side_by_side(parts: Sequence[RunPart]) -> Markup:
    """Some runs of one task: a row a figure, a column a run."""
    figures = [{figure.metric: figure for figure in part.run.figures} for part in parts]
    metrics = dict.fromkeys(metric for each in figures for metric in each)
    counts: list[list[str | tuple[float | None, str]]] = [
        ["samples", *(_cell(len(part.rows)) for part in parts)],
        ["answered", *(_cell(part.outcomes.get("answered", 0)) for part in parts)],
    ]
    rows = [[metric, *(_cell(each.get(metric)) for each in figures)] for metric in metrics]
    heads = ("figure", *(part.name for part in parts))
    first, others = sortable(heads, [*counts, *rows[:FIRST]]), rows[FIRST:]
    if not others:
        return first
    more = element("details", element("summary", f"{len(others):,} more figures"), sortable(heads, others))
    return joined((first, more))


def runs_table(table: Table) -> Markup:
    """Several runs: a row each, a column a metric."""
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    return joined((sortable(table.columns, rows), listed(table.notes)))


def _cell(cell: Cell) -> str | tuple[float | None, str]:
    if isinstance(cell, Figure):
        return cell.value, shown_figure(cell)
    if isinstance(cell, (int, float)):
        return float(cell), f"{cell:,}"
    return NONE if cell is None else cell


def beside_table(beside: Beside, parts: Sequence[RunPart]) -> Markup:
    """Our figures, and in columns of their own those that others published."""
    figures = [{figure.metric: figure for figure in part.run.figures} for part in parts]
    ours = ["ours"] if len(parts) == 1 else [part.name for part in parts]
    heads = ("figure", *ours, *(f"{head} †" for head in beside.heads))
    rows: list[list[str | tuple[float | None, str]]] = []
    for metric, values in beside.rows:
        percent = figures[0][metric].percent
        theirs = [(value, shown_value(value, percent=percent)) for value in values]
        rows.append([metric, *(_cell(each.get(metric)) for each in figures), *theirs])
    note = f"† Published figures, not ours: {beside.title}. {beside.source}"
    return joined((sortable(heads, rows), element("p", note, class_="note")))


def judges_table(judges: Sequence[Mapping[str, Any]]) -> Markup:
    """What is known of the judges that gave scores."""
    heads = ("judge", "labelled pairs", "accuracy", "base rate", "Cohen's κ")
    rows: list[list[str | tuple[float | None, str]]] = []
    for note in judges:
        card: Mapping[str, Any] = note.get("card") or {}
        numbers = [card.get(name) for name in ("pairs", "accuracy", "base rate", "cohen kappa")]
        cells = [(number, f"{number:,.3g}") if isinstance(number, (int, float)) else NONE for number in numbers]
        rows.append([str(note.get("judge", "?")), *cells])
    return sortable(heads, rows)


def sortable(heads: Sequence[str], rows: Sequence[Sequence[str | tuple[float | None, str]]]) -> Markup:
    """A table whose columns the script lets be sorted; a pair is a number and how it is shown."""
    head = element(
        "tr", *(element("th", name, scope="col", class_="num" if place else None) for place, name in enumerate(heads))
    )
    body = (element("tr", *(_field(place, cell) for place, cell in enumerate(row))) for row in rows)
    table = element("table", element("thead", head), element("tbody", *body), class_="sortable")
    return element("div", table, class_="wide", tabindex=0, role="region", aria_label=" · ".join(heads))


def _field(place: int, cell: str | tuple[float | None, str]) -> Markup:
    if isinstance(cell, str):
        return element("th" if place == 0 else "td", cell, scope="row" if place == 0 else None)
    number, shown = cell
    return element("td", shown, class_="num", data_sort="" if number is None else repr(float(number)))
