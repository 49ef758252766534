"""How far a command is: a bar where a terminal watches, and a line every half minute elsewhere."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from askance.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.progress import Progress as Bar

    from askance.cli.tally import Tally
    from askance.models import Engine

EVERY = 30.0
"""Seconds between two lines where no terminal watches: of a log, one sees that the command lives and where it is."""


class Progress:
    """Says on stderr how far a command is, from the moment it is made until it is closed.

    Args:
        what: what is counted: `images`.
        total: how many there are; None is not known yet.
        state: words that stand beside the count, as they are at the time.
        console: of the terminal on which other things are printed meanwhile; None has none of it.
    """

    def __init__(
        self,
        what: str,
        total: int | None = None,
        *,
        state: Callable[[], str] = str,
        console: Console | None = None,
    ) -> None:
        self._what = what
        self._state = state
        self._done, self._total = 0, total
        self._closed = threading.Event()
        self._bar = self._drawn(console) if sys.stderr.isatty() else None
        if self._bar is None:
            threading.Thread(target=self._say, name="askance-progress", daemon=True).start()

    def update(self, done: int, total: int | None = None) -> None:
        """So many are done."""
        self._done, self._total = done, self._total if total is None else total
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, total=self._total)

    def close(self) -> None:
        """Takes the bar away, or ends the lines; again is harmless."""
        self._closed.set()
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        of = "" if self._total is None else f" of {self._total:,}"
        return printable(" · ".join(part for part in (f"{self._done:,}{of} {self._what}", self._state()) if part))

    def _say(self) -> None:
        while not self._closed.wait(EVERY):
            print(f"askance: {self}", file=sys.stderr, flush=True)

    def _drawn(self, console: Console | None) -> Bar:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            SpinnerColumn,
            Task,
            TimeRemainingColumn,
        )
        from rich.text import Text

        state = self._state

        class State(ProgressColumn):
            """The words, as they are when the bar is drawn."""

            def render(self, task: Task) -> Text:  # noqa: ARG002  # rich's signature
                return Text(f"· {printable(state())} ·", style="dim", no_wrap=True, overflow="ellipsis")

        bar = Progress(
            SpinnerColumn(),  # moves while the first answer is still being written
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            State(),
            TimeRemainingColumn(compact=True),
            console=console or Console(stderr=True),
            transient=True,
            redirect_stdout=False,  # rich would send what is meant for a pipe to the terminal
        )
        bar.add_task("", total=self._total)
        bar.start()
        return bar


def calls_state(tally: Tally, engine: Engine | None = None) -> Callable[[], str]:
    """What models on this machine do just now, and the counts of calls, as `Progress` takes it."""

    def state() -> str:
        doing = engine.doing if engine is not None else ""
        return f"{doing} · {tally.short}" if doing else tally.short

    return state
