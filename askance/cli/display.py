"""What a run prints while it goes on: a card or a line for each picture, and a progress bar."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askance.cli.cards import card, plain
from askance.cli.output import table_of
from askance.cli.progress import Progress, calls_state
from askance.models.counters import counts_text
from askance.terminal import printable_json

if TYPE_CHECKING:
    from rich.console import Console

    from askance.cli.tally import Tally
    from askance.models import Counters, Engine


class Show:
    """Prints each reading in its form as it comes, and says how far the run is.

    Args:
        total: how many pictures there are.
        as_json: a line of JSON each, and nothing else on stdout.
        tally: the counts that stand beside the progress.
        engine: of the run, whose models on this machine say what they do.
    """

    def __init__(self, total: int, *, as_json: bool, tally: Tally, engine: Engine | None = None) -> None:
        self.outcomes: Counter[str] = Counter()
        self.unanswered: list[Mapping[str, Any]] = []
        self._total = total
        self._json = as_json
        self._tally = tally
        self._terminal = _console(stderr=False) if sys.stdout.isatty() else None
        # On the terminal of the cards, if they have one, so that the two know of each other.
        self._progress = Progress("images", total, state=calls_state(tally, engine), console=self._terminal)

    def reading(
        self, line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None = None
    ) -> None:
        """Prints one reading."""
        self.outcomes[line["outcome"]] += 1
        if line["outcome"] != "answered":
            self.unanswered.append(line)
        if self._json:
            self._print(json_text(line))
        elif self._terminal is not None:
            self._terminal.print(card(line, options, truth))
        else:
            self._print(plain(line, options, truth) + "\n")
        self._progress.update(self.outcomes.total())

    def _print(self, text: str) -> None:
        if self._terminal is not None:  # so that the bar below is drawn anew; nothing is wrapped
            self._terminal.out(text, highlight=False)
        else:
            print(text, flush=True)

    @property
    def calls(self) -> str:
        """The counts of calls, in words."""
        return str(self._tally)

    def close(self) -> None:
        """Says no more of the progress."""
        self._progress.close()

    def summary(self, counts: Mapping[str, Counters]) -> None:
        """Says on stderr what came out, and lists the pictures without an answer.

        Args:
            counts: what models on this machine computed, by name.
        """
        self.close()
        if self.unanswered:
            print(f"\n{table_of(self.unanswered)}\n", file=sys.stderr)
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        done = f"{sum(self.outcomes.values()):,} of {self._total:,} images: {outcomes or 'none'}"
        print("\n".join([done, str(self._tally), *counts_text(counts)]), file=sys.stderr)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


def json_text(line: Mapping[str, Any]) -> str:
    """`line` as one line of JSON in which nothing can reach a terminal's controls or break an encoding."""
    text = (_encode if _speaks_unicode() else _encode_ascii)(line)
    return printable_json(text)


_encode, _encode_ascii = (json.JSONEncoder(ensure_ascii=ascii_only).encode for ascii_only in (False, True))


def _speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") in {"utf8", "utf8sig"}
