"""What a model of vLLM's was asked, what its caches had, and a word where they never hit."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from askance.chat import canonical_json
from askance.models.counters import Counters
from askance.models.vllm.metrics import Hits, no_picture_found, nothing_reused
from askance.models.vllm.wording import name_of

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse

ENOUGH = 4
"""Prompts that began as one before them did, from which on caches that never hit are worth a word."""

UNTOLD = frozenset({"batches", "encodes", "halved", "prefix_computed"})
"""Counts that vLLM does not tell."""

_log = logging.getLogger("askance")


class Tally:
    """Counts since the model was made.

    Args:
        name: of the model, for the warning.
        own: whether askance set the engine up.
        share: whether beginnings are to be kept; where the user wants that not, nothing is missing.
    """

    def __init__(self, name: str, *, own: bool, share: bool) -> None:
        self._name = name
        self._own = own
        self._share = share
        self._counters = Counters(unknown=UNTOLD | {"found"})
        self._hit: Hits | None = None
        self._begun: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._longest = 0
        self._said: set[str] = set()

    @property
    def counters(self) -> Counters:
        """A copy."""
        return replace(self._counters)

    def answered(self, request: ChatRequest, response: ChatResponse) -> None:
        """Counts an answer."""
        counters, usage = self._counters, response.usage
        counters.answers += 1
        counters.pictures += len(request.images)
        counters.prompt += usage.input or 0
        counters.written += usage.output or 0
        counters.prefix_reused += usage.cached or 0
        self._longest = max(self._longest, usage.input or 0)
        self._seen.update(map(name_of, request.images))
        begun = (part for message in request.messages[:1] for part in message.parts[:1])
        self._begun.update(canonical_json(part.canonical()) for part in begun)

    def measured(self, fresh: Hits) -> None:
        """Takes in what the caches did since they were measured last."""
        self._hit = fresh if self._hit is None else self._hit.and_then(fresh)
        if fresh.pictures is not None:
            self._counters.unknown = UNTOLD
            self._counters.found += fresh.pictures_hit

    def warn(self) -> None:
        """Says once why a cache never hit, where there was something to hit."""
        begun, seen = _again(self._begun), _again(self._seen)
        reused = self._counters.prefix_reused or (0 if self._hit is None else self._hit.tokens_hit)
        if self._share and begun >= ENOUGH and not reused:
            self._say(
                f"0 % of {self._counters.prompt:,} prompt tokens were found computed although {begun} prompts began as "
                f"others did: {nothing_reused(longest=self._longest, hit=self._hit, own=self._own)}"
            )
        if self._hit is not None and seen >= ENOUGH and not self._counters.found:
            self._say(
                f"0 % of {self._counters.pictures} pictures were found prepared although {seen} had been asked about "
                f"before: {no_picture_found(self._hit, own=self._own)}"
            )

    def _say(self, words: str) -> None:
        about = "pictures" if "pictures were" in words else "tokens"
        if about not in self._said:
            self._said.add(about)
            _log.warning("%s: %s", self._name, words)


def _again(counts: Counter[str]) -> int:
    return sum(count - 1 for count in counts.values())
