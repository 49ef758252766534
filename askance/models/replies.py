"""What the replies of all vendors have in common: JSON, thinking inside the text, the reason why an answer ended.

A reply is not trusted: each reader raises an error that names what it did not find. One table holds the finish reasons
of all providers. A reason that is not in it is an error, since the answer may not be whole. A reply without a reason is
taken as whole, since some servers give none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from askance.chat import FinishReason
from askance.documents import read_yaml
from askance.errors import MalformedReply, UnknownFinish
from askance.models.vendor_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable


MOST_VALUES = 1_000_000
"""Most values in the JSON of a reply: a few bytes of text can take a hundred of memory."""

LONGEST_TEXT = 2_000_000
"""Most characters of one text of a reply: several times as many as any model writes. Texts stay in memory as long as
their picture is under way."""

_SHOWN = 40
"""Characters of a reply that is not JSON that a message quotes."""


def parse_reply(data: bytes) -> object:
    """The JSON value in `data`, bytes from an endpoint.

    Raises:
        MalformedReply: it is not JSON, or has more than `MOST_VALUES` values.
    """
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise MalformedReply(f"It holds more than {MOST_VALUES} values.")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        start = one_line(data[: 4 * _SHOWN].decode("utf-8", "replace"), limit=_SHOWN)
        raise MalformedReply(f"It is no JSON text: {start!r}." if data else "It is empty.") from error


def clean_text(text: object) -> str:
    """`text` with lone surrogates replaced, which cannot be stored; empty for None.

    Raises:
        MalformedReply: it is no text, or longer than `LONGEST_TEXT`.
    """
    if text is None:
        return ""
    if not isinstance(text, str):
        raise _malformed("text", text)
    if len(text) > LONGEST_TEXT:
        raise MalformedReply(f"It holds a text of more than {LONGEST_TEXT} characters.")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def mapping(value: object, name: str) -> Mapping[str, Any]:
    """`value`, which must be a JSON object.

    Raises:
        MalformedReply: it is none.
    """
    if not isinstance(value, Mapping):
        raise _malformed(name, value)
    return cast("Mapping[str, Any]", value)


def items(value: object, name: str) -> list[object]:
    """`value`, which must be a list; empty for None.

    Raises:
        MalformedReply: it is something else.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise _malformed(name, value)
    return cast("list[object]", value)


def first(value: object, name: str) -> object:
    """The first item of the list `value`.

    Raises:
        MalformedReply: there is none.
    """
    entries = items(value, name)
    if not entries:
        raise MalformedReply(f"The reply has no {name}.")
    return entries[0]


def count(value: object) -> int | None:
    """A whole number; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def part_of(value: object, name: str) -> Any:
    """A field of a mapping; None where either is missing, as details of the usage may be."""
    return cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None


def _malformed(name: str, value: object) -> MalformedReply:
    return MalformedReply(f"The reply's {name} is {type(value).__name__}.")


_OPEN = re.compile(r"\s*<(think|thinking)>")
_ORPHAN = re.compile(r"^[ \t]*</(?:think|thinking)>[ \t]*$", re.MULTILINE)


def split_thinking(text: str) -> tuple[str, str]:
    """The thinking at the start of `text`, which some servers leave there, and the answer after it.

    A block that is never closed is all thinking: the limit came before the answer. A closing tag alone on its line,
    without an opening one, ends a block too: some chat templates write the opening tag into the prompt.
    """
    opened = _OPEN.match(text)
    if opened:
        thinking, _, answer = text[opened.end() :].partition(f"</{opened[1]}>")
        return thinking.strip(), answer.lstrip()
    closed = _ORPHAN.search(text)
    if closed and f"<{closed[0].strip()[2:]}" not in text[: closed.start()]:
        return text[: closed.start()].strip(), text[closed.end() :].lstrip()
    return "", text


LONGEST_WORD = 60
"""Most characters of an unknown word that a message quotes."""

_WORDS: Mapping[str, list[str]] = read_yaml(Path(__file__).with_name("finish_reasons.yaml"), what="finish reasons")

GIVEN_UP = frozenset(_WORDS["given_up"])
"""Finish reasons of an answer that the server gave up."""

FINISHES: Mapping[str, FinishReason] = {word: finish for finish in get_args(FinishReason) for word in _WORDS[finish]}
"""Finish reasons by the providers' words, in lower case."""


def finish_of(words: Iterable[str], *, refused: bool, called: bool) -> FinishReason:
    """How the answer ended; some servers say `stop` although the model declined or called a tool.

    Args:
        words: all finish reasons in the reply; empty ones are ignored.
        refused: whether the reply has a refusal.
        called: whether it called a tool.

    Raises:
        MalformedReply: the server gave the answer up.
        UnknownFinish: none of the words is known.
    """
    reasons = [word for word in words if word]
    if refused:
        return "refusal"
    if given_up := next((word for word in reasons if word.lower() in GIVEN_UP), None):
        raise MalformedReply(f"The server gave the answer up (finish reason {given_up!r}).")
    known: list[FinishReason] = [FINISHES[word.lower()] for word in reasons if word.lower() in FINISHES]
    if reasons and not known:
        raise UnknownFinish(f"It ended for a reason that is not known: {reasons[0][:LONGEST_WORD]!r}.")
    for finish in known:
        if finish != "stop":
            return finish
    return "tool_calls" if called else "stop"


def incomplete(word: str) -> FinishReason:
    """How an answer ended that the responses API calls incomplete; any reason but a filter is the token limit."""
    return "content_filter" if FINISHES.get(word.lower()) == "content_filter" else "length"
