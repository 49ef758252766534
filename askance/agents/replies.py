"""How a judge's reply is read: only from the place that was asked for, whatever it repeats of what it judges."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from askance.nodes import Unreadable

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)
_MARKUP = re.compile(r"[*_`]+")
_REASON = re.compile(r"reason\s*:\s*(.+)", re.IGNORECASE)


def whole_object(text: str) -> Mapping[str, Any]:
    """The object that a reply is, with or without one code fence around it; no field of it stands twice.

    An object within prose does not count: it may be the candidate's.

    Raises:
        Unreadable: it is anything else.
    """
    fenced = _FENCED.fullmatch(text.strip())
    try:
        found: Any = json.loads(fenced[1] if fenced else text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Unreadable("the reply is not one JSON object and nothing else") from error
    if not isinstance(found, dict):
        raise Unreadable("the reply is not one JSON object and nothing else")
    return cast("Mapping[str, Any]", found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        msg = "a field stands twice"
        raise ValueError(msg)
    return found


def plain_lines(text: str) -> list[str]:
    """The lines of a reply that are not blank, without Markdown's marks of emphasis."""
    return [line.strip() for line in _MARKUP.sub("", text).splitlines() if line.strip()]


def last_line(lines: list[str], heading: str, words: str) -> str:
    """What the last line says after `heading:`, in lower case; no other line with the heading says anything else.

    Args:
        lines: of a reply, as `plain_lines` gives them.
        heading: such as `Verdict`.
        words: what may follow it, for the message.

    Raises:
        Unreadable: the last line is another, or the lines contradict each other.
    """
    line = re.compile(rf"{heading}\s*:\s*(.*)", re.IGNORECASE)
    said = [found[1].strip(" .!").lower() for each in lines if (found := line.fullmatch(each))]
    if not said or not line.fullmatch(lines[-1]):
        raise Unreadable(f"the last line must be `{heading}:` with {words}")
    if len({*said}) > 1:
        raise Unreadable(f"there is more than one line `{heading}:`")
    return said[0]


def reason_in(lines: list[str]) -> str:
    """What stands after `Reason:`; empty where there is no such line."""
    return next((found[1].strip() for line in lines if (found := _REASON.fullmatch(line))), "")
