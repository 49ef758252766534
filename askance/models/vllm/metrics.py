"""What vLLM's caches were asked and had: from its metrics to counts, and to a warning where they never hit.

The names are those of its page `/metrics`: <https://docs.vllm.ai/en/latest/design/metrics/>.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

Sample: TypeAlias = tuple[str, Mapping[str, str], float]
"""Name without `vllm:` and `_total`, labels, value."""

_LINE = re.compile(r"vllm:(\w+?)(?:_total)?(?:\{(.*)\})? ([-+\d.eE]+|NaN)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What the caches were asked since the engine began, and what they had."""

    tokens: int = 0
    """Tokens of prompts that were looked up."""
    tokens_hit: int = 0
    pictures: int | None = None
    """Pictures that were looked up; None where there is no such cache."""
    pictures_hit: int = 0
    block: int | None = None
    """Tokens that are kept together: shorter beginnings are not."""
    shares: bool | None = None
    """Whether beginnings are kept at all; None is not said."""

    def since(self, earlier: Hits) -> Hits:
        """What came after `earlier`."""
        return self._with(earlier, -1)

    def and_then(self, later: Hits) -> Hits:
        """Both together."""
        return later._with(self, 1)

    def _with(self, other: Hits, sign: int) -> Hits:
        return replace(
            self,
            tokens=self.tokens + sign * other.tokens,
            tokens_hit=self.tokens_hit + sign * other.tokens_hit,
            pictures=None if self.pictures is None else self.pictures + sign * (other.pictures or 0),
            pictures_hit=self.pictures_hit + sign * other.pictures_hit,
        )


def samples(page: str) -> list[Sample]:
    """What the page of a server says about vLLM."""
    found = (_LINE.fullmatch(line.strip()) for line in page.splitlines() if line.startswith("vllm:"))
    return [
        (match[1], dict(_LABEL.findall(match[2] or "")), float(match[3]))
        for match in found
        if match is not None and match[3] != "NaN"
    ]


def hits(found: Iterable[Sample]) -> Hits | None:
    """The sums over all engines; None where nothing is said of caches."""
    sums: dict[str, float] = {}
    config: Mapping[str, str] = {}
    for name, labels, value in found:
        sums[name] = sums.get(name, 0.0) + value
        if name == "cache_config_info":
            config = labels
    if "prefix_cache_queries" not in sums:
        return None
    block = config.get("block_size", "")
    return Hits(
        tokens=int(sums["prefix_cache_queries"]),
        tokens_hit=int(sums.get("prefix_cache_hits", 0)),
        pictures=int(sums["mm_cache_queries"]) if "mm_cache_queries" in sums else None,
        pictures_hit=int(sums.get("mm_cache_hits", 0)),
        block=int(block) if block.isdigit() else None,
        shares={"True": True, "False": False}.get(config.get("enable_prefix_caching", "")),
    )


def nothing_reused(*, longest: int, hit: Hits | None, own: bool) -> str:
    """Why no beginning of a prompt was found computed, and the way out.

    Args:
        longest: tokens of the longest prompt.
        hit: what is known of the caches.
        own: whether askance set the engine up.
    """
    if hit is not None and hit.shares is False:
        way = "set `share = true`" if own else "start the server with --enable-prefix-caching"
        return f"its prefix cache is off: {way}."
    if hit is not None and hit.block is not None and longest < hit.block:
        way = "`vllm = { engine = { block_size = 16 } }`" if own else "--block-size"
        return f"it keeps whole blocks of {hit.block} tokens and no prompt had more than {longest:,}: set {way}."
    block = "a block" if hit is None or hit.block is None else f"a block of {hit.block} tokens"
    more = "`cache` in its `vllm` settings" if own else "its memory for keys and values"
    return (
        f"the prompts began alike for less than {block}, came before the first of them was read (ask fewer at once), "
        f"or were pushed out before the next came (raise {more})."
    )


def no_picture_found(hit: Hits, *, own: bool) -> str:
    """Why no picture was found prepared, and the way out."""
    if not hit.pictures:
        way = "`vllm = { engine = { mm_processor_cache_gb = 4 } }`" if own else "--mm-processor-cache-gb 4"
        return f"its cache of pictures is off: set {way}."
    return "its cache of pictures is too small for them: raise `mm_processor_cache_gb`."
