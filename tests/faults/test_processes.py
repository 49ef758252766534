"""What becomes of a run whose process dies, and of two that run at once."""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from askance.replay import Address, open_records
from askance.replay.leases import EXPIRY
from tests.conftest import SERIAL
from tests.faults.run import CALLS, Run, alone, answer, asked_twice, ended_well, stable
from tests.processes import kill
from tests.servers import FakeEndpoint, JsonObject

Start: TypeAlias = Callable[[Run], tuple[multiprocessing.Process, Path]]
"""Starts a run as a process; gives the file for its lines as well."""
AT_ONCE = 8


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(lambda seen: answer(seen.json), delay=0.05) as endpoint:
        yield endpoint


@pytest.fixture
def start(tmp_path: Path) -> Start:
    numbers = itertools.count()

    def start(run: Run) -> tuple[multiprocessing.Process, Path]:
        out = tmp_path / f"{next(numbers)}.jsonl"
        return alone(run, out), out

    return start


def lines_of(process: multiprocessing.Process, out: Path) -> list[JsonObject]:
    process.join(120)
    assert process.exitcode == 0
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def on_record(store: Address) -> set[str]:
    with open_records(store, read_only=True) as records:
        return {record.key for record in records}


def killed(run: Run, start: Start, endpoint: FakeEndpoint, *, kills: int, chance: random.Random) -> Iterator[set[str]]:
    """Starts the run again and again and kills it at random moments; gives what was on record after each."""
    for _ in range(kills):
        already = len(endpoint.requests)
        process, _ = start(run)
        endpoint.wait(already + chance.randrange(1, 2 * AT_ONCE))
        time.sleep(chance.uniform(0, 0.08))
        kill(process)
        yield on_record(run.store)


def outlived(run: Run, start: Start, endpoint: FakeEndpoint, *, kills: int) -> None:
    """Checks that a run that is killed so often ends as any other."""
    kept: set[str] = set()
    for now in killed(run, start, endpoint, kills=kills, chance=random.Random(kills)):
        assert kept <= now, "what was on record stays there"
        kept = now
    lines = lines_of(*start(run))
    # Paid for twice are at most those that were under way when it died.
    asyncio.run(ended_well(run, endpoint, lines, twice=kills * AT_ONCE))


def test_a_run_that_is_killed_three_times_loses_nothing(tmp_path: Path, start: Start, endpoint: FakeEndpoint) -> None:
    run = Run(url=endpoint.url, store=tmp_path / "store", pictures=12, concurrency=AT_ONCE)
    outlived(run, start, endpoint, kills=3)


@pytest.mark.soak
def test_a_run_that_is_killed_twenty_times_loses_nothing(tmp_path: Path, start: Start, endpoint: FakeEndpoint) -> None:
    run = Run(url=endpoint.url, store=tmp_path / "store", pictures=60, concurrency=AT_ONCE)
    outlived(run, start, endpoint, kills=20)


def test_two_processes_at_once_ask_for_everything_once(tmp_path: Path, start: Start, endpoint: FakeEndpoint) -> None:
    run = Run(url=endpoint.url, store=tmp_path / "store", pictures=12, concurrency=AT_ONCE)
    one, two = (lines_of(*begun) for begun in [start(run), start(run)])
    assert stable(one) == stable(two)
    asyncio.run(ended_well(run, endpoint, one, twice=0))
    made: list[Any] = [line["meta"]["calls"] for line in (*one, *two)]
    assert (asked_twice(endpoint), sum(made)) == (0, 12 * CALLS)


@SERIAL
def test_a_killed_process_holds_up_no_other(tmp_path: Path, start: Start, endpoint: FakeEndpoint) -> None:
    run = Run(url=endpoint.url, store=tmp_path / "store", pictures=12, concurrency=AT_ONCE)
    (first, _), second = start(run), start(run)
    endpoint.wait(20)
    kill(first)
    killed_at = time.monotonic()
    lines = lines_of(*second)
    assert time.monotonic() - killed_at < EXPIRY, "sooner than a lease without signs of life expires"
    asyncio.run(ended_well(run, endpoint, lines, twice=AT_ONCE))
