"""What is seen of an evaluation while it goes on: done, the running score, outcomes, cost, time left."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from askance.cli.ending import table_of
from askance.evals.tables import shown_figure

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from askance.cli.tally import Tally
    from askance.evals import Run
    from askance.evals.under_way import Progress

_SHARE = 20
"""The running score is worked out again when so many times as long has gone by as that takes."""


class Watching:
    """Draws a bar on stderr where a terminal watches, and nothing in a pipe.

    Args:
        tally: the counts that the bar shows.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._progress: Progress | None = None
        self._score = ""
        self._next = 0.0
        self._terminal = sys.stderr.isatty()
        self._bar: Bar | None = None

    def __call__(self, progress: Progress) -> None:
        self._progress = progress
        if not self._terminal:
            return
        if self._bar is None:
            self._bar = self._drawn(progress.total)
        self._score_anew(progress)
        self._bar.update(self._bar.task_ids[0], completed=progress.done)

    def __str__(self) -> str:
        if self._progress is None:
            return "No sample is done."
        outcomes = _outcomes(self._progress)
        return f"{self._progress.done:,} of {self._progress.total:,} samples: {outcomes or 'none'}"

    @property
    def line(self) -> str:
        """Running score, samples without an answer, calls and cost, as a bar has room for."""
        unanswered = "" if self._progress is None else _outcomes(self._progress, without="answered")
        return " · ".join(part for part in (self._score, unanswered, self._tally.short) if part)

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say_unanswered(self, run: Run) -> None:
        """Lists on stderr the samples without an answer, and the ways out."""
        lines = [_line(answer) for answer in run.answers if not answer.prediction.answered]
        if lines:
            print(f"\n{table_of(lines)}\n", file=sys.stderr)

    def _score_anew(self, progress: Progress) -> None:
        start = time.monotonic()
        if start < self._next:
            return
        figure = progress.running()
        self._score = "" if figure is None else f"{progress.metric} {shown_figure(figure)}"
        end = time.monotonic()
        self._next = end + max(0.5, _SHARE * (end - start))

    def _drawn(self, total: int) -> Bar:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
        from rich.text import Text

        watching = self

        class State(ProgressColumn):
            """Score and counts, as they are when the bar is drawn."""

            def render(self, task: Task) -> Text:  # noqa: ARG002  # rich's signature
                return Text(f"· {watching.line} ·", style="dim")

        bar = Progress(
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            State(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,  # rich would send what is meant for a pipe to the terminal
        )
        bar.add_task("", total=total)
        bar.start()
        return bar


def _outcomes(progress: Progress, *, without: str = "") -> str:
    counts = sorted(progress.outcomes.items())
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts if outcome != without)


def _line(answer: Any) -> dict[str, Any]:
    """An answer as the table of what has none takes it."""
    prediction = answer.prediction
    name = answer.sample.id if not answer.epoch else f"{answer.sample.id} (epoch {answer.epoch})"
    # A solver's own link repeats the prediction, whose reason is the better one.
    links = {name: form for name, form in prediction.links.items() if name != "solver"}
    return {"image": name, "outcome": prediction.outcome, "reason": prediction.reason, "links": links}
