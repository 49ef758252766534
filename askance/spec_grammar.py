"""The grammar of specs: `NAME:REST?KEY=VALUE&KEY=VALUE`.

NAME says what a registry is asked for, REST is for that to read, and the settings have values of the types that their
readers give. The settings begin at the first `?` that a `KEY=` follows, so that any other `?` is part of REST.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from askance.errors import ConfigError
from askance.registry import near

SettingReaders: TypeAlias = Mapping[str, Callable[[str], object]]
"""By name of a setting: what makes its value of the text; raises ValueError, which says what it takes."""

Settings: TypeAlias = tuple[tuple[str, str], ...]
"""The settings of a spec as they are written: names and values."""

_SETTINGS = re.compile(r"\?(?=[a-z_]+=)")


def split_settings(spec: str) -> tuple[str, Settings]:
    """A spec, or its rest, without its settings; and these."""
    source, *written = _SETTINGS.split(spec, maxsplit=1)
    # A plus is one, as in `pooling=cls+mean`, and no space as in the forms of web pages.
    settings = parse_qsl(written[0].replace("+", "%2B"), keep_blank_values=True) if written else []
    return source, tuple(settings)


def read_settings(settings: Iterable[tuple[str, str]], readers: SettingReaders, *, of: str) -> dict[str, Any]:
    """The values of settings, by name.

    Args:
        settings: what `split_settings` found.
        readers: of the settings that there are.
        of: the spec without them, for messages; what stands behind it may hold a secret.

    Raises:
        ConfigError: a setting that there is not, or a value that it does not take.
    """
    values: dict[str, Any] = {}
    for name, text in settings:
        if name not in readers:
            raise ConfigError(
                f"{of!r} has no setting {name!r}.",
                hint=f"{near(name, readers)}There are: {', '.join(sorted(readers))}.",
            )
        try:
            values[name] = readers[name](text)
        except ValueError as error:
            raise ConfigError(
                f"The setting {name!r} of {of!r} cannot be {text!r}.", hint=f"It takes: {error}."
            ) from error
    return values


def one_of(*values: str) -> Callable[[str], str]:
    """Makes a reader that takes one of `values`."""

    def read(text: str) -> str:
        if text not in values:
            msg = f"choose one of {', '.join(values)}"
            raise ValueError(msg)
        return text

    return read


def yes_or_no(text: str) -> bool:
    """Reads `true` or `false`."""
    return one_of("true", "false")(text) == "true"


def count(text: str) -> int:
    """Reads a number from 1 up."""
    if not text.isdecimal() or int(text) < 1:
        msg = "a number from 1 up"
        raise ValueError(msg)
    return int(text)
