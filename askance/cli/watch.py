"""`askance watch`: a run that another process is writing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.eval import TaskPlace
from askance.cli.exits import SOME
from askance.cli.options import AsJson
from askance.cli.process import Process

if TYPE_CHECKING:
    from askance.evals.watching import Look, Watcher

QUIET = 60
"""Seconds without a line after which it is said that nothing comes."""


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
    from askance.evals.watching import Watcher

    if once:
        _say(Watcher(folder, task=task).look(), as_json=as_json)
        return
    try:
        _wait_for(folder, every=every)
        look = _follow(Watcher(folder, task=task), every=every)
    except KeyboardInterrupt:
        return  # to stop watching is no failure
    _say(look, as_json=as_json)
    if not look.finished and _left(look):
        raise typer.Exit(SOME)


def _wait_for(folder: Path, *, every: float) -> None:
    """Waits for a run that begins later: where nothing is, or a folder with nothing in it."""
    import time

    if (folder / "run.json").exists() or any(each.name != ".lock" for each in _inside(folder)):
        return
    typer.echo(f"There is no run in {str(folder)!r} yet; waiting for it. Ctrl-C ends that.", err=True)
    while not (folder / "run.json").exists():
        time.sleep(every)


def _inside(folder: Path) -> list[Path]:
    return [*folder.iterdir()] if folder.is_dir() else []


def _follow(watcher: Watcher, *, every: float) -> Look:
    """Looks until the run is finished, or until nobody wants to see more; in a pipe, until nobody writes any more."""
    import time

    look = watcher.look()
    if not sys.stdout.isatty():
        while not look.finished and not _left(look):
            time.sleep(every)
            look = watcher.look()
        return look
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    try:
        with Live(console=Console(), auto_refresh=False, transient=True) as live:
            while not look.finished:
                live.update(Text("\n".join(lines_of(look)), no_wrap=True, overflow="ellipsis"), refresh=True)
                time.sleep(every)
                look = watcher.look()
    except KeyboardInterrupt:
        pass
    return look


def _left(look: Look) -> bool:
    """Whether it seems that nobody writes the run any more, though it is not finished."""
    return look.held is False and look.quiet > QUIET


def _say(look: Look, *, as_json: bool) -> None:
    import json

    print(json.dumps(look.form()) if as_json else "\n".join(lines_of(look)))


def lines_of(look: Look) -> Iterator[str]:
    """A look in words."""
    from askance.evals.tables import shown_figure
    from askance.terminal import printable

    of = "" if look.total is None else f" of {look.total:,}"
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in look.outcomes.items())
    yield printable(f"{look.task}: {look.done:,}{of} samples{f': {outcomes}' if outcomes else ''}.")
    if look.figure is not None:
        yield printable(f"{look.figure.metric} {shown_figure(look.figure)}")
    yield " · ".join(_spent(look))
    yield _state(look)
    for slow in look.slow:
        error = f", {_line(slow.error)}" if slow.error else ""
        link = f", {slow.link}" if slow.link else ""
        yield printable(f"slow: {slow.seconds:.1f} s, {slow.sample}{link}{error}")
    for error in look.errors:
        yield printable(f"{error.outcome}: {error.sample}{f', {_line(error.reason)}' if error.reason else ''}")


def _spent(look: Look) -> Iterator[str]:
    from askance.amounts import money

    yield f"{many(look.calls, 'call')} made"
    yield f"{look.replayed:,} replayed"
    if look.failed:
        yield f"{many(look.failed, 'try', 'tries')} failed"
    if look.tokens:
        yield many(look.tokens, "token")
    if look.cost or look.calls:
        more = f" and what {many(look.unpriced, 'sample')} cost" if look.unpriced else ""
        yield f"{money(look.cost)}{more}" if look.cost else "cost not known" if more else money(0.0)


def _state(look: Look) -> str:
    if look.finished:
        left = f", {look.left:,} left by the budget" if look.left else ""
        return f"Finished {look.finished}{left}."
    parts = [] if look.per_minute is None else [f"{look.per_minute:,.1f} samples a minute"]
    minutes = look.minutes_left
    if minutes is not None:
        parts.append(f"about {60 * minutes:.0f} s left" if minutes < 2 else f"about {minutes:.0f} min left")
    if look.quiet > QUIET:
        parts.append(f"nothing written for {look.quiet / 60:.0f} min")
    if _left(look):
        parts.append("nobody seems to write it any more, and the command that began it goes on with it")
    return f"Not finished{': ' if parts else ''}{', '.join(parts)}."


def _line(text: str) -> str:
    """The first line of a text, as far as there is room for it."""
    first = " ".join(text.split())
    return first if len(first) <= 120 else f"{first[:119]}…"
