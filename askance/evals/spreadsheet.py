"""Cells that no spreadsheet computes, wherever it takes a cell to begin."""

from __future__ import annotations

import re
from typing import TypeAlias

Value: TypeAlias = "str | int | float | bool | None"

_FORMULA = r"[=+\-@|%\uff1d\uff0b\uff0d\uff20]"
_BEGINNING = re.compile(rf"\s*{_FORMULA}|[\t\r\n]")
"""How a text begins that some spreadsheet takes for a formula or a command; blanks before it are no help, nor is
its full width."""
_INSIDE = re.compile(rf"([;\t\r\n][\s\"]*)(?={_FORMULA})")
"""Where a formula begins within a text for a spreadsheet that separates cells otherwise than by commas, and then heeds
no quotation marks within them."""


def cell(value: Value) -> Value:
    """A value as it is written to CSV: a text that would be computed gets an apostrophe; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    text = _INSIDE.sub(r"\1'", value)
    return f"'{text}" if _BEGINNING.match(text) else text
