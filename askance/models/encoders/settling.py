"""Settings in a spec, behind its source: `clip:FOLDER?scale=logits&device=cuda`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from askance.errors import ConfigError
from askance.models.settings import DTYPES, Local
from askance.models.spec import nearest

Reads = Mapping[str, Callable[[str], object]]
"""By name of a setting: what makes its value of the text; raises ValueError where it is none."""


def one_of(*values: str) -> Callable[[str], str]:
    """Reads one of `values`."""

    def read(text: str) -> str:
        if text not in values:
            msg = f"choose one of {', '.join(values)}"
            raise ValueError(msg)
        return text

    return read


def _yes_or_no(text: str) -> bool:
    return one_of("true", "false")(text) == "true"


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        msg = "a number from 1 up"
        raise ValueError(msg)
    return int(text)


LOCAL: Reads = {
    "batch": _count,
    "device": str,
    "dtype": one_of(*DTYPES),
    "pickled": _yes_or_no,
    "remote_code": _yes_or_no,
    "revision": str,
}
"""How any encoder is run: fields of `Local`."""


def settings_in(rest: str, *, provider: str, local: Local, own: Reads) -> tuple[str, Local, dict[str, Any]]:
    """The source in what stands behind a spec's colon, how it is run, and what else is set.

    Args:
        rest: what stands behind the colon.
        provider: what stands in front of it.
        local: how it is run where nothing is said.
        own: settings beside those of `Local`.

    Raises:
        ConfigError: a setting that there is not, or a value that it does not take.
    """
    source, _, said = rest.partition("?")
    known = {**LOCAL, **own}
    values: dict[str, Any] = {}
    for name, text in parse_qsl(said, keep_blank_values=True):
        if name not in known:
            close = nearest(name, known)
            raise ConfigError(
                f"{f'{provider}:{rest}'!r} has no setting {name!r}.",
                hint=f"{close}There are: {', '.join(sorted(known))}.",
            )
        try:
            values[name] = known[name](text)
        except ValueError as error:
            raise ConfigError(
                f"The setting {name!r} of {f'{provider}:{rest}'!r} cannot be {text!r}.", hint=f"It takes: {error}."
            ) from error
    ours = {name: values.pop(name) for name in list(values) if name in LOCAL}
    return source, replace(local, **ours), values
