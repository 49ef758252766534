"""HTML from values: what is no markup of this package becomes text, and what would hide or reorder text is shown."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from html import escape
from typing import Any, cast
from urllib.parse import quote, urlencode

from askance.replay import visible

_VOID = frozenset({"input", "img", "meta", "br"})

_RISKY = re.compile(
    "[<>&\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""What is escaped in a block of JSON: what could end it, what cannot be written, and what reorders a file's text."""


class Markup(str):
    """HTML that is safe as it stands."""

    __slots__ = ()


def text(value: str) -> Markup:
    """`value` as text; characters that nobody would see are written out and marked."""
    if visible(value) == value:
        return Markup(escape(value))
    return Markup("".join(_seen(character) for character in value))


def _seen(character: str) -> str:
    shown = visible(character)
    if shown == character:
        return escape(character)
    return f'<span class="unseen">U+{ord(character):04X}</span>'


def element(name: str, /, *children: str | None, **attributes: str | float | bool | None) -> Markup:
    """One element.

    Args:
        name: of the element.
        children: markup as it is, any other text escaped; None is nothing.
        attributes: `class_` is `class`, `data_x` is `data-x`; None and False leave one out.
    """
    opened = f"<{name}{''.join(_attribute(*each) for each in attributes.items())}>"
    if name in _VOID:
        return Markup(opened)
    return Markup(f"{opened}{joined(children)}</{name}>")


def joined(children: Iterable[str | None]) -> Markup:
    """Several pieces behind one another."""
    return Markup("".join(each if isinstance(each, Markup) else text(each) for each in children if each is not None))


def _attribute(name: str, value: str | float | bool | None) -> str:  # noqa: FBT001  # one of its values
    if value is None or value is False:
        return ""
    plain = name.rstrip("_").replace("_", "-")
    return f" {plain}" if value is True else f' {plain}="{escape(visible(str(value)))}"'


def address(**parts: str | int) -> str:
    """Where the page leads to what is seen, as its own script writes it: `sample`, `epoch`, `run`, `blame`."""
    usual = {"epoch": 0, "run": 0}
    there = {name: value for name, value in parts.items() if usual.get(name) != value}
    return f"#{urlencode(there, quote_via=quote, errors='replace')}"


def data_block(identity: str, value: Any) -> Markup:
    """JSON for the script to read, which nothing in it can end or turn into markup."""
    return Markup(f'<script type="application/json" id="{escape(identity)}">{safe_json(value)}</script>')


def _of_numbers(value: Any) -> Any:
    """`value` with null where JSON has no number for what there is."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _of_numbers(each) for name, each in cast("dict[str, Any]", value).items()}
    return [_of_numbers(each) for each in cast("list[Any]", value)] if isinstance(value, (list, tuple)) else value


def safe_json(value: Any) -> str:
    """JSON text in which nothing has a meaning for HTML, and that UTF-8 can write."""
    try:
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a scoring gave something that is no number
        written = json.dumps(_of_numbers(value), ensure_ascii=False, separators=(",", ":"))
    return _RISKY.sub(lambda match: f"\\u{ord(match.group()):04x}", written)
