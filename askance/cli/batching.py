"""`--batch`: what is said while batches are under way."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.replay import visible

if TYPE_CHECKING:
    from askance.models.batch.policy import BatchNews

MAY_BE_CLOSED = (
    "This terminal may be closed: the same command goes on where this one stopped, and pays for nothing twice."
)


class Status:
    """Says on stderr what is new about a run's batches, and nothing twice."""

    def __init__(self) -> None:
        self._said = ""
        self._closing = True

    def __call__(self, news: BatchNews) -> None:
        if news.phase == "trouble":
            self._say(f"Waiting: {visible(news.words)}")
        elif news.phase in {"sent", "waiting", "settled"} and news.queued:
            batches = ", ".join(map(visible, news.batches[:3])) + (" …" if len(news.batches) > 3 else "")
            where = f" ({batches})" if batches else ""
            self._say(
                f"Round {news.round}: {many(news.queued, 'call')} queued, {news.sent:,} sent in batches, "
                f"{news.done:,} done{where}."
            )
            if self._closing and news.sent:
                self._closing = False
                self._say(MAY_BE_CLOSED)

    def _say(self, words: str) -> None:
        if words != self._said:
            self._said = words
            print(words, file=sys.stderr, flush=True)
