"""One budget and one pace per endpoint for workers that share no database: a coordinator holds both.

It lives where the work was begun; workers ask it by `Ask`, over a socket of this machine or as an actor of Ray. What is
spent lies in a file of SQLite, so a coordinator that is killed goes on where it stopped. A worker that is not heard of
for half a minute has ended: what it had reserved is settled at its worst case.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from functools import partial
from secrets import token_hex
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.errors import AskanceError, StoreError
from askance.replay.leases import EXPIRY
from askance.replay.shared_pace import DrawnTimes, Opening, WantedTimes

if TYPE_CHECKING:
    from pathlib import Path

    from askance.chat import ModelId
    from askance.models import Engine
    from askance.replay import Balance, Budget, Cost, Ledger

Ask: TypeAlias = Callable[..., Any]
"""Calls a method of the coordinator by name, from any thread of any worker.

It raises a `StoreError` where there is no coordinator any more. It can be pickled.
"""


class Coordinator:
    """Holds the budget and the paces of the workers of one piece of work, for calls from any thread.

    Args:
        ledger: of the budget, in a file; None is no budget.
    """

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._ledgers: dict[str, tuple[Ledger, float]] = {}
        """By worker: its ledger, and when it was last heard of."""
        self._paces: dict[str, tuple[Opening, float]] = {}
        """By endpoint: when it opens, and as seen from when."""
        self._lock = Lock()

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """The result of a method, or the error that it ended with as a value: an exception may not travel whole."""
        try:
            return {"spend": self.spend, "alive": self.alive, "draw": self.draw}[method](*arguments, **named)
        except AskanceError as error:
            return error

    def spend(self, worker: str, method: str, *arguments: Any, **named: Any) -> Any:
        """Calls a method of a worker's ledger.

        Raises:
            OverBudget: the budget has no room.
            StoreError: the ledger cannot be written.
        """
        self.alive(worker)
        ledger, _ = self._ledgers[worker]
        return getattr(ledger, method)(*arguments, **named)

    def alive(self, worker: str) -> None:
        """Notes that a worker lives; gives up those that do not any more."""
        now = time.monotonic()
        with self._lock:
            ledger = self._ledgers[worker][0] if worker in self._ledgers else copy.copy(self._ledger)
            assert ledger is not None, "only workers with a budget are heard of"
            self._ledgers[worker] = (ledger, now)
            silent = [name for name, (_, heard) in self._ledgers.items() if now - heard > EXPIRY]
            gone = [self._ledgers.pop(name)[0] for name in silent]
        for each in gone:
            each.close()

    def draw(self, endpoint: str, wanted: WantedTimes) -> DrawnTimes:
        """Draws times at which calls to an endpoint may start."""
        now = time.monotonic()
        with self._lock:
            opening, seen = self._paces.get(endpoint, (Opening(), now))
            past = now - seen
            opening = Opening(
                calls=opening.calls - past, tokens=opening.tokens - past, paused=max(0.0, opening.paused - past)
            )
            opening, drawn = opening.after(wanted)
            self._paces[endpoint] = (opening, now)
        return drawn

    def close(self) -> None:
        """Settles at its worst case what workers have reserved."""
        with self._lock:
            ledgers, self._ledgers = self._ledgers, {}
        for ledger, _ in ledgers.values():
            ledger.close()


def share(engine: Engine, ask: Ask) -> None:
    """Has the coordinator hold the budget and the paces of an engine, before its first call.

    Records at which workers on all machines share both, such as those of a database, do without.
    """
    if engine.recorder.records.remote:
        return
    engine.starts = partial(CoordinatedStarts, ask)
    if engine.budget is not None:
        engine.budget.ledger = CoordinatedLedger(ask, engine.budget.ledger.budget)


class CoordinatedStarts:
    """Hands out the times at which calls to a model's endpoint may start; see `Starts`."""

    closings = 0

    def __init__(self, ask: Ask, model: ModelId) -> None:
        self._ask = ask
        self._endpoint = f"{model.provider}@{model.endpoint}"

    def draw(self, wanted: WantedTimes, /) -> DrawnTimes:
        return _result(self._ask("draw", self._endpoint, wanted))


class CoordinatedLedger:
    """The ledger of a budget that a coordinator holds; see `Ledger`.

    Args:
        ask: asks the coordinator.
        budget: see `Ledger`.
    """

    def __init__(self, ask: Ask, budget: Budget) -> None:
        self.budget = budget
        self._ask = ask
        self._worker = ""
        self._process = 0
        self._closed = Event()

    def __reduce__(self) -> tuple[Any, ...]:
        return CoordinatedLedger, (self._ask, self.budget)

    def reserve(self, worst: Cost, /, *, what: str = "the next call") -> int | None:
        return self._spend("reserve", worst, what=what)

    def settle(self, reservation: int, actual: Cost, /) -> None:
        self._spend("settle", reservation, actual)

    def place_of(self, folder: Path, /) -> str:
        return self._spend("place_of", folder)

    def hold(self, batch: str, worst: Cost, /, *, what: str = "the next call") -> bool:
        return self._spend("hold", batch, worst, what=what)

    def trim(self, batch: str, worst: Cost, /) -> None:
        self._spend("trim", batch, worst)

    def held(self, place: str, /) -> list[str]:
        return self._spend("held", place)

    def settle_batch(self, batch: str, actual: Cost | None, /) -> None:
        self._spend("settle_batch", batch, actual)

    def balance(self) -> Balance:
        return self._spend("balance")

    def close(self) -> None:
        self._closed.set()

    def _spend(self, method: str, *arguments: Any, **named: Any) -> Any:
        if self._process != os.getpid() or self._closed.is_set():
            self._process, self._worker, self._closed = os.getpid(), token_hex(8), Event()
            Thread(target=self._live, args=(self._worker, self._closed), name="askance-alive", daemon=True).start()
        return _result(self._ask("spend", self._worker, method, *arguments, **named))

    def _live(self, worker: str, closed: Event) -> None:
        while not closed.wait(EXPIRY / 3):
            try:
                self._ask("alive", worker)
            except StoreError:
                return


def _result(value: Any) -> Any:
    if isinstance(value, AskanceError):
        raise value
    return value
