"""What a run prints while it goes on, and what it says at the end."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askance.cli.cards import card, plain
from askance.replay import visible

if TYPE_CHECKING:
    from askance.models import CallEvent

_SHOWN_UNANSWERED = 20


class Tally:
    """Counts calls as an observer of the engine; steps come from several threads."""

    def __init__(self) -> None:
        self.made = self.replayed = self.failed = self.probes = self.tokens = 0
        self.cost = 0.0
        self.unpriced: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, event: CallEvent) -> None:
        with self._lock:
            if event.phase == "replayed":
                self.replayed += 1
            elif event.phase in {"answered", "probed"}:
                self._spent(event)
            elif event.phase == "failed":
                self.failed += 1

    def _spent(self, event: CallEvent) -> None:
        if event.phase == "probed":
            self.probes += 1
        else:
            self.made += 1
        self.tokens += (event.usage.input or 0) + (event.usage.output or 0)
        if event.cost is None:
            self.unpriced.add(str(event.model))
        else:
            self.cost += event.cost

    def __str__(self) -> str:
        parts = [f"{self.made} calls made", f"{self.replayed} replayed"]
        if self.probes:
            parts.append(f"{self.probes} to see what the endpoint can do")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.made:
            parts.append(f"{self.tokens:,} tokens")
            parts.append(f"${self.cost:.4f}" if not self.unpriced else "cost not known (no price for the model is set)")
        return " · ".join(parts)


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
        self._total = total
        self._json = as_json
        self._tally = tally
        self._cards = not as_json and sys.stdout.isatty()
        self._bar, self._task = self._progress() if sys.stderr.isatty() else (None, None)

    def reading(
        self, line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None = None
    ) -> None:
        """Prints one reading and moves the bar on."""
        self.outcomes[line["outcome"]] += 1
        if line["outcome"] != "answered":
            self.unanswered.append(line)
        if self._bar is not None:
            self._bar.update(self._task, advance=1, calls=str(self._tally))
        if self._json:
            print(json.dumps(line, ensure_ascii=False), flush=True)
        elif self._cards:
            self._console().print(card(line, options, truth))
        else:
            print(plain(line, options, truth) + "\n", flush=True)

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

    def summary(self) -> None:
        """Says on stderr what came out, and lists the pictures without an answer."""
        self.close()
        if self.unanswered:
            self._list_unanswered()
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        print(
            f"{sum(self.outcomes.values())} of {self._total} images: {counts or 'none'} · {self._tally}",
            file=sys.stderr,
        )

    def _list_unanswered(self) -> None:
        print("\nWithout an answer:", file=sys.stderr)
        for line in self.unanswered[:_SHOWN_UNANSWERED]:
            reason = visible(line["reason"] or "").split("\n")
            print(f"  {visible(line['image'])}  {line['outcome']}: {reason[0]}", file=sys.stderr)
            for more in reason[1:]:
                print(f"      {more}", file=sys.stderr)
        if len(self.unanswered) > _SHOWN_UNANSWERED:
            print(f"  … and {len(self.unanswered) - _SHOWN_UNANSWERED} more", file=sys.stderr)
        ways = {_WAYS_OUT[line["outcome"]] for line in self.unanswered if line["outcome"] in _WAYS_OUT}
        for way in sorted(ways):
            print(f"  → {way}", file=sys.stderr)
        print(file=sys.stderr)

    def _console(self) -> Any:
        from rich.console import Console

        return self._bar.console if self._bar is not None and sys.stdout.isatty() else Console()

    def _progress(self) -> tuple[Any, Any]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("images · {task.fields[calls]} ·"),
            TimeRemainingColumn(compact=True),
        )
        bar = Progress(*columns, console=Console(stderr=not self._cards), transient=True)
        bar.start()
        return bar, bar.add_task("", total=self._total, calls=str(self._tally))


_WAYS_OUT = {
    "invalid": "`--retry invalid` asks again for replies that could not be read; `--json` shows them.",
    "refused": "`--retry refused` asks again for what the model declined.",
    "truncated": "`--retry truncated`, with a larger `max_tokens` in askance.toml, asks again for what was cut off.",
    "failed": "The same command tries again for what failed; what is answered is on record and costs nothing.",
}
