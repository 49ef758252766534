"""Why a request is not on record: the most similar recorded request, and where the two differ."""

from __future__ import annotations

import json
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Any, cast
from weakref import WeakKeyDictionary
from zlib import crc32

from askance.chat import JsonObject, canonical_json, key_of
from askance.errors import ReplayMiss
from askance.replay.record import Record, RecordKind, Records, model_name, plain_object, refuse_damaged
from askance.terminal import printable

CONTEXT = 2
"""Equal lines shown before and after a difference."""

MAX_LINES = 40
"""Longest diff, in lines."""

_WIDTH = 100
"""Longer lines are folded, at the ends of sentences first, before they are compared."""

_WINDOW = 400
"""Lines that are compared, from shortly before the first one that differs."""

_SENTENCE = re.compile(r"(?<=[.!?:;])(?=\s)")

MAX_CANDIDATES = 10_000
"""Most records of a kind that are compared; in a larger store the one that is found need not be the nearest."""

_EDGE = 500
"""Characters that are compared at either end of a message."""

_WORDS = 24
"""Words kept of a request, those with the smallest checksums (MinHash): their overlap estimates that of all words."""

_WORD = re.compile(r"\w+")

_IMAGES, _MODEL, _REST, _TEXT = 1.5, 0.5, 0.25, 2.0
"""Weights of equal images, equal models, an equal rest, and the share of common words in the similarity."""

_TITLES = {
    "model": "the model",
    "messages": "the messages",
    "sampling": "the sampling",
    "response": "the response schema",
    "tools": "the tools",
    "extra": "the provider's extra fields",
    "draw": "the number of the draw",
    "index": "the texts of the index",
    "query": "the query",
    "image": "the picture",
    "how": "how it is searched",
    "settings": "the settings of the search",
    "among": "the texts that it is searched among",
    "k": "how many hits are wanted",
}
"""Parts of a request, in the order in which a person would look for a difference."""


@dataclass(frozen=True, slots=True)
class RequestDifference:
    """A part in which two requests differ."""

    what: str
    """In words: `the text of message 2 (user)`."""
    recorded: str
    """The part as text; empty where there is none."""
    requested: str


def explain_miss(request: Mapping[str, Any], kind: RecordKind, records: Records) -> ReplayMiss:
    """The error that names the recorded request nearest to `request` (in canonical form), and where the two differ.

    Raises:
        StoreError: the records cannot be read.
    """
    request = plain_object(request)
    key = key_of(kind, request)
    opening = f"No {kind} answer is on record for {_request_title(key, request)}"
    nearest = nearest_key(request, kind, records)
    record = None if nearest is None else records.get(nearest)
    if record is None:
        return ReplayMiss(
            f"{opening}: {records.name!r} holds no {kind} records.",
            key=key,
            hint="Name the store that does with ASKANCE_STORE, import a cassette, or record with --mode auto.",
        )
    parts = _differences_or_whole(record.request, request)
    what = parts[0].what if parts else "nothing any more: it was recorded meanwhile"
    also = f" (and in {', '.join(other.what for other in parts[1:])})" if parts[1:] else ""
    return ReplayMiss(
        f"{opening}: the nearest, {_request_title(record.key, record.request)}, differs in {what}{also}.",
        key=key,
        nearest=record.key,
        diff=unified_diff(parts[0], recorded=record.key[:12], requested=key[:12]) if parts else "",
        hint="Undo what changed, or record the answer with --mode auto.",
    )


def explain_difference(record: Record, records: Records) -> str:
    """Why a recorded request has a record of its own: the nearest other record of its kind, and where the two differ.

    Raises:
        StoreError: the records cannot be read.
        DamagedRecord: the record is not what it claims to be.
    """
    refuse_damaged(record)
    since = f" since {record.at}" if record.at else ""
    opening = f"{_request_title(record.key, record.request)} is on record{since}"
    others = Neighbours(other for other in records.readable(record.kind) if other.key != record.key)
    nearest = others.nearest(record.request)
    other = None if nearest is None else records.get(nearest)
    if other is None:
        return f"{opening}; {records.name!r} holds no other {record.kind} record."
    parts = _differences_or_whole(other.request, record.request)
    if not parts:
        return f"{opening}.\n{_request_title(other.key, other.request)} asks the very same: one of the two is damaged."
    also = f" (and in {', '.join(more.what for more in parts[1:])})" if parts[1:] else ""
    diff = unified_diff(parts[0], recorded=other.key[:12], requested=record.key[:12])
    title = _request_title(other.key, other.request)
    return f"{opening}.\nThe nearest other one, {title}, differs in {parts[0].what}{also}.\n{diff}"


def _differences_or_whole(recorded: Mapping[str, Any], request: Mapping[str, Any]) -> list[RequestDifference]:
    """The differences; one of the whole where the record does not have the form of a request."""
    try:
        return list(differences(recorded, request))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return [RequestDifference("all of it: what is on record has the form of no request", "", "")]


def differences(recorded: Mapping[str, Any], request: Mapping[str, Any]) -> Iterator[RequestDifference]:
    """The parts in which two canonical requests differ: the model, the messages, then everything else."""
    for name in dict.fromkeys((*_TITLES, *sorted({*recorded, *request}))):
        old, new = ({name: side[name]} if name in side else {} for side in (recorded, request))
        if _same(old, new):
            continue
        if name == "messages" and old and new:
            yield from _message_differences(old[name], new[name])
        else:
            what = _TITLES.get(name, repr(name))
            yield RequestDifference(what, *(_as_text(side[name]) if side else "" for side in (old, new)))


def unified_diff(difference: RequestDifference, *, recorded: str, requested: str) -> str:
    """The first stretch of a difference as a unified_diff diff, safe to show on a terminal; empty if there is none."""
    old, new = _printed_lines(difference.recorded), _printed_lines(difference.requested)
    changed = next((at for at, (a, b) in enumerate(zip_longest(old, new)) if a != b), None)
    if changed is None:
        return ""
    start = max(0, changed - CONTEXT)
    old, new = old[start : start + _WINDOW], new[start : start + _WINDOW]
    group = next(iter(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT)))
    (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
    lines = [f"--- recorded {recorded}", f"+++ asked {requested}"]
    lines += [f"@@ -{_span(start + a, b - a)} +{_span(start + c, d - c)} @@"]
    for tag, a, b, c, d in group:
        lines += [f" {line}" for line in old[a:b]] if tag == "equal" else []
        lines += [f"-{line}" for line in old[a:b]] if tag in {"delete", "replace"} else []
        lines += [f"+{line}" for line in new[c:d]] if tag in {"insert", "replace"} else []
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"… and {len(lines) - MAX_LINES} lines more"]
    return "\n".join(lines)


def _message_differences(recorded: Sequence[JsonObject], request: Sequence[JsonObject]) -> Iterator[RequestDifference]:
    for number, (old, new) in enumerate(zip_longest(recorded, request), 1):
        if _same(old, new):
            continue
        where = f"message {number} ({(new or old or {}).get('role')})"
        if old and new and old.get("role") == new.get("role"):
            yield from _part_differences(old, new, where)
        else:
            yield RequestDifference(where, *("" if side is None else _as_text(side) for side in (old, new)))


def _part_differences(recorded: JsonObject, request: JsonObject, where: str) -> Iterator[RequestDifference]:
    """Text, pictures, and what else a message may hold, in this order; at last the order of its parts."""
    splits = [_split(message) for message in (recorded, request)]
    before = False
    for name, old, new in zip(("text", "image", "preparation of the image", "tool calls"), *splits, strict=True):
        if old != new:
            before = True
            yield RequestDifference(f"the {name} of {where}", old, new)
    if not before:
        yield RequestDifference(
            f"the order of the parts of {where}", *(_as_text(message.get("parts")) for message in (recorded, request))
        )


def _split(message: JsonObject) -> tuple[str, str, str, str]:
    parts: list[JsonObject] = message.get("parts", [])
    pictures = [part for part in parts if part.get("type") == "image"]
    rest = {name: value for name, value in message.items() if name not in {"role", "parts"}}
    return (
        "\n".join(str(part.get("text", "")) for part in parts if part.get("type") != "image"),
        "\n".join(str(picture.get("sha256")) for picture in pictures),
        "\n".join(_as_text({**picture, "sha256": "…"}) for picture in pictures),
        _as_text(rest) if rest else "",
    )


def _request_title(key: str, request: Mapping[str, Any]) -> str:
    """Short key, model and first words."""
    words = ""
    with suppress(AttributeError, TypeError):  # the form of no request
        words = textwrap.shorten(next(_texts(request), "")[:500], 48, placeholder="…")
    about = ", ".join(part for part in (printable(model_name(request)), repr(words) if words else "") if part)
    return f"{key[:12]} ({about})" if about else key[:12]


def _texts(request: Mapping[str, Any]) -> Iterator[str]:
    """The query of a search, or the texts of the messages; the system's, which many requests share, come last."""
    if query := request.get("query"):
        yield str(query)
    messages: Sequence[JsonObject] = request.get("messages", ())
    for message in sorted(messages, key=lambda message: message.get("role") == "system"):
        yield from (str(part["text"]) for part in message.get("parts", ()) if part.get("text"))


def _same(recorded: object, request: object) -> bool:
    return canonical_json(recorded) == canonical_json(request)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)


def _printed_lines(text: str) -> list[str]:
    return [printable(piece) for line in text.split("\n") for piece in _folded(line)]


def _folded(line: str) -> Iterator[str]:
    if len(line) <= _WIDTH:
        yield line
        return
    for sentence in _SENTENCE.split(line):
        yield from textwrap.wrap(sentence, _WIDTH, drop_whitespace=False, replace_whitespace=False, expand_tabs=False)


def _span(start: int, length: int) -> str:
    """A range of lines as unified diffs write it; an empty range names the line before it."""
    return f"{start + 1 if length else start},{length}"


@dataclass(frozen=True, slots=True)
class RequestSketch:
    """A summary of a request for comparison, small enough for thousands in memory."""

    images: frozenset[str]
    model: str
    rest: str
    words: frozenset[int]

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> RequestSketch:
        images, texts = set[str](), list[str]()
        for part in _all_parts(request):
            images.add(str(part.get("sha256", "")))
            texts.append(str(part.get("text", "")))
        text = " ".join(f"{text[:_EDGE]} {text[-_EDGE:]}" if len(text) > 2 * _EDGE else text for text in texts)
        words = sorted({crc32(word.encode("utf-8", "surrogatepass")) for word in set(_WORD.findall(text))})
        rest = {name: value for name, value in request.items() if name not in {"model", "messages"}}
        return cls(frozenset(images - {""}), model_name(request), key_of("", rest), frozenset(words[:_WORDS]))

    def similarity(self, other: RequestSketch) -> float:
        """The similarity of two requests, 0 to 4.25; larger is more similar."""
        either = len(self.words | other.words)
        return (
            _IMAGES * (self.images == other.images)
            + _MODEL * (self.model == other.model)
            + _REST * (self.rest == other.rest)
            + _TEXT * (len(self.words & other.words) / either if either else 1.0)
        )


class Neighbours:
    """An index of many records for a search of the nearest, by the pictures that they refer to."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._by_images: dict[frozenset[str], list[tuple[RequestSketch, str]]] = defaultdict(list)
        for record in islice(records, MAX_CANDIDATES):
            # What does not have the form of a request is similar to none.
            with suppress(AttributeError, RecursionError, TypeError, ValueError):
                sketch = RequestSketch.of(record.request)
                self._by_images[sketch.images].append((sketch, record.key))

    def nearest(self, request: Mapping[str, Any]) -> str | None:
        """Key of the record whose request is most similar; of equals, the smallest key."""
        sketch = RequestSketch.of(request)
        best = _most_similar(sketch, self._by_images.get(sketch.images, ()))
        if best is None or best[0] < _MODEL + _REST + _TEXT:
            # A record about other pictures can be more similar only in this case.
            best = _most_similar(sketch, (one for some in self._by_images.values() for one in some))
        return None if best is None else best[1]


def nearest_key(request: Mapping[str, Any], kind: RecordKind, records: Records) -> str | None:
    """Key of the record of this kind whose request is most similar; None where the kind has no record."""
    size = len(records)
    known = _known.setdefault(records, {})
    if kind not in known or known[kind][0] != size:
        known[kind] = size, Neighbours(records.readable(kind))
    return known[kind][1].nearest(request)


_known: WeakKeyDictionary[Records, dict[RecordKind, tuple[int, Neighbours]]] = WeakKeyDictionary()
"""Indexes by holder of records, rebuilt when its size changes: one miss is seldom the only one."""


def _most_similar(sketch: RequestSketch, candidates: Iterable[tuple[RequestSketch, str]]) -> tuple[float, str] | None:
    """Similarity and key of the candidate that is most similar to `sketch`; of equals, the smallest key."""
    best = min(((-sketch.similarity(other), key) for other, key in candidates), default=None)
    return None if best is None else (-best[0], best[1])


def _all_parts(request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts of all messages; of a request without messages, its own fields."""
    messages = request.get("messages")
    if not isinstance(messages, list):
        picture = request.get("image")
        shown: Mapping[str, Any] = cast("Mapping[str, Any]", picture) if isinstance(picture, Mapping) else request
        yield {"sha256": shown.get("sha256", ""), "text": " ".join(map(str, request.values()))}
        return
    for message in cast("list[Mapping[str, Any]]", messages):
        yield from message.get("parts", ())
