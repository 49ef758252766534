"""`askance watch`: a run that another process is writing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many, money, shortened
from askance.cli.columns import Report
from askance.cli.options import AsJson, TaskPlace
from askance.cli.process import SOME
from askance.cli.report import ImagesOption
from askance.errors import UsageError
from askance.terminal import echo, printable

if TYPE_CHECKING:
    from askance.evals.analysis.watch import RunStatus, Watcher


PAGE_EVERY = 5.0
"""Seconds between two pages of a run that goes on."""
PAGE_SHARE = 10
"""A page that takes long to make is made again after so many times as long."""
MEGABYTES = 24.0
"""Most megabytes of pictures in the page."""


def watch(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, finished or not.")],
    once: Annotated[bool, typer.Option("--once", help="Say how it stands, and end.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    task: TaskPlace = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also keep a page of the run, which an open browser follows.")
    ] = None,
    images: ImagesOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a run while another process writes it: rate, outcomes, score so far, cost, slow calls, last errors.

    It only reads, so it can be opened and closed at any time, before the run begins as well. In a pipe it says one
    thing, at the end; the exit code is 1 if the run was left without one.
    """
    from askance.evals.analysis.watch import Watcher

    if images and html is None:
        raise UsageError("`--images` is for a page, and none is asked for.", hint="Add `--html page.html`.")
    page = None if html is None else RunPage(html, folder, images)
    if once:
        status = Watcher(folder, task=task).status()
        _say(status, as_json=as_json)
        _write(page, status, last=True)
        return
    try:
        _wait_for(folder, every=every)
        status = _follow(Watcher(folder, task=task), every=every, page=page)
    except KeyboardInterrupt:
        return  # to stop watching is no failure
    _say(status, as_json=as_json)
    _write(page, status, last=True)
    if not status.finished and status.abandoned:
        raise typer.Exit(SOME)


def _wait_for(folder: Path, *, every: float) -> None:
    """Waits for a run that begins later, if the folder is empty or not there."""
    import time

    if (folder / "run.json").exists() or any(each.name != ".lock" for each in _inside(folder)):
        return
    echo(f"There is no run in {str(folder)!r} yet; waiting for it. Ctrl-C ends that.", err=True)
    while not (folder / "run.json").exists():
        time.sleep(every)


def _inside(folder: Path) -> list[Path]:
    return [*folder.iterdir()] if folder.is_dir() else []


class RunPage:
    """The page of a run that goes on, written again now and then.

    Args:
        out: the file.
        folder: of the run.
        images: where its pictures are.
    """

    def __init__(self, out: Path, folder: Path, images: list[Path] | None) -> None:
        self.out = out
        self._folder = folder
        self._images = images
        self._next = 0.0

    def write(self, status: RunStatus, *, last: bool = False) -> None:
        """Writes the page, unless that was done a moment ago.

        Args:
            status: of the run.
            last: whether the run is not followed any more; then the page is written in any case.
        """
        import time

        from askance.cli.report import pictures_of
        from askance.evals.report import build_report, report_page
        from askance.evals.report.html import write_page
        from askance.evals.report.run_report import PageFollowing
        from askance.evals.run import Run

        start = time.monotonic()
        if start < self._next and not last:
            return
        report = build_report([Run.open(self._folder)])
        pictures = pictures_of(report.runs, self._images or [], megabytes=MEGABYTES)
        took = time.monotonic() - start
        wait = max(PAGE_EVERY, PAGE_SHARE * took)
        following = (
            None if status.finished else PageFollowing(lines=[*lines_of(status)], seconds=None if last else wait)
        )
        write_page(self.out, lambda files: report_page(report, pictures=pictures, files=files, following=following))
        self._next = time.monotonic() + wait


def _write(page: RunPage | None, status: RunStatus, *, last: bool = False) -> None:
    if page is not None:
        page.write(status, last=last)
        if last:
            echo(f"The page is in {page.out}.", err=True)


def _follow(watcher: Watcher, *, every: float, page: RunPage | None) -> RunStatus:
    """Shows the run until it is finished or Ctrl-C is pressed; in a pipe, until no process writes it any more."""
    import time

    status = watcher.status()
    if not sys.stdout.isatty():
        while not status.finished and not status.abandoned:
            _write(page, status)
            time.sleep(every)
            status = watcher.status()
        return status
    from rich.live import Live
    from rich.text import Text

    from askance.cli.console import Console

    try:
        with Live(console=Console(), auto_refresh=False, transient=True) as live:
            while not status.finished:
                live.update(Text("\n".join(lines_of(status)), no_wrap=True, overflow="ellipsis"), refresh=True)
                _write(page, status)
                time.sleep(every)
                status = watcher.status()
    except KeyboardInterrupt:
        pass
    return status


def _say(status: RunStatus, *, as_json: bool) -> None:
    Report(status.form, lambda: lines_of(status), breaks=False).print(as_json=as_json)


def lines_of(status: RunStatus) -> Iterator[str]:
    """Where a run stands, in words."""
    from askance.evals.tables import shown_figure

    of = "" if status.total is None else f" of {status.total:,}"
    noun = f"{status.noun}s"
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in status.outcomes.items())
    yield printable(f"{status.task}: {status.done:,}{of} {noun}{f': {outcomes}' if outcomes else ''}.")
    if status.figure is not None:
        yield printable(f"{status.figure.metric} {shown_figure(status.figure)}")
    if status.unscored is not None:
        yield printable(f"No score: {status.unscored}")
    yield " · ".join(_spent(status))
    yield _state(status)
    for slow in status.slow:
        error = f", {_first_line(slow.error)}" if slow.error else ""
        link = f", {slow.link}" if slow.link else ""
        yield printable(f"slow: {slow.seconds:.1f} s, {slow.sample}{link}{error}")
    for error in status.errors:
        yield printable(f"{error.outcome}: {error.sample}{f', {_first_line(error.reason)}' if error.reason else ''}")


def _spent(status: RunStatus) -> Iterator[str]:
    yield f"{many(status.calls, 'call')} made"
    yield f"{status.replayed:,} replayed"
    if status.failed:
        yield f"{many(status.failed, 'try', 'tries')} failed"
    if status.tokens:
        yield many(status.tokens, "token")
    if status.cost or status.calls:
        more = f" and what {many(status.unpriced, status.noun)} cost" if status.unpriced else ""
        yield f"{money(status.cost)}{more}" if status.cost else "cost not known" if more else money(0.0)


def _state(status: RunStatus) -> str:
    from askance.evals.analysis.watch import QUIET

    if status.finished:
        left = f", {status.left:,} left by the budget" if status.left else ""
        return f"Finished {status.finished}{left}."
    parts = [] if status.per_minute is None else [f"{status.per_minute:,.1f} {status.noun}s a minute"]
    minutes = status.minutes_left
    if minutes is not None:
        parts.append(f"about {60 * minutes:.0f} s left" if minutes < 2 else f"about {minutes:.0f} min left")
    if status.quiet > QUIET:
        parts.append(f"nothing written for {status.quiet / 60:.0f} min")
    if status.abandoned:
        parts.append("nobody seems to write it any more, and the command that began it goes on with it")
    return f"Not finished{': ' if parts else ''}{', '.join(parts)}."


def _first_line(text: str) -> str:
    """The first line of a text, as far as there is room for it."""
    return shortened(" ".join(text.split()), 120)
