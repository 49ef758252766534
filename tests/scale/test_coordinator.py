"""One budget and one pace for workers that share no database."""

from __future__ import annotations

import asyncio
import copy
import time
from pathlib import Path

import pytest

from askance.chat import ModelId
from askance.errors import OverBudget
from askance.models.learnt_pace import LearntPace
from askance.replay import Balance, Budget, Cost, SqliteLedger
from askance.replay.shared_pace import SharedPace
from askance.scale import coordinator as coordinating
from askance.scale.coordinator import CoordinatedLedger, CoordinatedStarts, Coordinator

MODEL = ModelId("openai", "fake-model")


async def test_the_pace_of_all_workers_is_that_of_one() -> None:
    """Three workers with a limit of 20 calls a second together, and a pause that one of them is asked for."""
    coordinator, started = Coordinator(None), list[float]()

    def shared(rpm: float | None) -> SharedPace:
        return SharedPace(CoordinatedStarts(coordinator.call, MODEL), LearntPace(rpm=rpm), rpm=rpm, tpm=None)

    async def work(pace: SharedPace, ends: float) -> None:
        while (now := time.monotonic()) < ends:
            if (wait := pace.wait(now)) > 0:
                await asyncio.sleep(min(wait, 0.05))
                continue
            pace.started(now)
            started.append(now)

    ends = time.monotonic() + 2.0
    await asyncio.gather(*(work(shared(1200.0), ends) for _ in range(3)))
    assert 20 < len(started) <= 42

    told, tells = shared(None), shared(None)
    for pace in (told, tells):
        pace.wait(time.monotonic())
    now = time.monotonic()
    tells.started(now)
    tells.rejected(now, now, 30.0)
    for _ in range(100):
        if told.wait(time.monotonic()) > 20:
            break
        await asyncio.sleep(0.05)
    assert told.wait(time.monotonic()) > 20


def test_a_budget_is_held_for_all_workers_and_outlives_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(calls=3)
    coordinator = Coordinator(SqliteLedger(tmp_path / "budget.db", budget))
    dead, other = (CoordinatedLedger(coordinator.call, budget) for _ in range(2))
    first = dead.reserve(Cost(calls=2))
    assert first is not None
    assert other.reserve(Cost(calls=2)) is None, "it may fit once the other has ended"

    monkeypatch.setattr(coordinating, "EXPIRY", 0.0)
    with pytest.raises(OverBudget, match=r"2 calls spent, and the next call may take 2 calls"):
        other.reserve(Cost(calls=2))
    dead.settle(first, Cost(calls=1))
    assert other.balance() == Balance(spent=Cost(calls=2), lost=Cost(calls=2), reserved=Cost())
    dead.close()
    other.close()
    coordinator.close()


def test_a_coordinator_that_is_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A second coordinator with the ledger of the first settles what that had reserved."""
    ledger = SqliteLedger(tmp_path / "budget.db", Budget(calls=10))
    first = Coordinator(ledger)
    worker = CoordinatedLedger(first.call, ledger.budget)
    reservation = worker.reserve(Cost(calls=4))
    assert reservation is not None
    second = Coordinator(copy.copy(ledger))
    again = CoordinatedLedger(second.call, ledger.budget)
    again.settle(reservation, Cost(calls=1))
    assert again.balance().spent == Cost(calls=1)
    for each in (worker, again, first, second):
        each.close()
