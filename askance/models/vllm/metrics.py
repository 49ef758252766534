"""Look-ups and hits of vLLM's caches, read from its metrics; and a warning where they never hit.

The names are those of its page `/metrics`: <https://docs.vllm.ai/en/latest/design/metrics/>.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from askance.chat import canonical_json
from askance.models.counters import Counters
from askance.models.vllm.payload import cache_name

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse

REPEATED = 4
"""Least number of prompts that begin as an earlier one did for a warning that the cache never hit."""

UNKNOWN = frozenset({"batches", "encodes", "halved", "prefix_computed"})
"""Counts that vLLM does not give."""

_log = logging.getLogger("askance")

MetricSample: TypeAlias = tuple[str, Mapping[str, str], float]
"""Name without `vllm:` and `_total`, labels, value."""

_LINE = re.compile(r"vllm:(\w+?)(?:_total)?(?:\{(.*)\})? ([-+\d.eE]+|NaN)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheHits:
    """Lookups in the caches since the engine began, and those that hit."""

    tokens: int = 0
    """Tokens of prompts that were looked up."""
    tokens_hit: int = 0
    pictures: int | None = None
    """Pictures that were looked up; None where there is no such cache."""
    pictures_hit: int = 0
    block: int | None = None
    """Tokens of a block; prefixes are kept in whole blocks only."""
    shares: bool | None = None
    """Whether prefixes are kept at all; None is not known."""

    def __sub__(self, earlier: CacheHits) -> CacheHits:
        """What came after `earlier`."""
        return self._with(earlier, -1)

    def __add__(self, earlier: CacheHits) -> CacheHits:
        return self._with(earlier, 1)

    def _with(self, other: CacheHits, sign: int) -> CacheHits:
        return replace(
            self,
            tokens=self.tokens + sign * other.tokens,
            tokens_hit=self.tokens_hit + sign * other.tokens_hit,
            pictures=None if self.pictures is None else self.pictures + sign * (other.pictures or 0),
            pictures_hit=self.pictures_hit + sign * other.pictures_hit,
        )


def metric_samples(page: str) -> list[MetricSample]:
    """The metrics of vLLM on the page of a server."""
    matches = (_LINE.fullmatch(line.strip()) for line in page.splitlines() if line.startswith("vllm:"))
    return [
        (match[1], dict(_LABEL.findall(match[2] or "")), float(match[3]))
        for match in matches
        if match is not None and match[3] != "NaN"
    ]


def cache_hits(samples: Iterable[MetricSample]) -> CacheHits | None:
    """The sums over all engines; None where the metrics say nothing of caches."""
    sums: dict[str, float] = {}
    config: Mapping[str, str] = {}
    for name, labels, value in samples:
        sums[name] = sums.get(name, 0.0) + value
        if name == "cache_config_info":
            config = labels
    if "prefix_cache_queries" not in sums:
        return None
    block = config.get("block_size", "")
    return CacheHits(
        tokens=int(sums["prefix_cache_queries"]),
        tokens_hit=int(sums.get("prefix_cache_hits", 0)),
        pictures=int(sums["mm_cache_queries"]) if "mm_cache_queries" in sums else None,
        pictures_hit=int(sums.get("mm_cache_hits", 0)),
        block=int(block) if block.isdigit() else None,
        shares={"True": True, "False": False}.get(config.get("enable_prefix_caching", "")),
    )


class CacheMonitor:
    """Counts the requests of a model and the hits of its caches, and warns where they never hit.

    Args:
        name: of the model, for the warning.
        own: whether askance set the engine up.
        share: whether prefixes are to be kept; where the user does not want that, nothing is missing.
    """

    def __init__(self, name: str, *, own: bool, share: bool) -> None:
        self._name = name
        self._own = own
        self._share = share
        self._counters = Counters(unknown=UNKNOWN | {"found"})
        self._hits: CacheHits | None = None
        self._beginnings: Counter[str] = Counter()
        self._pictures: Counter[str] = Counter()
        self._longest = 0
        self._warned: set[str] = set()

    @property
    def counters(self) -> Counters:
        """A copy of the counts since the model was made."""
        return replace(self._counters)

    def count(self, request: ChatRequest, response: ChatResponse) -> None:
        """Counts an answer."""
        counters, usage = self._counters, response.usage
        counters.answers += 1
        counters.pictures += len(request.images)
        counters.prompt += usage.input or 0
        counters.written += usage.output or 0
        counters.prefix_reused += usage.cached or 0
        self._longest = max(self._longest, usage.input or 0)
        self._pictures.update(map(cache_name, request.images))
        beginning = (part for message in request.messages[:1] for part in message.parts[:1])
        self._beginnings.update(canonical_json(part.canonical()) for part in beginning)

    def add(self, fresh: CacheHits) -> None:
        """Adds what the caches did since the last time."""
        self._hits = fresh if self._hits is None else fresh + self._hits
        if fresh.pictures is not None:
            self._counters.unknown = UNKNOWN
            self._counters.found += fresh.pictures_hit

    def warn(self) -> None:
        """Warns once, and says why, where a cache never hit although something was asked again."""
        begun, seen = _repeated(self._beginnings), _repeated(self._pictures)
        reused = self._counters.prefix_reused or (0 if self._hits is None else self._hits.tokens_hit)
        if self._share and begun >= REPEATED and not reused:
            why = _why_no_prefix(longest=self._longest, hits=self._hits, own=self._own)
            self._warn(
                "tokens",
                f"0 % of {self._counters.prompt:,} prompt tokens were found computed although {begun} prompts began as "
                f"others did: {why}",
            )
        if self._hits is not None and seen >= REPEATED and not self._counters.found:
            self._warn(
                "pictures",
                f"0 % of {self._counters.pictures} pictures were found prepared although {seen} had been asked about "
                f"before: {_why_no_picture(self._hits, own=self._own)}",
            )

    def _warn(self, cache: str, words: str) -> None:
        if cache not in self._warned:
            self._warned.add(cache)
            _log.warning("%s: %s", self._name, words)


def _repeated(counts: Counter[str]) -> int:
    return sum(count - 1 for count in counts.values())


def _why_no_prefix(*, longest: int, hits: CacheHits | None, own: bool) -> str:
    """Why no beginning of a prompt was found computed, and the way out.

    Args:
        longest: tokens of the longest prompt.
        hits: what is known of the caches.
        own: whether askance set the engine up.
    """
    if hits is not None and hits.shares is False:
        way = "set `share = true`" if own else "start the server with --enable-prefix-caching"
        return f"its prefix cache is off: {way}."
    if hits is not None and hits.block is not None and longest < hits.block:
        way = "`vllm = { engine = { block_size = 16 } }`" if own else "--block-size"
        return f"it keeps whole blocks of {hits.block} tokens and no prompt had more than {longest:,}: set {way}."
    block = "a block" if hits is None or hits.block is None else f"a block of {hits.block} tokens"
    more = "`cache` in its `vllm` settings" if own else "its memory for keys and values"
    return (
        f"the prompts began alike for less than {block}, came before the first of them was read (ask fewer at once), "
        f"or were pushed out before the next came (raise {more})."
    )


def _why_no_picture(hits: CacheHits, *, own: bool) -> str:
    """Why no picture was found prepared, and the way out."""
    if not hits.pictures:
        way = "`vllm = { engine = { mm_processor_cache_gb = 4 } }`" if own else "--mm-processor-cache-gb 4"
        return f"its cache of pictures is off: set {way}."
    return "its cache of pictures is too small for them: raise `mm_processor_cache_gb`."
