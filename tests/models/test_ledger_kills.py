"""With random prices, calls at once and crashes, over several processes of one ledger: the limit is never passed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from multiprocessing import Process
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.models import Price
from askance.replay import Balance, Budget, Cost, SqliteLedger
from tests.conftest import SERIAL
from tests.models import spender
from tests.models.spender import LONGEST, most, request
from tests.processes import begin

pytestmark = SERIAL


@dataclass(frozen=True)
class Worker:
    """A process: calls at once, the probability to die at each step, and seconds until it is killed."""

    tasks: int
    deaths: float
    killed: float | None


DOLLARS = st.integers(100, 1_000_000).map(lambda number: number / 10_000)
PRICES = st.builds(Price, input=DOLLARS, output=DOLLARS, cached=st.none() | st.just(0.005), written=st.none() | DOLLARS)
WORKERS = st.builds(
    Worker,
    tasks=st.integers(1, 8),
    deaths=st.sampled_from([0.0, 0.0, 0.01, 0.05, 0.2]),
    killed=st.none() | st.floats(0, 0.3),
)
DRAWN = given(
    price=PRICES, limit=st.floats(0, 30), workers=st.lists(WORKERS, min_size=2, max_size=3), seed=st.integers(0, 2**32)
)
"""`limit` is in what the longest call can cost."""


def never_passed(price: Price, limit: float, workers: list[Worker], seed: int) -> None:
    longest = most(request(LONGEST, LONGEST), price)
    nano = int(limit * longest)
    with TemporaryDirectory() as name:
        folder = Path(name)
        codes = ended(
            [start(folder, price, nano, worker, seed + place) for place, worker in enumerate(workers)], workers
        )
        (last,) = ended([start(folder, price, nano, CAREFUL, seed + 99)], [CAREFUL])
        balance, (billed, counted) = balance_in(folder, nano), invoice_in(folder)

    spent = balance.spent.nanodollars
    assert (set(codes) <= {0, 9, -9}, last) == (True, 0)
    assert billed <= counted <= spent <= nano < spent + longest  # never passed, and used up
    assert balance.reserved == Cost()
    assert spent - balance.lost.nanodollars <= counted
    if not any(codes):
        assert (spent, balance.lost) == (counted, Cost())


test_the_limit_is_never_passed = settings(max_examples=12)(DRAWN(never_passed))
test_the_limit_is_never_passed_more_often = pytest.mark.soak(settings(max_examples=60)(DRAWN(never_passed)))


CAREFUL = Worker(tasks=2, deaths=0.0, killed=None)


def start(folder: Path, price: Price, limit: int, worker: Worker, seed: int) -> Process:
    asked = {"tasks": worker.tasks, "deaths": worker.deaths, "limit": limit, "seed": seed}
    return begin(partial(spender.main, folder, price, **asked))


def ended(processes: list[Process], workers: list[Worker]) -> list[int | None]:
    """Exit codes, after killing those that are to be killed, each in its time; None of one that does not end."""
    begun = time.monotonic()
    for worker, process in sorted(zip(workers, processes, strict=True), key=lambda pair: pair[0].killed or 0):
        if worker.killed is not None:
            time.sleep(max(0.0, begun + worker.killed - time.monotonic()))
            process.kill()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


def balance_in(folder: Path, limit: int) -> Balance:
    book = SqliteLedger(folder / "run.db", Budget(dollars=limit / 1e9))
    try:
        return book.balance()
    finally:
        book.close()


def invoice_in(folder: Path) -> tuple[int, int]:
    """What the server billed, and what the ledger had to count for it, in nanodollars."""
    lines = [line.split() for line in (folder / "invoice").read_text().splitlines()]
    return sum(int(bill) for bill, _ in lines), sum(int(counted) for _, counted in lines)
