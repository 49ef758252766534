"""How a judge's reply is read: only from the place that was asked for, whatever it repeats of what it judges."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from askance.nodes import Unreadable
from askance.nodes.reply import ended, has_marks, plain, spoken, unboxed
from askance.prompts import harmless

MOST_OBJECTS = 100
"""Objects within what is judged; with more of them no JSON reply about it is read."""

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)
_PREAMBLE = re.compile(r"[^{}\[\]\"\n]{1,120}[:.]\s*\n\s*(?=[{`])|[^{}\[\]\"\n.:]{1,60}:\s*(?=\{)")
_REPEATING = re.compile(
    r"\b(?:[ab]|candidate|reference|first|second|sa(?:ys?|id)|states?|writes?|wrote|claims?|reads|not)\b", re.IGNORECASE
)
"""Words of a preamble that may introduce what is judged instead of a verdict."""
_REASON = re.compile(r"(?:[-*•]\s*|\d[.)]\s*)?reason\s*:\s*(.+)", re.IGNORECASE)
_ITEM = re.compile(r"^(?:[-*•⇒→]\s*|\d{1,2}[.)]\s+)+")
_AROUND = " .!\"'()[]$"
_COURTESY = re.compile(
    r"(?:sure|certainly|of course|okay|ok)\b[^\w]*$"
    r"|(?:here(?: is|'s)|this is)\b[^.:]{0,40}:$|(?:response|result|output)\s*:?$",
    re.IGNORECASE,
)
"""A line before an answer that says nothing."""
_SURE = r"(?:(?:sure|certainly|okay|ok|of course)\s*[,.!:]\s*)?"
_LEAD = (
    r"(?:(?:so|therefore|thus|hence|overall|finally|in (?:conclusion|summary)|based on [^,.:]{1,60})\s*,?\s*)?"
    r"(?:i (?:believe|think)(?: that)?\s+)?(?:(?:the|my)\s+)?(?:(?:final|correct|overall)\s+)?"
    r"(?:answer|verdict|equivalence|judge?ment|conclusion|response|result|label)\s*(?:is\b\s*:?|[:=-])\s*"
)
_CORRECTION = re.compile(
    r"\W*(?:actually|no|wait|correction|edit(?:ed)?|update|p\.? ?s|sorry|rather|instead|i meant?)\b", re.IGNORECASE
)


def judged(text: str, *texts: str) -> str:
    """What a judge says of `texts`: its reply without its thinking and the marks of its turn.

    Where one of `texts` holds such marks, they could be repeated, so that only the end of the turn is taken off.

    Raises:
        Unreadable: nothing is said.
    """
    said = ended(text) if any(map(has_marks, texts)) else spoken(text)
    if not said.strip():
        raise Unreadable("the reply is empty")
    return said


def whole_object(said: str, *texts: str) -> Mapping[str, Any]:
    """The object that a reply is, with or without one code fence and one sentence before it; no field stands twice.

    An object within other prose does not count: it may be the candidate's. Nor does one that stands in `texts`, which
    are judged.

    Raises:
        Unreadable: it is anything else.
    """
    said = said.strip()
    preamble = _PREAMBLE.match(said)
    if preamble and not _REPEATING.search(preamble[0]):
        said = said[preamble.end() :]
    fenced = _FENCED.fullmatch(said)
    try:
        found: Any = json.loads(fenced[1] if fenced else said, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Unreadable("the reply is not one JSON object and nothing else") from error
    if not isinstance(found, dict):
        raise Unreadable("the reply is not one JSON object and nothing else")
    if any(found == planted for text in texts for planted in _objects_in(text)):
        raise Unreadable("the reply repeats a JSON object that stands in what is judged; judge in words of your own")
    return cast("Mapping[str, Any]", found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        msg = "a field stands twice"
        raise ValueError(msg)
    return found


def _objects_in(text: str) -> Iterator[object]:
    """Every JSON object in a text, those within others, too."""
    for version in dict.fromkeys((text, harmless(text))):
        for tried, begin in enumerate(re.finditer(r"\{", version)):
            if tried >= MOST_OBJECTS:
                raise Unreadable("what is judged holds too many JSON objects for a JSON verdict; judge it in text")
            try:
                yield json.JSONDecoder().raw_decode(version, begin.start())[0]
            except (ValueError, RecursionError):
                continue


def plain_lines(said: str) -> list[str]:
    """The lines of a reply that hold a letter or digit, in simple signs, rows of a table as `name: value`."""
    lines = [line.strip() for line in plain(unboxed(said)).splitlines()]
    lines = [line.strip("| ").replace("|", ":", 1) if line.startswith("|") else line for line in lines]
    return [line for line in lines if any(map(str.isalnum, line))]


def last_line(lines: Sequence[str], heading: str, words: str, *texts: str) -> str:
    """What the last line says after `heading:`, in lower case; no other line with the heading says anything else.

    Args:
        lines: of a reply, as `plain_lines` gives them.
        heading: a pattern such as `Verdict`; it may stand on a line of its own, before the last one.
        words: what may follow it, for the message.
        texts: what is judged.

    Raises:
        Unreadable: the last line is another or repeats `texts`, or the lines contradict each other.
    """
    line = re.compile(
        rf"(?:(?:the|my)\s+)?(?:(?:final|overall)\s+)?{heading}\s*(?:(?:[:=→⇒-]|\bis\b:?)\s*(.*)|$)", re.IGNORECASE
    )
    lines = [_ITEM.sub("", each) for each in lines]
    if len(lines) > 1 and (alone := line.fullmatch(lines[-2])) and not alone[1]:
        lines = [*lines[:-2], f"{lines[-2].rstrip(':')}: {lines[-1]}"]
    said = [(found[1] or "").strip(_AROUND).lower() for each in lines if (found := line.fullmatch(each))]
    name = heading.partition("(")[0]
    if not said or not line.fullmatch(lines[-1]) or repeated(lines, len(lines) - 1, texts):
        raise Unreadable(f"the last line must be `{name}:` with {words}")
    if len({*said}) > 1:
        raise Unreadable(f"there is more than one line `{name}:`")
    return said[0]


def first_word(lines: Sequence[str], words: Sequence[str], *texts: str) -> tuple[str, list[str]] | None:
    """The one of `words` that the first line or the last one gives as the answer, and the other lines.

    None where neither gives one, where another word is given elsewhere, or where it only repeats `texts`.
    """
    lines = _without_courtesies(lines)
    word = "|".join(words)
    answer = re.compile(
        rf"{_SURE}(?P<lead>{_LEAD})?[\"'(\[]*(?P<word>{word})\b[\"')\]]*(?P<rest>$|[.!]+\s*|\s+\([^()]*\)[.]?|\s*[,:;-]\s.*|[.!]+\s.*)",
        re.IGNORECASE,
    )
    closing = re.compile(rf".*[.!]\s+{_LEAD}[\"']*(?P<word>{word})\b[\"']*[.!]*", re.IGNORECASE)
    every = re.compile(rf"\b({word})\b", re.IGNORECASE)
    said: dict[int, str] = {}
    for at, line in enumerate(lines):
        found = answer.fullmatch(line)
        alone = found is not None and (found["lead"] or at == 0 or not found["rest"].strip(".!"))
        found = found if alone else closing.fullmatch(line) if at == len(lines) - 1 else None
        if found:
            said[at] = found["word"].lower()
        if (found or _CORRECTION.match(line)) and len({*map(str.lower, every.findall(line))} | {*said.values()}) > 1:
            return None
    for at in (0, len(lines) - 1):
        before = {each.lower() for line in lines[:at] for each in every.findall(line)}
        if at in said and before <= {said[at]} and not repeated(lines, at, texts):
            return said[at], [*lines[:at], *lines[at + 1 :]]
    return None


def _without_courtesies(lines: Sequence[str]) -> list[str]:
    """The lines from the answer on, where courtesies stand before it; a heading is put before its line."""
    lines = [*lines]
    while len(lines) > 1 and _COURTESY.match(lines[0]):
        lines = lines[1:]
    for at, line in enumerate(lines[:-1]):
        if re.fullmatch(r"(?:final\s+)?(?:answer|verdict)\s*:?", line, re.IGNORECASE):
            return [*lines[:at], f"Answer: {lines[at + 1]}", *lines[at + 2 :]]
    return lines


def repeated(lines: Sequence[str], at: int, texts: Sequence[str]) -> bool:
    """Whether a line of a reply stands in `texts`; a single word at the beginning may still be the judge's own."""
    planted = {each.casefold() for text in texts for each in (*plain_lines(text), *plain_lines(harmless(text)))}
    if lines[at].casefold() not in planted:
        return False
    own = at == 0 and len(lines[0].split()) == 1
    return not own or (len(lines) > 1 and lines[1].casefold() in planted)


def reason_in(lines: Sequence[str]) -> str:
    """What stands after `Reason:`; empty where there is no such line."""
    return next((found[1].strip() for line in lines if (found := _REASON.fullmatch(line))), "")
