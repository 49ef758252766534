"""What JSON from a stranger has to look like, as small checks that say at which place it does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

Check = Callable[[Any], "tuple[str, str] | None"]
"""Gives None for a value that fits, else the place within it and what is wrong there."""

_LONGEST = 40


def fault(value: Any, check: Check) -> str | None:
    """What is wrong with a value in a few words, as `totals.samples is -1, not a count`; None where nothing is."""
    found = check(value)
    return None if found is None else f"{found[0].removeprefix('.') or 'it'} {found[1]}"


def _none(value: Any, words: str) -> tuple[str, str]:
    shown = json.dumps(value, ensure_ascii=False)
    return "", f"is {shown if len(shown) <= _LONGEST else f'{shown[:_LONGEST]}…'}, not {words}"


def _kind(words: str, fits: Callable[[Any], bool]) -> Check:
    return lambda value: None if fits(value) else _none(value, words)


TEXT = _kind("a text", lambda value: isinstance(value, str))
COUNT = _kind("a count", lambda value: type(value) is int and value >= 0)
WHOLE = _kind("a whole number", lambda value: type(value) is int)
NUMBER = _kind("a number", lambda value: type(value) in (int, float))
FLAG = _kind("true or false", lambda value: isinstance(value, bool))
MAP = _kind("a map", lambda value: isinstance(value, dict))


def anything(value: Any) -> None:  # a check takes what it checks
    """Fits whatever it is."""


def one_of(*words: str) -> Check:
    """One of some texts."""
    return _kind(f"one of {', '.join(words)}", lambda value: value in words if isinstance(value, str) else False)


def maybe(check: Check) -> Check:
    """Null, or what fits."""
    return lambda value: None if value is None else check(value)


def several(check: Check) -> Check:
    """A list of what fits."""

    def found(value: Any) -> tuple[str, str] | None:
        if not isinstance(value, list):
            return _none(value, "a list")
        for place, each in enumerate(cast("list[Any]", value)):
            if (wrong := check(each)) is not None:
                return f"[{place}]{wrong[0]}", wrong[1]
        return None

    return found


def named(check: Check) -> Check:
    """A map with values that fit."""

    def found(value: Any) -> tuple[str, str] | None:
        if not isinstance(value, dict):
            return _none(value, "a map")
        for name, each in cast("dict[str, Any]", value).items():
            if (wrong := check(each)) is not None:
                return f".{name}{wrong[0]}", wrong[1]
        return None

    return found


def form(needed: Mapping[str, Check], more: Mapping[str, Check] | None = None) -> Check:
    """A map with certain entries, and perhaps others, of which some are known."""
    known = {**needed, **(more or {})}

    def found(value: Any) -> tuple[str, str] | None:
        if not isinstance(value, dict):
            return _none(value, "a map")
        there = cast("dict[str, Any]", value)
        for name, check in known.items():
            if name not in there:
                if name in needed:
                    return f".{name}", "is missing"
            elif (wrong := check(there[name])) is not None:
                return f".{name}{wrong[0]}", wrong[1]
        return None

    return found
