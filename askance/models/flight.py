"""Single flight: equal requests that are on their way at the same time share one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

from askance.errors import CallError
from askance.models.loop import PerLoop

T = TypeVar("T")


@dataclass
class _Flight:
    task: asyncio.Task[Any]
    waiting: int = 0


class Flights:
    """The calls on their way, by key, on the live loop.

    A call belongs to nobody in particular: it goes on while anyone waits for it and is cancelled with the last one.
    """

    def __init__(self) -> None:
        self._flights: PerLoop[dict[str, _Flight]] = PerLoop(dict)

    async def share(self, key: str, make: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """The result of `make()`, or of an equal call on its way, and whether it was such a one.

        Raises:
            CallError: that call failed; its tries are told to whom it belongs alone, so that each is counted once.
        """
        flights = self._flights()
        flight = flights.get(key)
        joined = flight is not None
        if flight is None:
            flight = flights[key] = _Flight(asyncio.ensure_future(make()))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task), joined
        except CallError as error:
            if not joined:
                raise
            own = copy(error)
            own.tries = ()
            raise own from error
        finally:
            flight.waiting -= 1
            if flights.get(key) is flight and (flight.task.done() or not flight.waiting):
                del flights[key]
            if not flight.waiting:
                flight.task.cancel()
