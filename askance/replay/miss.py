"""Why a request is not on record: the nearest one that is, and what differs first."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from askance.chat import JsonObject, key_of
from askance.errors import ReplayMiss
from askance.replay.nearest import nearest_key
from askance.replay.records import RecordKind, Records, model_name
from askance.replay.visible import visible

CONTEXT = 2
"""Equal lines shown before and after a difference."""

MOST_LINES = 40
"""Longest diff, in lines."""

_WIDTH = 100
"""Longer lines are folded before they are compared."""

_WINDOW = 400
"""Lines compared from the first one that differs."""

_TITLES = {
    "model": "the model",
    "sampling": "the sampling",
    "response": "the response schema",
    "tools": "the tools",
    "extra": "the provider's extra fields",
    "draw": "the number of the draw",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One part in which two requests differ."""

    what: str
    """In words: `the text of message 2 (user)`."""
    recorded: str
    asked: str


def explain_miss(request: Mapping[str, Any], kind: RecordKind, records: Records) -> ReplayMiss:
    """The error that says which recorded request is nearest to `request`, in canonical form, and what differs first.

    Raises:
        StoreError: the records cannot be read.
    """
    key = key_of(kind, request)
    asked = f"No {kind} answer is on record for {_title(key, request)}"
    nearest = nearest_key(request, kind, records)
    record = None if nearest is None else records.get(nearest)
    if record is None:
        return ReplayMiss(
            f"{asked}: {visible(records.name)!r} holds no {kind} records.",
            key=key,
            hint="Name the store that has it with ASKANCE_STORE, import a cassette, or record it with --mode auto.",
        )
    found = list(differences(record.request, request))
    first, others = (found[0], found[1:]) if found else (Difference("nothing but its key", "", ""), [])
    also = f" (and in {', '.join(other.what for other in others)})" if others else ""
    return ReplayMiss(
        f"{asked}: the nearest, {_title(record.key, record.request)}, differs in {first.what}{also}.",
        key=key,
        nearest=record.key,
        diff=unified(first, recorded=record.key[:12], asked=key[:12]),
        hint="Undo what changed, or record the answer with --mode auto.",
    )


def differences(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[Difference]:
    """What differs, in the order in which a person would ask: model, messages, then everything else."""
    rest = [name for name in (*_TITLES, *sorted({*recorded, *asked})) if name not in {"model", "messages"}]
    for name in dict.fromkeys(("model", "messages", *rest)):
        old, new = recorded.get(name), asked.get(name)
        if _text(old) == _text(new):
            continue
        if name == "messages" and isinstance(old, Sequence) and isinstance(new, Sequence):
            yield from _message_differences(old, new)
        else:
            yield Difference(_TITLES.get(name, f"`{visible(name)}`"), _text(old), _text(new))


def unified(difference: Difference, *, recorded: str, asked: str) -> str:
    """The first stretch of a difference as a unified diff, safe to show on a terminal."""
    old, new = _lines(difference.recorded), _lines(difference.asked)
    same = next((at for at, (a, b) in enumerate(zip_longest(old, new)) if a != b), None)
    if same is None:
        return ""
    start = max(0, same - CONTEXT)
    old, new = old[start : start + _WINDOW], new[start : start + _WINDOW]
    group = next(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT))
    spans = (group[0][1], group[-1][2], group[0][3], group[-1][4])
    lines = [f"--- recorded {recorded}", f"+++ asked {asked}", _hunk(start, *spans)]
    for tag, a, b, c, d in group:
        if tag == "equal":
            lines += [f" {line}" for line in old[a:b]]
        else:
            lines += [f"-{line}" for line in old[a:b]] + [f"+{line}" for line in new[c:d]]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"… {len(lines) - MOST_LINES} more lines"]
    return "\n".join(lines)


def _message_differences(recorded: Sequence[JsonObject], asked: Sequence[JsonObject]) -> Iterator[Difference]:
    for number, (old, new) in enumerate(zip_longest(recorded, asked), 1):
        if _text(old) == _text(new):
            continue
        role = (new or old or {}).get("role", "?")
        where = f"message {number} ({role})"
        if old is None or new is None or old.get("role") != new.get("role"):
            yield Difference(where, _text(old), _text(new))
            continue
        yield from _part_differences(old, new, where)


def _part_differences(recorded: JsonObject, asked: JsonObject, where: str) -> Iterator[Difference]:
    sides = recorded.get("parts", ()), asked.get("parts", ())
    old, new = ("\n".join(str(part["text"]) for part in side if "text" in part) for side in sides)
    if old != new:
        yield Difference(f"the text of {where}", old, new)
    old, new = ([part for part in side if "text" not in part] for side in sides)
    if _text(old) != _text(new):
        named = [[part.get("sha256") for part in side] for side in (old, new)]
        what = "the image" if named[0] != named[1] else "how the image is prepared"
        yield Difference(f"{what} of {where}", _text(old), _text(new))
    old, new = ({name: value for name, value in side.items() if name != "parts"} for side in (recorded, asked))
    if _text(old) != _text(new):
        yield Difference(f"the tool calls of {where}", _text(old), _text(new))


def _title(key: str, request: Mapping[str, Any]) -> str:
    """Short key, model and first words."""
    words = next(_texts(request), "")
    described = [
        visible(model_name(request)),
        repr(textwrap.shorten(visible(words), 48, placeholder="…")) if words else "",
    ]
    said = ", ".join(part for part in described if part)
    return f"{key[:12]} ({said})" if said else key[:12]


def _texts(request: Mapping[str, Any]) -> Iterator[str]:
    """The texts of the messages, the user's before the system's, which are the same for many requests."""
    messages: Sequence[JsonObject] = request.get("messages", ())
    for message in sorted(messages, key=lambda message: message.get("role") == "system"):
        for part in message.get("parts", ()):
            if part.get("text"):
                yield str(part["text"])


def _text(value: object) -> str:
    if value is None:
        return ""
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2, default=str)
    )


def _lines(text: str) -> list[str]:
    folded = (textwrap.wrap(line, _WIDTH, drop_whitespace=False, replace_whitespace=False) for line in text.split("\n"))
    return [visible(line) for lines in folded for line in (lines or [""])]


def _hunk(start: int, a: int, b: int, c: int, d: int) -> str:
    return f"@@ -{start + a + 1},{b - a} +{start + c + 1},{d - c} @@"
