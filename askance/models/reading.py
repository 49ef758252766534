"""Reading JSON of a stranger's: each step says what it expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from askance.errors import MalformedReply


def clean_text(text: object) -> str:
    """`text` with lone surrogates replaced, which nothing can store; empty for None.

    Raises:
        MalformedReply: it is no text.
    """
    if text is None:
        return ""
    if not isinstance(text, str):
        raise _malformed("text", text)
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
    found = items(value, name)
    if not found:
        raise MalformedReply(f"The reply has no {name}.")
    return found[0]


def count(value: object) -> int | None:
    """A number of tokens; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def part_of(value: object, name: str) -> object:
    """A field of a mapping that may be missing, as details of the usage are."""
    return cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None


def _malformed(name: str, value: object) -> MalformedReply:
    return MalformedReply(f"The reply's {name} is {type(value).__name__}.")
