"""What a notebook shows of runs and comparisons: small tables, everything escaped, no script and no style sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.amounts import many
from askance.evals.report.document import render
from askance.evals.report.elements import interval_text
from askance.evals.tables import shown_value
from askance.evals.verdicts import HEAD, counts_of, letter, line_of, notes_of_tests

if TYPE_CHECKING:
    from askance.evals.comparing import MetricComparison, RunsComparison
    from askance.evals.figures import Figure
    from askance.evals.run import Run

_HEAD = ("metric", "value", "95 % interval", "n", "answered")


def run_html(run: Run) -> str:
    """The figures of a run with intervals and counts, and its outcomes."""
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in run.totals.get("outcomes", {}).items())
    state = f"{many(run.totals.get('samples', 0), 'sample')}: {outcomes or 'none'}" if run.finished else "not finished"
    rows = [_cells(figure) for figure in run.figures]
    return render("notebook.html", task=run.task, parts=[("", run.name), ("", state)], head=_HEAD, rows=rows, notes=())


def _cells(figure: Figure) -> tuple[str, ...]:
    value = shown_value(figure.value, percent=figure.percent)
    interval = interval_text(figure.interval, percent=figure.percent)
    return figure.metric, value, interval, f"{figure.samples:,}", f"{figure.answered:,}"


def sentence_html(comparison: MetricComparison) -> str:
    """The verdict of one comparison in words."""
    return render("notebook.html", task="", parts=(), head=(), rows=(), notes=[comparison.sentence])


def comparison_html(comparison: RunsComparison) -> str:
    """What each run is called for short, a line for each comparison, and what a reader has to know."""
    return render(
        "notebook.html",
        task=comparison.runs[0].task,
        parts=[(letter(place), name) for place, name in enumerate(comparison.names)],
        head=HEAD,
        rows=[line_of(each) for each in comparison.metrics],
        notes=(*counts_of(comparison), *notes_of_tests(comparison)),
    )
