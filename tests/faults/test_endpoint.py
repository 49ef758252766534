"""The seven-call chain against an endpoint that has bad days: every picture ends well, and nothing is made up."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from askance.errors import ModelError
from askance.models import RetryPolicy, headers, limits
from askance.models.limits import DEFAULT_CONCURRENCY
from askance.replay import Mode, record
from tests import replies
from tests.faults.run import CALLS, Run, answer, asked_twice, ended_well, outcomes
from tests.faults.table import LASTING, PASSING, Fault, Lasting, Passing, faulty, slow_down_until
from tests.servers import Answer, FakeEndpoint, JsonObject, Reply, Seen, chat_body, error

HURRY = 20.0


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits does so for a twentieth of the time, and the clock that calls are paced by is as much faster."""
    sleep, monotonic = asyncio.sleep, time.monotonic

    def quick(seconds: float) -> Coroutine[Any, Any, None]:
        return sleep(seconds / HURRY)

    monkeypatch.setattr(asyncio, "sleep", quick)
    monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: HURRY * monotonic()))


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
async def test_what_passes_costs_nothing_but_time(tmp_path: Path, passing: Passing) -> None:
    every = 10 if passing.slow else 3
    with FakeEndpoint(faulty(passing.fault, every=every)) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path)
        lines = await run.lines()
    faults = failures(lines)
    assert asked_twice(endpoint) == faults == 4 * CALLS // every
    await ended_well(run, endpoint, lines, twice=faults)


def failures(lines: list[JsonObject]) -> int:
    """Tries that have failed."""
    tries = [one for line in lines for tries in line["meta"]["tries"].values() for one in tries]
    return sum(one["error"] is not None for one in tries)


HANGING: dict[str, Fault] = {
    "silence": lambda _: replies.SILENT,
    "one byte a second": lambda body: Reply(body=chat_body(answer(body)), drip=1.0),
}


@pytest.mark.parametrize("fault", HANGING.values(), ids=HANGING)
async def test_what_hangs_is_cut_off_and_asked_again(tmp_path: Path, fault: Fault) -> None:
    with FakeEndpoint(faulty(fault, every=9)) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path, timeout=0.7)
        lines = await run.lines()
    # On a busy machine others may be cut off as well.
    cut_off = failures(lines)
    assert 3 <= asked_twice(endpoint) <= cut_off
    await ended_well(run, endpoint, lines, twice=cut_off)


@pytest.mark.parametrize("lasting", LASTING.values(), ids=LASTING)
async def test_what_lasts_is_an_outcome_and_is_not_asked_again(tmp_path: Path, lasting: Lasting) -> None:
    def script(request: Seen) -> Answer:
        body = request.json
        name = body.get("response_format", {}).get("json_schema", {}).get("name")
        return lasting.reply if name == "unusual" else answer(body)

    with FakeEndpoint(script) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path)
        lines = await run.lines()
    links = [{name: link["outcome"] for name, link in line["links"].items()} for line in lines]
    assert [(each["unusual"], each["answers"]) for each in links] == [(lasting.outcome, "skipped")] * 4
    assert {each[link] for each in links for link in ("objects", "scene_text", "narration")} == {"answered"}
    await ended_well(run, endpoint, lines, twice=0, outcome="skipped", also={"A cu", ""})


async def test_an_answer_of_the_wrong_shape_is_asked_again_with_what_was_wrong(tmp_path: Path) -> None:
    def red(body: JsonObject) -> str:
        asked_again = any(message["role"] == "assistant" for message in body["messages"])
        return answer(body) if asked_again else '{"colour": "red"}'

    with FakeEndpoint(faulty(red, every=5)) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path)
        lines = await run.lines()
    assert len(endpoint.requests) > 4 * CALLS
    await ended_well(run, endpoint, lines, twice=0, also={'{"colour": "red"}'})


async def test_the_id_of_another_reply_confuses_nobody(tmp_path: Path) -> None:
    numbers = itertools.count()
    with FakeEndpoint(lambda seen: {**chat_body(answer(seen.json)), "id": f"chat-{next(numbers) // 5}"}) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path)
        lines = await run.lines()
    await ended_well(run, endpoint, lines, twice=0)


async def test_bursts_of_faults_are_outlived(tmp_path: Path) -> None:
    numbers, failed = itertools.count(), list[Seen]()

    def bursts(seen: Seen) -> Answer:
        if next(numbers) % 20 < 10:
            return answer(seen.json)
        failed.append(seen)
        return error(503, "Overloaded.")

    with FakeEndpoint(bursts) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path)
        lines = await run.lines()
    await ended_well(run, endpoint, lines, twice=len(failed))


async def _outlives_a_restart(store: Path, away: Callable[[], object], policy: RetryPolicy) -> None:
    """Checks a run whose endpoint goes in the middle, and comes back when `away` returns."""
    with FakeEndpoint(lambda seen: answer(seen.json), delay=0.02) as endpoint:

        def restart() -> None:
            endpoint.wait(15)
            endpoint.down()
            away()
            endpoint.up()

        thread = threading.Thread(target=restart)
        thread.start()
        run = Run(url=endpoint.url, store=store, pictures=10, policy=policy)
        lines = await run.lines()
        await asyncio.to_thread(thread.join)
    await ended_well(run, endpoint, lines, twice=DEFAULT_CONCURRENCY)  # those that were under way


async def test_a_restart_of_the_server_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is away until calls have failed far more often than their tries would allow."""
    failed, enough = limits.EndpointLimits.failed, threading.Semaphore(0)

    def counted(self: limits.EndpointLimits, sent: float, error: ModelError) -> bool:
        enough.release()
        return failed(self, sent, error)

    monkeypatch.setattr(limits.EndpointLimits, "failed", counted)

    def away() -> None:
        for _ in range(8 * DEFAULT_CONCURRENCY):
            assert enough.acquire(timeout=60)

    await _outlives_a_restart(tmp_path, away, RetryPolicy(tries=2, first_wait=0.01, outage_wait=0.05))


@pytest.mark.slow(group="servers")
async def test_a_long_restart_of_the_server_loses_nothing(tmp_path: Path) -> None:
    await _outlives_a_restart(tmp_path, lambda: time.sleep(20), RetryPolicy())


async def test_a_server_that_does_not_come_back_leaves_every_picture_an_outcome(tmp_path: Path) -> None:
    with FakeEndpoint(lambda seen: answer(seen.json), delay=0.02) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path, pictures=10, policy=RetryPolicy(first_wait=0.02, deadline=0.5))
        reading = asyncio.ensure_future(run.lines())
        await asyncio.to_thread(endpoint.wait, 15)
        endpoint.down()
        lines = await reading
        endpoint.up()
    assert set(outcomes(lines)) <= {"answered", "failed", "skipped"} != {"answered"}
    await ended_well(run, endpoint, lines, twice=DEFAULT_CONCURRENCY, outcome=None)


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> Iterator[float]:
    """A clock of the wall that says another century whenever it is read."""
    jumps = itertools.cycle([0.0, 4e9, 1e9, 2e9])

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(next(jumps), tz)

    monkeypatch.setattr(time, "time", lambda: next(jumps))
    for module in (headers, record):
        monkeypatch.setattr(module, "datetime", Jumping)
    return jumps


@pytest.mark.usefixtures("jumping", "hurried")
@pytest.mark.parametrize(
    ("clock", "mode"), [(0, "auto"), (3600, "auto"), (-3600, "refresh")], ids=["as it was", "ahead", "behind"]
)
async def test_a_jump_of_the_clock_harms_nothing(tmp_path: Path, clock: float, mode: Mode) -> None:
    with FakeEndpoint(faulty(slow_down_until(clock=clock), every=10)) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path, mode=mode)
        lines = await asyncio.wait_for(run.lines(), 30)
    await ended_well(run, endpoint, lines, twice=4 * CALLS // 10)
