"""Finding the recorded request that is most like another one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast
from weakref import WeakKeyDictionary
from zlib import crc32

from askance.chat import key_of
from askance.replay.records import Record, RecordKind, Records, model_name
from askance.replay.store import sound

MOST_CANDIDATES = 10_000
"""How many records of a kind are looked at; in a larger store the one that is found need not be the nearest."""

_EDGE = 500
"""Characters looked at of either end of a message."""

_WORDS = 24
"""Words kept of a request, those with the smallest checksums: texts share as many of these as of all their words."""

_WORD = re.compile(r"\w+")

_IMAGES, _MODEL, _REST, _TEXT = 1.5, 0.5, 0.25, 2.0
"""What it counts that two requests agree in a part of them; for the text, as far as they do."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """The little that is compared of a request, so that thousands fit in memory."""

    images: frozenset[str]
    model: str
    rest: str
    words: frozenset[int]

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Sketch:
        images, texts = set[str](), list[str]()
        for part in _parts(request):
            images.add(str(part.get("sha256", "")))
            texts.append(str(part.get("text", "")))
        text = " ".join(f"{text[:_EDGE]} {text[-_EDGE:]}" if len(text) > 2 * _EDGE else text for text in texts)
        words = sorted({crc32(word.encode("utf-8", "surrogatepass")) for word in set(_WORD.findall(text))})
        rest = {name: value for name, value in request.items() if name not in {"model", "messages"}}
        return cls(frozenset(images - {""}), model_name(request), key_of("", rest), frozenset(words[:_WORDS]))

    def likeness(self, other: Sketch) -> float:
        """How much the two agree; the greater the number, the more."""
        either = len(self.words | other.words)
        return (
            _IMAGES * (self.images == other.images)
            + _MODEL * (self.model == other.model)
            + _REST * (self.rest == other.rest)
            + _TEXT * (len(self.words & other.words) / either if either else 1.0)
        )


class Neighbours:
    """Sketches of many records, by the pictures that they speak of."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._by_images: dict[frozenset[str], list[tuple[Sketch, str]]] = defaultdict(list)
        for record in islice(records, MOST_CANDIDATES):
            # A request of another shape is none of ours, and near to nothing.
            with suppress(AttributeError, RecursionError, TypeError, ValueError):
                sketch = Sketch.of(record.request)
                self._by_images[sketch.images].append((sketch, record.key))

    def nearest(self, request: Mapping[str, Any]) -> str | None:
        """Key of the record whose request is most like this one; of equals, the smallest key."""
        sketch = Sketch.of(request)
        likest = _likest(sketch, self._by_images.get(sketch.images, ()))
        if likest is None or likest[0] < _MODEL + _REST + _TEXT:
            # Only now can a record about other pictures be more alike.
            likest = _likest(sketch, (one for some in self._by_images.values() for one in some))
        return None if likest is None else likest[1]


def nearest_key(request: Mapping[str, Any], kind: RecordKind, records: Records) -> str | None:
    """Key of the record of this kind whose request is most like `request`, or None where there is no such record."""
    size = len(records)
    known = _known.setdefault(records, {})
    if kind not in known or known[kind][0] != size:
        known[kind] = size, Neighbours(sound(records, kind))
    return known[kind][1].nearest(request)


_known: WeakKeyDictionary[Records, dict[RecordKind, tuple[int, Neighbours]]] = WeakKeyDictionary()
"""Kept as long as the holder of the records lives and does not grow: one miss is seldom the only one."""


def _likest(sketch: Sketch, candidates: Iterable[tuple[Sketch, str]]) -> tuple[float, str] | None:
    best = max(((sketch.likeness(other), _Last(key)) for other, key in candidates), default=None)
    return None if best is None else (best[0], best[1].key)


@dataclass(frozen=True, slots=True)
class _Last:
    """A key that loses to every smaller one."""

    key: str

    def __lt__(self, other: _Last) -> bool:
        return self.key > other.key


def _parts(request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts of all messages; of a request without messages, its own fields."""
    messages = request.get("messages")
    if not isinstance(messages, list):
        yield {"sha256": request.get("sha256", ""), "text": " ".join(map(str, request.values()))}
        return
    for message in cast("list[Mapping[str, Any]]", messages):
        yield from message.get("parts", ())
