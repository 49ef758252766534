"""What is seen of an evaluation while it goes on: done, the running score, outcomes, cost, time left."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from askance.cli.ending import table_of
from askance.cli.progress import Progress, calls_state
from askance.evals.tables import shown_figure

if TYPE_CHECKING:
    from askance.cli.tally import Tally
    from askance.evals import Run
    from askance.evals.evaluation import Progress as Done
    from askance.models import Engine

_SHARE = 20
"""The running score is worked out again when so many times as long has gone by as that takes."""


class Watching:
    """Says how far an evaluation is, beside its running score.

    Args:
        tally: the counts of calls.
        engine: of the run, whose models on this machine say what they do.
    """

    def __init__(self, tally: Tally, engine: Engine) -> None:
        self._calls = calls_state(tally, engine)
        self._done: Done | None = None
        self._score = ""
        self._next = 0.0
        self._progress = Progress("samples", state=lambda: self.line)

    def __call__(self, done: Done) -> None:
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

    def say_unanswered(self, run: Run) -> None:
        """Lists on stderr the samples without an answer, and the ways out."""
        outcomes = run.totals.get("outcomes", {})
        lines = [_line(answer) for answer in run.unanswered()] if outcomes.keys() - {"answered"} else []
        if lines:
            print(f"\n{table_of(lines)}\n", file=sys.stderr)

    def _score_anew(self, progress: Done) -> None:
        start = time.monotonic()
        if start < self._next:
            return
        figure = progress.running()
        self._score = "" if figure is None else f"{progress.metric} {shown_figure(figure)}"
        end = time.monotonic()
        self._next = end + max(0.5, _SHARE * (end - start))


def _outcomes(progress: Done, *, without: str = "") -> str:
    counts = sorted(progress.outcomes.items())
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts if outcome != without)


def _line(answer: Any) -> dict[str, Any]:
    """An answer as the table of what has none takes it."""
    prediction = answer.prediction
    name = answer.sample.id if not answer.epoch else f"{answer.sample.id} (epoch {answer.epoch})"
    # A solver's own link repeats the prediction, whose reason is the better one.
    links = {name: form for name, form in prediction.links.items() if name != "solver"}
    return {"image": name, "outcome": prediction.outcome, "reason": prediction.reason, "links": links}
