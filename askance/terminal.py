"""The terminal: the one place that prints, untrusted text made safe to print, and a question to the user."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed: terminal escapes begin here
    r"\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # bidirectional and invisible ones
    r"\ud800-\udfff\U000e0000-\U000e007f]"  # halves of surrogate pairs, which cannot be printed, and tags
)


def echo(text: str = "", *, err: bool = False, end: str = "\n") -> None:
    """Prints `text` on stdout at once. Nothing else prints, so text from outside never steers a terminal.

    Args:
        text: whatever it holds, it is printed as `printable` writes it.
        err: whether it goes to stderr.
        end: what follows it.
    """
    print(printable(text), end=end, file=sys.stderr if err else sys.stdout, flush=True)


def printable(text: str) -> str:
    """`text` with everything that could move the cursor, reorder or hide other text written as an escape.

    Line feeds and tabs stay, and so do the joiners (U+200C, U+200D) that scripts and emoji need.
    """
    return text if text.isprintable() else _UNSEEN.sub(lambda match: _escape(ord(match.group())), text)


def printable_json(text: str) -> str:
    """JSON text in which the same characters are written as JSON escapes, so that its value stays the same."""
    return text if text.isprintable() else _UNSEEN.sub(lambda match: json.dumps(match.group())[1:-1], text)


def json_text(form: Mapping[str, Any] | Sequence[Any]) -> str:
    """`form` as one line of JSON, safe to print on a terminal and within the encoding of stdout."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") in {"utf8", "utf8sig"}
    return printable_json((_encode if unicode else _encode_ascii)(form))


_encode, _encode_ascii = (json.JSONEncoder(ensure_ascii=ascii_only).encode for ascii_only in (False, True))


def has_terminal() -> bool:
    """Whether the user can be asked: stdin and stderr are both a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> bool:
    """Whether the user answers a question at the terminal with yes."""
    echo(f"{question} [y/N] ", err=True, end="")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


class StderrHandler(logging.Handler):
    """Prints a warning on what `sys.stderr` is at the time: a progress bar may have taken its place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints one warning."""
        echo(f"askance: {record.getMessage()}", err=True)


def print_log(level: int = logging.WARNING) -> None:
    """Prints what askance's log says from now on, from a level on, on stderr, in the form of errors."""
    log = logging.getLogger("askance")
    log.handlers[:] = [StderrHandler(level)]
    log.propagate = False


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
