"""What is sent to be let in, kept out of all that comes back: an endpoint may repeat it wherever a word may stand."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterator
from typing import Any, TypeVar, cast

T = TypeVar("T")

SHORTEST_SECRET = 8
"""Characters; to blank out less would blank out words."""

BLANK = "[key]"
"""What stands where an endpoint repeats a key."""


class Secrets:
    """What must not come back out of a reply; shows nowhere itself, not even among the locals of a traceback.

    Args:
        values: keys and secret headers, in any order; those shorter than `SHORTEST_SECRET` are left alone.
    """

    __slots__ = ("_bytes", "_longest", "_text", "_values")

    def __init__(self, values: Collection[str] = ()) -> None:
        self._values = frozenset(value for value in values if len(value) >= SHORTEST_SECRET)
        # The longest first: one may be the beginning of another.
        forms = sorted({form for value in self._values for form in _forms(value)}, key=len, reverse=True)
        self._longest = max((len(form.encode()) for form in forms), default=0)
        self._text = re.compile("|".join(map(re.escape, forms)))
        self._bytes = re.compile(b"|".join(re.escape(form.encode()) for form in forms))

    def __bool__(self) -> bool:
        return bool(self._values)

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets(self._values | other._values)

    def blanked(self, data: bytes) -> bytes:
        """`data` with every secret in it blanked out, as it is or escaped as JSON does."""
        return self._bytes.sub(BLANK.encode(), data) if self else data

    def cleared(self, value: T) -> T:
        """`value` with every secret in its texts blanked out, however deep they stand in dictionaries and lists."""
        return cast("T", self._cleared(value)) if self else value

    def stand_in(self, text: str) -> bool:
        """Whether `text` holds a secret."""
        return bool(self) and self._text.search(text) is not None

    async def stream(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """`chunks` with every secret blanked out, also one that is cut by the end of a chunk."""
        held = b""
        async for chunk in chunks:
            held += chunk
            cut = self._cut(held)
            yield self.blanked(held[:cut])
            held = held[cut:]
        yield self.blanked(held)

    def _cut(self, data: bytes) -> int:
        """Where `data` may be divided: what stands after it could be the beginning of a secret, and is none yet."""
        safe = max(0, len(data) - self._longest + 1) if self else len(data)
        return max([safe, *(found.end() for found in self._found(data) if found.start() < safe)])

    def _found(self, data: bytes) -> Iterator[re.Match[bytes]]:
        return self._bytes.finditer(data) if self else iter(())

    def _cleared(self, value: object) -> object:
        if isinstance(value, str):
            return self._text.sub(BLANK, value)
        if isinstance(value, dict):
            form = cast("dict[Any, Any]", value)
            return {self._cleared(name): self._cleared(inner) for name, inner in form.items()}
        if isinstance(value, (list, tuple)):
            items = [self._cleared(inner) for inner in cast("Collection[object]", value)]
            return items if isinstance(value, list) else tuple(items)
        return value


def _forms(value: str) -> set[str]:
    """`value` as it may stand in a text or, escaped in one way or another, in JSON."""
    escaped = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return escaped | {form.replace("/", "\\/") for form in escaped}
