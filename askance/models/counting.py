"""What the models of a run compute while it lasts: for its record, and for the words at its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from askance.models.counters import Counters

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.models.model import Model

_log = logging.getLogger("askance")


class Counting:
    """Counts from when it is made by `begun`.

    Args:
        models: of the run; those that share a backend count once.
        before: what had been counted when the run began.
    """

    def __init__(self, models: Collection[Model], before: Mapping[str, Counters]) -> None:
        self._models = models
        self._before = before

    @classmethod
    async def begun(cls, models: Iterable[Model]) -> Counting:
        """A run of `models` that begins now."""
        each = {id(model.backend): model for model in models}.values()
        return cls(each, await _counted(each))

    async def so_far(self) -> dict[str, Counters]:
        """By name of the model: what it computed; models that computed nothing, or do not count, are left out."""
        now = await _counted(self._models)
        since = {name: counts - self._before.get(name, Counters()) for name, counts in now.items()}
        return {name: counts for name, counts in since.items() if counts}


def counts_form(counts: Mapping[str, Counters], earlier: Mapping[str, Any] | None = None) -> JsonObject:
    """Counts by model as `run.json` holds them; those of `earlier` starts of the run, in that form, are added."""
    total = {name: Counters.from_canonical(form) for name, form in (earlier or {}).items()}
    for name, each in counts.items():
        total[name] = total[name] + each if name in total else each
    return {name: each.canonical() for name, each in sorted(total.items())}


def counts_text(counts: Mapping[str, Counters]) -> list[str]:
    """A line for each model."""
    return [f"{name}: {each}." for name, each in counts.items()]


async def _counted(models: Collection[Model]) -> dict[str, Counters]:
    found: dict[str, Counters] = {}
    for model, counts in zip(models, await asyncio.gather(*map(_of, models)), strict=True):
        if counts is not None:
            name = str(model.id)
            found[name] = found[name] + counts if name in found else counts
    return found


async def _of(model: Model) -> Counters | None:
    """What `model` counted; a backend that fails to tell costs the counts and no answer."""
    try:
        return await model.backend.counted()
    except Exception:  # noqa: BLE001  # whatever it is, answers are worth more
        _log.warning("%s cannot tell what it computed.", model.id, exc_info=True)
        return None
