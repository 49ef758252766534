"""What becomes of a run whose process dies, and of two that run at once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.replay import Store
from tests.faults.run import CALLS, Run, answer, asked_twice, command, ended_well, stable
from tests.servers import FakeEndpoint, JsonObject

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 8


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(lambda seen: answer(seen.json), delay=0.05) as endpoint:
        yield endpoint


def start(run: Run) -> subprocess.Popen[str]:
    return subprocess.Popen(command(run), stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ))


def lines_of(process: subprocess.Popen[str]) -> list[JsonObject]:
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return [json.loads(line) for line in out.splitlines()]


def on_record(store: Path) -> set[str]:
    with Store.open(store, read_only=True) as records:
        return {record.key for record in records}


def killed(run: Run, endpoint: FakeEndpoint, *, kills: int, chance: random.Random) -> Iterator[set[str]]:
    """Starts the run again and again and kills it at random moments; gives what was on record after each."""
    for _ in range(kills):
        already = len(endpoint.requests)
        with start(run) as process:
            endpoint.wait(already + chance.randrange(1, 2 * AT_ONCE), timeout=60)
            time.sleep(chance.uniform(0, 0.08))
            process.send_signal(signal.SIGKILL)
        yield on_record(run.store)


def outlived(run: Run, endpoint: FakeEndpoint, *, kills: int) -> None:
    """Checks that a run that is killed so often ends as any other."""
    kept: set[str] = set()
    for now in killed(run, endpoint, kills=kills, chance=random.Random(kills)):
        assert kept <= now, "what was on record stays there"
        kept = now
    with start(run) as process:
        lines = lines_of(process)
    # Paid for twice are at most those that were under way when it died.
    asyncio.run(ended_well(run, endpoint, lines, twice=kills * AT_ONCE))


def test_a_run_that_is_killed_three_times_loses_nothing(tmp_path: Path, endpoint: FakeEndpoint) -> None:
    outlived(Run(url=endpoint.url, store=tmp_path, pictures=12, concurrency=AT_ONCE), endpoint, kills=3)


@pytest.mark.slow
def test_a_run_that_is_killed_twenty_times_loses_nothing(tmp_path: Path, endpoint: FakeEndpoint) -> None:
    outlived(Run(url=endpoint.url, store=tmp_path, pictures=60, concurrency=AT_ONCE), endpoint, kills=20)


def _together(runs: Sequence[Run]) -> list[list[JsonObject]]:
    return [lines_of(process) for process in [start(run) for run in runs]]


def test_two_processes_at_once_ask_for_everything_once(tmp_path: Path, endpoint: FakeEndpoint) -> None:
    run = Run(url=endpoint.url, store=tmp_path, pictures=12, concurrency=AT_ONCE)
    one, two = _together([run, run])
    assert stable(one) == stable(two)
    asyncio.run(ended_well(run, endpoint, one, twice=0))
    made: list[Any] = [line["meta"]["calls"] for line in (*one, *two)]
    assert (asked_twice(endpoint), sum(made)) == (0, 12 * CALLS)


def test_a_killed_process_holds_up_no_other(tmp_path: Path, endpoint: FakeEndpoint) -> None:
    run = Run(url=endpoint.url, store=tmp_path, pictures=12, concurrency=AT_ONCE)
    with start(run) as first, start(run) as second:
        endpoint.wait(20, timeout=60)
        first.kill()
        killed_at = time.monotonic()
        lines = lines_of(second)
    assert time.monotonic() - killed_at < 25, "sooner than a lease without signs of life expires"
    asyncio.run(ended_well(run, endpoint, lines, twice=AT_ONCE))
