"""What stands in a cell of the data set: texts, lists of texts, lists of question and answer.

The list columns are lists in Arrow files, JSON in the CSV file, and Python literals where a list was written by `str`;
they are tried in this order.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from askance.errors import BadData

Question: TypeAlias = tuple[str, str]
"""A question about a picture, and its answer."""

LONGEST = 200_000
"""Most characters of a cell; the longest of the data set has some thousands."""
MOST_BRACKETS = 2_000
"""Most brackets of a Python literal, because what is nested costs memory and stack to read."""


def text_in(value: object, where: str) -> str:
    """The text of a cell; empty for one without a value.

    Raises:
        BadData: it is no text.
    """
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if not isinstance(value, str):
        raise BadData(f"{where}: {str(value)[:60]!r} is no text.", hint="Make it a text.")
    return value


def texts_in(value: object, where: str) -> tuple[str, ...]:
    """The texts of a list column, those of blanks alone left out.

    Raises:
        BadData: it is no list of texts, in none of the three forms.
    """
    items = _list(value, where)
    if not all(isinstance(item, str) for item in items):
        raise BadData(f"{where}: not all items are texts.", hint=_HINT)
    return tuple(text for text in cast("list[str]", items) if text.strip())


def questions_in(value: object, where: str) -> tuple[Question, ...]:
    """The questions of a list column, each with its answer.

    Raises:
        BadData: it is no list of pairs of texts.
    """
    return tuple(_question(item, where) for item in _list(value, where))


def _question(item: object, where: str) -> Question:
    parts: list[Any] = list(cast("Sequence[Any]", item)) if isinstance(item, (list, tuple)) else []
    plain = [str(part) for part in parts if isinstance(part, (str, int, float)) and not isinstance(part, bool)]
    if len(parts) != 2 or len(plain) != 2 or not all(part.strip() for part in plain):
        shown = str(cast("object", item))[:60]
        raise BadData(
            f"{where}: {shown!r} is no pair of question and answer.", hint='Such as ["Who howls?", "a wolf"].'
        )
    return plain[0], plain[1]


def _list(value: object, where: str) -> list[object]:
    if isinstance(value, str):
        value = _read(value, where)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise BadData(f"{where}: {str(value)[:60]!r} is no list.", hint=_HINT)
    return list(cast("Sequence[object]", value))


def _read(text: str, where: str) -> object:
    """The list that a text is: JSON, or else a Python literal; None for blanks."""
    if not text.strip():
        return None
    if len(text) > LONGEST or sum(map(text.count, "[({")) > MOST_BRACKETS:
        raise BadData(f"{where}: a cell of {len(text):,} characters, more than any of the data set.", hint=_HINT)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _literal(text, where)


def _literal(text: str, where: str) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise BadData(
            f"{where}: {text[:60]!r} is a list neither in JSON nor as Python writes one.", hint=_HINT
        ) from error


_HINT = 'A cell reads like ["a text", "another text"]; fetch the file again if it was edited.'
