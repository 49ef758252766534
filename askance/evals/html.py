"""What a notebook shows of runs and comparisons: small tables, everything escaped, no script and no style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from askance.evals.tables import NONE, shown_value
from askance.replay import visible

if TYPE_CHECKING:
    from askance.evals.comparing import MetricComparison
    from askance.evals.figures import Figure
    from askance.evals.run import Run


def run_html(run: Run) -> str:
    """The figures of a run with intervals and counts, and its outcomes."""
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in run.totals.get("outcomes", {}).items())
    state = f"{run.totals.get('samples', 0):,} samples: {outcomes or 'none'}" if run.finished else "not finished"
    head = f"<p><b>{_text(run.task)}</b> · {_text(run.name)} · {_text(state)}</p>"
    if not run.figures:
        return head
    return head + _table(("metric", "value", "95 % interval", "n", "answered"), map(_cells, run.figures))


def _cells(figure: Figure) -> Sequence[str]:
    limits = [] if figure.interval is None else [figure.interval.low, figure.interval.high]
    interval = " – ".join(shown_value(limit, percent=figure.percent) for limit in limits)
    value = shown_value(figure.value, percent=figure.percent)
    return figure.metric, value, interval or NONE, f"{figure.samples:,}", f"{figure.answered:,}"


def comparison_html(comparison: MetricComparison) -> str:
    """The verdict of a comparison in words."""
    return f"<p>{_text(comparison.sentence('the first', 'the second'))}</p>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    names = "".join(f"<th>{_text(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def _text(text: str) -> str:
    from html import escape  # for notebooks alone

    return f"<bdi>{escape(visible(text))}</bdi>"
