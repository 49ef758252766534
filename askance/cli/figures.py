"""The figures of a run and the tasks that ship, in words and as JSON; scores made anew."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from askance.amounts import many
from askance.cli.exits import OK
from askance.evals.analysis.rescore import rescore
from askance.evals.catalog import find_task, packaged, task_of
from askance.evals.run import Run
from askance.evals.tables import NONE, conventions_of, shown_value
from askance.evals.task import type_in_words
from askance.models import Counters
from askance.terminal import printable

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic.fields import FieldInfo

    from askance.evals import Figure
    from askance.evals.analysis.rescore import RescoreResult

_SHOWN = 3
"""Examples that are named at most."""


def print_tasks(*, as_json: bool) -> None:
    """Prints the packaged tasks, with what each takes."""
    tasks = packaged()
    if as_json:
        forms = [{"name": each.name, "summary": each.summary(), "takes": [*each.takes()]} for each in tasks.values()]
        print(json.dumps(forms))
        return
    width = max((len(name) for name in tasks), default=0)
    for name, task in tasks.items():
        print(f"{name:<{width}}  {task.summary()}")
        print(f"{'':<{width}}  takes {', '.join(task.takes())}")
    print("A task of your own is named by its file: my_task.py, my_task.py@NAME, my_task.yaml.")


def print_options(name: str, *, as_json: bool) -> None:
    """Prints what a task takes: each option with its type, its default and what it means.

    Raises:
        UsageError: there is no such task.
    """
    task = find_task(name)
    if as_json:
        options = [
            {
                "name": option,
                "takes": type_in_words(each),
                "needed": each.is_required(),
                "default": None if each.is_required() else each.default,
                "meaning": _meaning(each),
            }
            for option, each in task.takes().items()
        ]
        print(json.dumps({"name": task.name, "summary": task.summary(), "options": options}, default=str))
        return
    print(printable(f"{task.name}  {task.summary()}\n"))
    for option, each in task.takes().items():
        default = "" if each.default is None else f", default {_shown(each.default)}"
        told = f"{type_in_words(each)}{', needed' if each.is_required() else default}"
        print(printable(f"  {option}  ({told})\n      {_meaning(each)}"))
    print("\nAn option is given by `-T name=value`; `eval run --help` has those with a name of their own.")


def _meaning(option: FieldInfo) -> str:
    return " ".join((option.description or "").split())


def _shown(default: Any) -> str:
    return default if isinstance(default, str) else json.dumps(default, default=str)


def figures_text(run: Run) -> str:
    """The figures of a run as a table, its outcomes, and what a reader has to know."""
    lines = [*_table(run), ""] if run.figures else []
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in run.totals.get("outcomes", {}).items())
    left = f"; {run.left:,} left" if run.left else ""
    lines.append(f"{many(run.totals.get('samples', 0), 'sample')}: {outcomes or 'none'}{left}.")
    lines += [f"Convention: {words}." for words in conventions_of(run.figures)]
    lines += [f"· {note}" for note in run.notes]
    lines += [f"{name}: {Counters.from_canonical(form)}." for name, form in run.counters.items()]
    return printable("\n".join(lines))


def _table(run: Run) -> Iterator[str]:
    head = ("metric", "value", "95 % interval", "n", "answered", "if wrong", "if right")
    rows = [head, *(_row(figure) for figure in run.figures if figure.samples)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    for row in rows:
        cells = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        yield f"{row[0]:<{widths[0]}}  {'  '.join(cells)}"


def _row(figure: Figure) -> tuple[str, ...]:
    def shown(value: float | None) -> str:
        return shown_value(value, percent=figure.percent)

    interval = figure.interval
    return (
        figure.metric,
        shown(figure.value),
        NONE if interval is None else f"{shown(interval.low)} – {shown(interval.high)}",
        f"{figure.samples:,}",
        f"{figure.answered:,}",
        shown(figure.if_wrong),
        shown(figure.if_right),
    )


def run_form(run: Run) -> dict[str, Any]:
    """A run as one JSON object."""
    return {
        "run": run.path.as_posix(),
        "task": run.task,
        "name": run.name,
        "finished": run.finished,
        "samples": run.totals.get("samples", 0),
        "left": run.left,
        "outcomes": dict(run.totals.get("outcomes", {})),
        "figures": [figure.form() for figure in run.figures],
        "notes": list(run.notes),
        **({"counters": dict(run.counters)} if run.counters else {}),
    }


def score_again(folder: Path, *, reread: bool, task: str | None, convention: Any, as_json: bool) -> int:
    """Scores a run anew and prints it; returns the exit code."""
    run = Run.open(folder)
    found = asyncio.run(rescore(run, task_of(run, task), reread=reread, convention=convention))
    if as_json:
        form = {**run_form(found.run), "reread": found.reread, "changed": found.changed, "kept": found.kept}
        print(json.dumps(form))
    else:
        print("\n".join([figures_text(found.run), *_reread(found)]))
    return OK


def _reread(found: RescoreResult) -> Iterator[str]:
    if found.reread:
        changed = f"{len(found.changed):,} are answered otherwise now{_like(found.changed)}"
        yield f"{many(found.reread, 'sample')} read again: {changed}."
    if found.kept:
        yield (
            f"{len(found.kept):,} keep what they had, since a call of theirs is not among the run's records"
            f"{_like(found.kept)}."
        )


def _like(names: tuple[str, ...]) -> str:
    shown = ", ".join(repr(printable(name)) for name in names[:_SHOWN])
    return f", such as {shown}" if shown else ""
