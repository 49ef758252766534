"""What a run prints while it goes on: a card or a line for each picture, and a progress bar."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askance.cli.cards import card, plain
from askance.cli.ending import table_of
from askance.models.counting import counts_text
from askance.replay import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from askance.cli.tally import Tally
    from askance.models import Counters


class Show:
    """Prints each reading in its form as it comes, and a progress bar where a terminal watches.

    Args:
        total: how many pictures there are.
        as_json: a line of JSON each, and nothing else on stdout.
        tally: the counts that the bar shows.
    """

    def __init__(self, total: int, *, as_json: bool, tally: Tally) -> None:
        self.outcomes: Counter[str] = Counter()
        self.unanswered: list[Mapping[str, Any]] = []
        self.counts: Mapping[str, Counters] = {}
        """What models on this machine computed, by name."""
        self._total = total
        self._json = as_json
        self._tally = tally
        self._terminal = _console(stderr=False) if sys.stdout.isatty() else None
        self._bar = self._progress() if sys.stderr.isatty() else None

    def reading(
        self, line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None = None
    ) -> None:
        """Prints one reading and moves the bar on."""
        self.outcomes[line["outcome"]] += 1
        if line["outcome"] != "answered":
            self.unanswered.append(line)
        if self._json:
            self._print(json_text(line))
        elif self._terminal is not None:
            self._terminal.print(card(line, options, truth))
        else:
            self._print(plain(line, options, truth) + "\n")
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0])

    def _print(self, text: str) -> None:
        if self._terminal is not None:  # so that the bar below is drawn anew; nothing is wrapped
            self._terminal.out(text, highlight=False)
        else:
            print(text, flush=True)

    @property
    def calls(self) -> str:
        """The counts of calls, in words."""
        return str(self._tally)

    @property
    def nothing_asked(self) -> bool:
        """Whether no call has been answered yet, from the endpoint or from the records."""
        return self._tally.made + self._tally.replayed == 0

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def summary(self) -> None:
        """Says on stderr what came out, and lists the pictures without an answer."""
        self.close()
        if self.unanswered:
            print(f"\n{table_of(self.unanswered)}\n", file=sys.stderr)
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        done = f"{sum(self.outcomes.values()):,} of {self._total:,} images: {counts or 'none'}"
        print("\n".join([done, str(self._tally), *counts_text(self.counts)]), file=sys.stderr)

    def _progress(self) -> Progress:
        """A bar on the terminal of the cards, if they have one, so that the two know of each other."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
        from rich.text import Text

        tally = self._tally

        class Calls(ProgressColumn):
            """The counts of calls, as they are when the bar is drawn."""

            def render(self, task: Task) -> Text:  # noqa: ARG002  # rich's signature
                return Text(f"· {tally.short} ·", style="dim")

        bar = Progress(
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            Calls(),
            TimeRemainingColumn(compact=True),
            console=self._terminal or _console(stderr=True),
            transient=True,
            redirect_stdout=False,  # rich would send what is meant for a pipe to the terminal
        )
        bar.add_task("", total=self._total)
        bar.start()
        return bar


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


def json_text(line: Mapping[str, Any]) -> str:
    """`line` as one line of JSON in which nothing can reach a terminal's controls or break an encoding."""
    text = (_encode if _speaks_unicode() else _encode_ascii)(line)
    if text.isascii() and "\x7f" not in text:  # other controls are escaped already
        return text
    if visible(text) == text:
        return text
    return "".join(json.dumps(mark)[1:-1] if visible(mark) != mark else mark for mark in text)


_encode, _encode_ascii = (json.JSONEncoder(ensure_ascii=ascii_only).encode for ascii_only in (False, True))


def _speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") in {"utf8", "utf8sig"}
