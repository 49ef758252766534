"""What a notebook shows of runs and comparisons: small tables, everything escaped, no script and no style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.evals.tables import NONE, shown_value
from askance.evals.verdicts import HEAD, counts_of, letter, line_of, notes_of_tests
from askance.replay import visible

if TYPE_CHECKING:
    from askance.evals.comparing import MetricComparison, RunsComparison
    from askance.evals.figures import Figure
    from askance.evals.run import Run


def run_html(run: Run) -> str:
    """The figures of a run with intervals and counts, and its outcomes."""
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in run.totals.get("outcomes", {}).items())
    state = f"{many(run.totals.get('samples', 0), 'sample')}: {outcomes or 'none'}" if run.finished else "not finished"
    head = f"<p><b>{_text(run.task)}</b> · {_text(run.name)} · {_text(state)}</p>"
    if not run.figures:
        return head
    return head + _table(("metric", "value", "95 % interval", "n", "answered"), map(_cells, run.figures))


def _cells(figure: Figure) -> Sequence[str]:
    limits = [] if figure.interval is None else [figure.interval.low, figure.interval.high]
    interval = " – ".join(shown_value(limit, percent=figure.percent) for limit in limits)
    value = shown_value(figure.value, percent=figure.percent)
    return figure.metric, value, interval or NONE, f"{figure.samples:,}", f"{figure.answered:,}"


def sentence_html(comparison: MetricComparison) -> str:
    """The verdict of one comparison in words."""
    return f"<p>{_text(comparison.sentence)}</p>"


def comparison_html(comparison: RunsComparison) -> str:
    """What each run is called for short, a line for each comparison, and what a reader has to know."""
    names = " · ".join(f"<b>{letter(place)}</b> {_text(name)}" for place, name in enumerate(comparison.names))
    notes = (*counts_of(comparison), *notes_of_tests(comparison))
    lines = _table(HEAD, map(line_of, comparison.metrics)) if comparison.metrics else ""
    return f"<p><b>{_text(comparison.runs[0].task)}</b> · {names}</p>{lines}<p>{'<br>'.join(map(_text, notes))}</p>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    names = "".join(f"<th>{_text(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def _text(text: str) -> str:
    from html import escape  # for notebooks alone

    return f"<bdi>{escape(visible(text))}</bdi>"
