"""Why a request is not on record: the nearest one that is, and what differs first."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from askance.chat import JsonObject, canonical_json, key_of
from askance.errors import DamagedRecord, ReplayMiss, StoreError
from askance.replay.nearest import Neighbours, nearest_key
from askance.replay.records import Record, RecordKind, Records, model_name, plain_object
from askance.replay.store import DAMAGED_HINT, sound
from askance.replay.verifying import check_record
from askance.terminal import printable

CONTEXT = 2
"""Equal lines shown before and after a difference."""

MOST_LINES = 40
"""Longest diff, in lines."""

_WIDTH = 100
"""Longer lines are folded, at the ends of sentences first, before they are compared."""

_WINDOW = 400
"""Lines compared, from shortly before the first one that differs."""

_SENTENCE = re.compile(r"(?<=[.!?:;])(?=\s)")

_TITLES = {
    "model": "the model",
    "messages": "the messages",
    "sampling": "the sampling",
    "response": "the response schema",
    "tools": "the tools",
    "extra": "the provider's extra fields",
    "draw": "the number of the draw",
}
"""In the order in which a person would look for a difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One part in which two requests differ."""

    what: str
    """In words: `the text of message 2 (user)`."""
    recorded: str
    """The part as text; empty where there is none."""
    asked: str


def explain_miss(request: Mapping[str, Any], kind: RecordKind, records: Records) -> ReplayMiss:
    """The error that says which recorded request is nearest to `request`, in canonical form, and what differs first.

    Raises:
        StoreError: the records cannot be read.
    """
    request = plain_object(request)
    key = key_of(kind, request)
    asked = f"No {kind} answer is on record for {_title(key, request)}"
    nearest = nearest_key(request, kind, records)
    record = None if nearest is None else records.get(nearest)
    if record is None:
        return ReplayMiss(
            f"{asked}: {records.name!r} holds no {kind} records.",
            key=key,
            hint="Name the store that does with ASKANCE_STORE, import a cassette, or record with --mode auto.",
        )
    found = _found(record.request, request)
    what = found[0].what if found else "nothing any more: it was recorded meanwhile"
    also = f" (and in {', '.join(other.what for other in found[1:])})" if found[1:] else ""
    return ReplayMiss(
        f"{asked}: the nearest, {_title(record.key, record.request)}, differs in {what}{also}.",
        key=key,
        nearest=record.key,
        diff=unified(found[0], recorded=record.key[:12], asked=key[:12]) if found else "",
        hint="Undo what changed, or record the answer with --mode auto.",
    )


def explain_difference(record: Record, records: Records) -> str:
    """How a record came to be asked although others are there: the nearest other one of its kind, and what differs.

    Raises:
        StoreError: the records cannot be read.
        DamagedRecord: the record is not what it claims to be.
    """
    try:
        check_record(record)
    except StoreError as error:
        msg = f"The record {record.key[:12]!r} is damaged: {error.message.rstrip('.')}."
        raise DamagedRecord(msg, hint=DAMAGED_HINT) from error
    asked = (
        f"{_title(record.key, record.request)}{f' is on record since {record.at}' if record.at else ' is on record'}"
    )
    others = Neighbours(other for other in sound(records, record.kind) if other.key != record.key)
    nearest = others.nearest(record.request)
    other = None if nearest is None else records.get(nearest)
    if other is None:
        return f"{asked}; {records.name!r} holds no other {record.kind} record."
    found = _found(other.request, record.request)
    if not found:
        return f"{asked}.\n{_title(other.key, other.request)} asks the very same: one of the two is damaged."
    also = f" (and in {', '.join(more.what for more in found[1:])})" if found[1:] else ""
    diff = unified(found[0], recorded=other.key[:12], asked=record.key[:12])
    title = _title(other.key, other.request)
    return f"{asked}.\nThe nearest other one, {title}, differs in {found[0].what}{also}.\n{diff}"


def _found(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> list[Difference]:
    """The differences; one of the whole where what is on record has the form of no request."""
    try:
        return list(differences(recorded, asked))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return [Difference("all of it: what is on record has the form of no request", "", "")]


def differences(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[Difference]:
    """The parts in which two canonical requests differ: the model, the messages, then everything else."""
    for name in dict.fromkeys((*_TITLES, *sorted({*recorded, *asked}))):
        old, new = ({name: side[name]} if name in side else {} for side in (recorded, asked))
        if _same(old, new):
            continue
        if name == "messages" and old and new:
            yield from _message_differences(old[name], new[name])
        else:
            what = _TITLES.get(name, repr(name))
            yield Difference(what, *(_text(side[name]) if side else "" for side in (old, new)))


def unified(difference: Difference, *, recorded: str, asked: str) -> str:
    """The first stretch of a difference as a unified diff, safe to show on a terminal; empty if there is none."""
    old, new = _lines(difference.recorded), _lines(difference.asked)
    changed = next((at for at, (a, b) in enumerate(zip_longest(old, new)) if a != b), None)
    if changed is None:
        return ""
    start = max(0, changed - CONTEXT)
    old, new = old[start : start + _WINDOW], new[start : start + _WINDOW]
    group = next(iter(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT)))
    (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
    lines = [f"--- recorded {recorded}", f"+++ asked {asked}"]
    lines += [f"@@ -{_span(start + a, b - a)} +{_span(start + c, d - c)} @@"]
    for tag, a, b, c, d in group:
        lines += [f" {line}" for line in old[a:b]] if tag == "equal" else []
        lines += [f"-{line}" for line in old[a:b]] if tag in {"delete", "replace"} else []
        lines += [f"+{line}" for line in new[c:d]] if tag in {"insert", "replace"} else []
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"… and {len(lines) - MOST_LINES} lines more"]
    return "\n".join(lines)


def _message_differences(recorded: Sequence[JsonObject], asked: Sequence[JsonObject]) -> Iterator[Difference]:
    for number, (old, new) in enumerate(zip_longest(recorded, asked), 1):
        if _same(old, new):
            continue
        where = f"message {number} ({(new or old or {}).get('role')})"
        if old and new and old.get("role") == new.get("role"):
            yield from _part_differences(old, new, where)
        else:
            yield Difference(where, *("" if side is None else _text(side) for side in (old, new)))


def _part_differences(recorded: JsonObject, asked: JsonObject, where: str) -> Iterator[Difference]:
    """Text, pictures, and what else a message may hold, in this order; at last the order of its parts."""
    splits = [_split(message) for message in (recorded, asked)]
    before = False
    for name, old, new in zip(("text", "image", "preparation of the image", "tool calls"), *splits, strict=True):
        if old != new:
            before = True
            yield Difference(f"the {name} of {where}", old, new)
    if not before:
        yield Difference(
            f"the order of the parts of {where}", *(_text(message.get("parts")) for message in (recorded, asked))
        )


def _split(message: JsonObject) -> tuple[str, str, str, str]:
    parts: list[JsonObject] = message.get("parts", [])
    pictures = [part for part in parts if part.get("type") == "image"]
    rest = {name: value for name, value in message.items() if name not in {"role", "parts"}}
    return (
        "\n".join(str(part.get("text", "")) for part in parts if part.get("type") != "image"),
        "\n".join(str(picture.get("sha256")) for picture in pictures),
        "\n".join(_text({**picture, "sha256": "…"}) for picture in pictures),
        _text(rest) if rest else "",
    )


def _title(key: str, request: Mapping[str, Any]) -> str:
    """Short key, model and first words."""
    words = ""
    with suppress(AttributeError, TypeError):  # the form of no request
        words = textwrap.shorten(next(_texts(request), "")[:500], 48, placeholder="…")
    said = ", ".join(part for part in (printable(model_name(request)), repr(words) if words else "") if part)
    return f"{key[:12]} ({said})" if said else key[:12]


def _texts(request: Mapping[str, Any]) -> Iterator[str]:
    """The texts of the messages; the system's, which many requests share, come last."""
    messages: Sequence[JsonObject] = request.get("messages", ())
    for message in sorted(messages, key=lambda message: message.get("role") == "system"):
        yield from (str(part["text"]) for part in message.get("parts", ()) if part.get("text"))


def _same(recorded: object, asked: object) -> bool:
    return canonical_json(recorded) == canonical_json(asked)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)


def _lines(text: str) -> list[str]:
    return [printable(piece) for line in text.split("\n") for piece in _folded(line)]


def _folded(line: str) -> Iterator[str]:
    if len(line) <= _WIDTH:
        yield line
        return
    for sentence in _SENTENCE.split(line):
        yield from textwrap.wrap(sentence, _WIDTH, drop_whitespace=False, replace_whitespace=False, expand_tabs=False)


def _span(start: int, length: int) -> str:
    """Place of a stretch of lines, as unified diffs write it: an empty one stands after the line that it names."""
    return f"{start + 1 if length else start},{length}"
