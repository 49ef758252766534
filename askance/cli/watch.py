"""`askance watch`: a run that another process is writing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.options import AsJson, TaskPlace
from askance.cli.process import SOME, Process

if TYPE_CHECKING:
    from askance.evals.analysis.watch import RunStatus, Watcher


def watch(
    context_: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, finished or not.")],
    once: Annotated[bool, typer.Option("--once", help="Say how it stands, and end.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    task: TaskPlace = None,
    as_json: AsJson = False,
) -> None:
    """Show a run while another process writes it: rate, outcomes, score so far, cost, slow calls, last errors.

    It only reads, so it can be opened and closed at any time, before the run begins as well. In a pipe it says one
    thing, at the end; the exit code is 1 if the run was left without one.
    """
    Process.of(context_).without_langchain()
    from askance.evals.analysis.watch import Watcher

    if once:
        _say(Watcher(folder, task=task).status(), as_json=as_json)
        return
    try:
        _wait_for(folder, every=every)
        status = _follow(Watcher(folder, task=task), every=every)
    except KeyboardInterrupt:
        return  # to stop watching is no failure
    _say(status, as_json=as_json)
    if not status.finished and status.abandoned:
        raise typer.Exit(SOME)


def _wait_for(folder: Path, *, every: float) -> None:
    """Waits for a run that begins later, if the folder is empty or not there."""
    import time

    if (folder / "run.json").exists() or any(each.name != ".lock" for each in _inside(folder)):
        return
    typer.echo(f"There is no run in {str(folder)!r} yet; waiting for it. Ctrl-C ends that.", err=True)
    while not (folder / "run.json").exists():
        time.sleep(every)


def _inside(folder: Path) -> list[Path]:
    return [*folder.iterdir()] if folder.is_dir() else []


def _follow(watcher: Watcher, *, every: float) -> RunStatus:
    """Shows the run until it is finished or Ctrl-C is pressed; in a pipe, until no process writes it any more."""
    import time

    status = watcher.status()
    if not sys.stdout.isatty():
        while not status.finished and not status.abandoned:
            time.sleep(every)
            status = watcher.status()
        return status
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    try:
        with Live(console=Console(), auto_refresh=False, transient=True) as live:
            while not status.finished:
                live.update(Text("\n".join(lines_of(status)), no_wrap=True, overflow="ellipsis"), refresh=True)
                time.sleep(every)
                status = watcher.status()
    except KeyboardInterrupt:
        pass
    return status


def _say(status: RunStatus, *, as_json: bool) -> None:
    import json

    print(json.dumps(status.form()) if as_json else "\n".join(lines_of(status)))


def lines_of(status: RunStatus) -> Iterator[str]:
    """Where a run stands, in words."""
    from askance.evals.tables import shown_figure
    from askance.terminal import printable

    of = "" if status.total is None else f" of {status.total:,}"
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in status.outcomes.items())
    yield printable(f"{status.task}: {status.done:,}{of} samples{f': {outcomes}' if outcomes else ''}.")
    if status.figure is not None:
        yield printable(f"{status.figure.metric} {shown_figure(status.figure)}")
    yield " · ".join(_spent(status))
    yield _state(status)
    for slow in status.slow:
        error = f", {_line(slow.error)}" if slow.error else ""
        link = f", {slow.link}" if slow.link else ""
        yield printable(f"slow: {slow.seconds:.1f} s, {slow.sample}{link}{error}")
    for error in status.errors:
        yield printable(f"{error.outcome}: {error.sample}{f', {_line(error.reason)}' if error.reason else ''}")


def _spent(status: RunStatus) -> Iterator[str]:
    from askance.amounts import money

    yield f"{many(status.calls, 'call')} made"
    yield f"{status.replayed:,} replayed"
    if status.failed:
        yield f"{many(status.failed, 'try', 'tries')} failed"
    if status.tokens:
        yield many(status.tokens, "token")
    if status.cost or status.calls:
        more = f" and what {many(status.unpriced, 'sample')} cost" if status.unpriced else ""
        yield f"{money(status.cost)}{more}" if status.cost else "cost not known" if more else money(0.0)


def _state(status: RunStatus) -> str:
    from askance.evals.analysis.watch import QUIET

    if status.finished:
        left = f", {status.left:,} left by the budget" if status.left else ""
        return f"Finished {status.finished}{left}."
    parts = [] if status.per_minute is None else [f"{status.per_minute:,.1f} samples a minute"]
    minutes = status.minutes_left
    if minutes is not None:
        parts.append(f"about {60 * minutes:.0f} s left" if minutes < 2 else f"about {minutes:.0f} min left")
    if status.quiet > QUIET:
        parts.append(f"nothing written for {status.quiet / 60:.0f} min")
    if status.abandoned:
        parts.append("nobody seems to write it any more, and the command that began it goes on with it")
    return f"Not finished{': ' if parts else ''}{', '.join(parts)}."


def _line(text: str) -> str:
    """The first line of a text, as far as there is room for it."""
    first = " ".join(text.split())
    return first if len(first) <= 120 else f"{first[:119]}…"
