"""How encoders run on this machine: settings behind a spec, texts that a tokenizer takes, batches that fit."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from askance.errors import ConfigError, OutOfMemory
from askance.models.local.memory import is_no_room
from askance.models.settings import DTYPES, Local
from askance.models.spec import nearest

Item = TypeVar("Item")
Made = TypeVar("Made")

BATCH = 32
"""Texts or pictures that are encoded at a time."""

_log = logging.getLogger("askance")


def plain(text: str) -> str:
    """`text` as a tokenizer takes it: half a surrogate pair has no form in UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- settings in a spec, behind its source: `clip:FOLDER?scale=logits&device=cuda` ---

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
    # A plus is one, as in `pooling=cls+mean`, and no space as in the forms of web pages.
    for name, text in parse_qsl(said.replace("+", "%2B"), keep_blank_values=True):
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


# --- batches that fit: one that does not is halved, and so are those after it ---


class BatchRunner:
    """Runs items in batches; used by one thread.

    Args:
        torch: whose memory it is.
        spec: what to call the model in messages.
        most: items at a time; goes down where memory does not suffice.
    """

    def __init__(self, torch: Any, *, spec: str, most: int) -> None:
        self.most = most
        self._torch = torch
        self._spec = spec

    def run(
        self,
        items: Sequence[Item],
        make: Callable[[Sequence[Item]], Sequence[Made]],
        *,
        what: str,
        length: Callable[[Item], int] = lambda _: 0,
    ) -> list[Made]:
        """What `make` gives for `items`, in their order.

        Args:
            items: of any number.
            make: gives something for each item of a batch.
            what: the items in words.
            length: of an item. Those of about one length are in a batch together, so that little is padded.

        Raises:
            OutOfMemory: one item alone does not fit into memory.
        """
        order = sorted(range(len(items)), key=lambda place: length(items[place]))
        made: list[Made] = []
        while len(made) < len(items):
            some = [items[place] for place in order[len(made) : len(made) + self.most]]
            try:
                made += make(some)
            except (RuntimeError, MemoryError) as error:
                if not is_no_room(error):
                    raise
                self._halve(len(some), error, what)
        found = dict(zip(order, made, strict=True))
        return [found[place] for place in range(len(items))]

    def _halve(self, size: int, error: Exception, what: str) -> None:
        gc.collect()
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()
        if size == 1:
            said = " ".join(next(iter(str(error).splitlines()), "").split())[:300]
            raise OutOfMemory(
                f"The model {self._spec!r} has not the memory for one of {what}: {said}",
                hint="See what else holds memory there, or give another `device` or `dtype`.",
            ) from error
        self.most = size // 2
        _log.warning(
            "%s: %d of %s did not fit into memory; at most %d are encoded at a time from now on.",
            self._spec,
            size,
            what,
            self.most,
        )
