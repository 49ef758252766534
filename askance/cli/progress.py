"""How far a command is: a bar on a terminal, and a line every half minute elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from askance.amounts import first_few, many
from askance.terminal import echo, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress as Bar

    from askance.cli.console import Console
    from askance.cli.tally import Tally
    from askance.evals import Run
    from askance.evals.runner import RunProgress
    from askance.models import Engine
    from askance.models.batch.batches import BatchProgress

EVERY = 30.0
"""Seconds between two lines of a log; a terminal shows a bar instead."""


class Progress:
    """Says on stderr how far a command is, from the moment it is made until it is closed.

    Args:
        what: what is counted: `images`.
        total: how many there are; None is not known yet.
        state: words that stand beside the count, as they are at the time.
        console: on which the command prints other things meanwhile, if there is one.
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
        self._bar = self._new_bar(console) if sys.stderr.isatty() else None
        if self._bar is None:
            threading.Thread(target=self._say, name="askance-progress", daemon=True).start()

    def update(self, done: int, total: int | None = None) -> None:
        """Sets how many are done."""
        self.count(self._what, done, self._total if total is None else total)

    def count(self, what: str, done: int, total: int | None) -> None:
        """Sets what is counted from now on, how many of it are done, and of how many."""
        self._what, self._done, self._total = what, done, total
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, total=self._total)

    def close(self) -> None:
        """Removes the bar, or ends the lines; it may be called again."""
        self._closed.set()
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        of = "" if self._total is None else f" of {self._total:,}"
        return " · ".join(part for part in (f"{self._done:,}{of} {self._what}", self._state()) if part)

    def _say(self) -> None:
        while not self._closed.wait(EVERY):
            echo(f"askance: {self}", err=True)

    def _new_bar(self, console: Console | None) -> Bar:
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

        from askance.cli.console import Console

        state = self._state

        class State(ProgressColumn):
            """The words, as they are when the bar is drawn."""

            def render(self, task: Task) -> Text:  # noqa: ARG002  # rich's signature
                return Text(f"· {printable(state())} ·", style="dim", no_wrap=True, overflow="ellipsis")

        class Left(TimeRemainingColumn):
            """The time that is left, once it can be told."""

            def render(self, task: Task) -> Text:
                left = super().render(task)
                return left if task.time_remaining is None else Text.assemble(left, " left", style=left.style)

        bar = Progress(
            SpinnerColumn(),  # moves while the first answer is still being written
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            State(),
            Left(compact=True),
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


_SCORE_EVERY = 20
"""The running score is computed again after this many times the seconds that it took."""


class EvaluationProgress:
    """Says how far an evaluation is, beside its running score.

    Args:
        tally: the counts of calls.
        engine: of the run, whose models on this machine say what they do.
    """

    def __init__(self, tally: Tally, engine: Engine) -> None:
        self._calls = calls_state(tally, engine)
        self._done: RunProgress | None = None
        self._score = ""
        self._next = 0.0
        self._progress = Progress("samples", state=lambda: self.line)

    def __call__(self, done: RunProgress) -> None:
        self._done = done
        self._score_anew(done)
        self._progress.update(done.done, done.total)

    def __str__(self) -> str:
        if self._done is None:
            return "No sample is done."
        outcomes = _outcomes(self._done)
        return f"{self._done.done:,} of {self._done.total:,} samples: {outcomes or 'none'}"

    @property
    def line(self) -> str:
        """Running score, samples without an answer, calls and cost, as a bar has room for."""
        unanswered = "" if self._done is None else _outcomes(self._done, without="answered")
        return " · ".join(part for part in (self._score, unanswered, self._calls()) if part)

    def close(self) -> None:
        """Says no more of the progress."""
        self._progress.close()

    def _score_anew(self, progress: RunProgress) -> None:
        start = time.monotonic()
        if start < self._next:
            return
        from askance.evals.tables import shown_figure

        figure = progress.running()
        self._score = "" if figure is None else f"{progress.metric} {shown_figure(figure)}"
        end = time.monotonic()
        # The first one loads what computes it, which says nothing of how long the next will take.
        self._next = end + max(0.5, _SCORE_EVERY * (end - start) if self._next else 0.0)


def _outcomes(progress: RunProgress, *, without: str = "") -> str:
    counts = sorted(progress.outcomes.items())
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts if outcome != without)


def say_unanswered(run: Run) -> None:
    """Lists on stderr the samples without an answer, and the ways out."""
    from askance.cli.output import table_of

    outcomes = run.totals.get("outcomes", {})
    lines = [_unanswered(answer) for answer in run.unanswered()] if outcomes.keys() - {"answered"} else []
    if lines:
        echo(f"\n{table_of(lines)}\n", err=True)


def _unanswered(answer: Any) -> dict[str, Any]:
    """The line of a sample without an answer, as `table_of` takes it."""
    prediction = answer.prediction
    name = answer.sample.id if not answer.epoch else f"{answer.sample.id} (epoch {answer.epoch})"
    # A solver's own link repeats the prediction, whose reason is the better one.
    links = {name: form for name, form in prediction.links.items() if name != "solver"}
    return {"image": name, "outcome": prediction.outcome, "reason": prediction.reason, "links": links}


_MAY_BE_CLOSED = (
    "This terminal may be closed: the same command goes on where this one stopped, and pays for nothing twice."
)


class BatchStatus:
    """Says on stderr what is new about a run's batches, and nothing twice."""

    def __init__(self) -> None:
        self._printed = ""
        self._closing = True

    def __call__(self, news: BatchProgress) -> None:
        if news.phase == "trouble":
            self._say(f"Waiting: {news.words}")
        elif news.phase in {"sent", "waiting", "settled"} and news.queued:
            batches = first_few([*map(printable, news.batches)])
            where = f" ({batches})" if batches else ""
            self._say(
                f"Round {news.round}: {many(news.queued, 'call')} queued, {news.sent:,} sent in batches, "
                f"{news.done:,} done{where}."
            )
            if self._closing and news.sent:
                self._closing = False
                self._say(_MAY_BE_CLOSED)

    def _say(self, words: str) -> None:
        if words != self._printed:
            self._printed = words
            echo(words, err=True)
