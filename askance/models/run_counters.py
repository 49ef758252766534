"""What the models of a run computed from its start on."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from askance.models.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from askance.models.model import Model

_log = logging.getLogger("askance")


class RunCounters:
    """What the models of a run computed since `begun` made this.

    Args:
        models: of the run; those that share a backend count once.
        before: what had been counted when the run began, by name of the model.
    """

    def __init__(self, models: Collection[Model], before: Mapping[str, Counters]) -> None:
        self._models = models
        self._before = before

    @classmethod
    async def begun(cls, models: Iterable[Model]) -> RunCounters:
        """A run of `models` that begins now."""
        each = {id(model.backend): model for model in models}.values()
        return cls(each, await _counted(each))

    async def so_far(self) -> dict[str, Counters]:
        """What each model computed, by name; models that computed nothing, or do not count, are left out."""
        now = await _counted(self._models)
        since = {name: counts - self._before.get(name, Counters()) for name, counts in now.items()}
        return {name: counts for name, counts in since.items() if counts}


async def _counted(models: Collection[Model]) -> dict[str, Counters]:
    totals: dict[str, Counters] = {}
    for model, counts in zip(models, await asyncio.gather(*map(_of, models)), strict=True):
        if counts is not None:
            name = str(model.id)
            totals[name] = totals[name] + counts if name in totals else counts
    return totals


async def _of(model: Model) -> Counters | None:
    """The counts of `model`; None where it does not count, or raises: a run does not fail over its counts."""
    try:
        return await model.backend.counted()
    except Exception:  # noqa: BLE001  # whatever it is, the run goes on
        _log.warning("%s cannot tell what it computed.", model.id, exc_info=True)
        return None
