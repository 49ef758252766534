"""The configuration of a run, as `run.json` has it: where two of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from askance.chat import JsonObject
from askance.documents import MAX_SHOWN

_TOLD = 3
"""Differences that are told in words."""
_SHORT = 40
"""Most characters of a value that they show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationDifference:
    """One entry of the configuration in which runs differ."""

    place: str
    values: tuple[Any, ...]
    """Its value in each run; None if a run has no such entry."""


def configuration_differences(forms: Sequence[Any], place: str = "") -> Iterator[ConfigurationDifference]:
    """The entries in which configurations differ, in the order of the configurations.

    Args:
        forms: as `run.json` has them.
        place: the entry that they stand for, with dots; empty for the whole.
    """
    if all(isinstance(form, Mapping) for form in forms):
        maps = [cast("Mapping[str, Any]", form) for form in forms]
        for name in dict.fromkeys(name for each in maps for name in each):
            within = [each.get(name) for each in maps]
            yield from configuration_differences(within, f"{place}.{name}" if place else name)
    elif any(form != forms[0] for form in forms[1:]):
        yield ConfigurationDifference(place=place, values=tuple(forms))


def difference_in_words(stored: JsonObject, here: JsonObject) -> str:
    """Where the configuration of a folder and the one that is asked for differ, options foremost.

    Such as `'options.limit' (5, now 9) and 2 more`; empty where nothing is seen to differ.
    """
    forms = [{**form, "pictures": [*(form.get("samples") or ())]} for form in (stored, here)]
    differing = sorted(configuration_differences(forms), key=lambda each: not each.place.startswith("options."))
    shown = [f"{each.place[:MAX_SHOWN]!r}{_values(*each.values)}" for each in differing[:_TOLD]]
    more = [f"{len(differing) - _TOLD:,} more"] if len(differing) > _TOLD else []
    return " and ".join((", ".join(shown), *more))


def _values(stored: Any, here: Any) -> str:
    """The values of an entry, where both are short."""
    plain = all(value is None or isinstance(value, (str, int, float)) for value in (stored, here))
    shown = ["none" if value is None else repr(value) for value in (stored, here)] if plain else []
    return f" ({shown[0]}, now {shown[1]})" if shown and max(map(len, shown)) <= _SHORT else ""
