"""Reading a YAML file that anybody may have written: bounded, without aliases, no key twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from askance.documents import parse_yaml
from askance.errors import UsageError

MOST_BYTES = 200_000
"""Largest file that is read."""
MOST_DEPTH = 12


def read_yaml(path: Path, *, what: str) -> Mapping[str, Any]:
    """The mapping in a YAML file, as plain values.

    Args:
        path: of the file.
        what: it is, in words: "a task".

    Raises:
        UsageError: it cannot be read, is too large or too deep, is no YAML or no mapping, has aliases, or a key twice.
    """
    content, faults = parse_yaml(_text(path, what), deepest=MOST_DEPTH)
    for line, message in faults:
        raise UsageError(
            f"{str(path)!r}, line {line}: {message}.",
            hint=f"Write {what} in plain YAML; texts with a colon want quotes.",
        )
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in cast("dict[Any, Any]", content)):
        raise UsageError(
            f"{str(path)!r} holds no map of names to values.", hint=f"Write {what} as `name: value` lines."
        )
    return cast("dict[str, Any]", content)


def _text(path: Path, what: str) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{str(path)!r} is larger than {MOST_BYTES:,} bytes.", hint=f"Is it {what}?")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}.", hint="Check the name.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8 text.", hint="Save it as UTF-8.") from error
