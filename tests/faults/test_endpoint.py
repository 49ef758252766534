"""The seven-call chain against an endpoint that has bad days: every picture ends well, and nothing is made up."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.models import RetryPolicy
from tests import replies
from tests.faults.run import CALLS, Run, answer, asked_twice, digest, invented, outcomes, stable
from tests.servers import Answer, FakeEndpoint, JsonObject, Reply, Seen, chat_body, error

Fault = Callable[[JsonObject], Answer]


def faulty(fault: Fault, *, every: int = 3) -> Callable[[Seen], Answer]:
    """Answers; the first time that it is asked every third question, it does `fault`."""
    seen: set[str] = set()

    def reply(request: Seen) -> Answer:
        body = request.json
        mark = digest(body)
        if mark not in seen:
            seen.add(mark)
            if len(seen) % every == 0:
                return fault(body)
        return answer(body)

    return reply


def slow_down(headers: dict[str, str]) -> Fault:
    return lambda _: error(429, "Slow down.", headers=headers)


PASSING: dict[str, Fault] = {
    "429 with Retry-After": slow_down({"retry-after": "1"}),
    "429 without": slow_down({}),
    "429 in milliseconds": slow_down({"retry-after-ms": "20"}),
    "500": lambda _: error(500, "It broke."),
    "503": lambda _: replies.OVERLOADED,
    "408": lambda _: error(408, "Too slow."),
    "409": lambda _: error(409, "Conflict."),
    "425": lambda _: error(425, "Too early."),
    "reset before": lambda _: replies.RESET,
    "reset in mid-body": lambda body: Reply(body=chat_body(answer(body)), cut=40, reset=True),
    "cut in mid-body": lambda body: Reply(body=chat_body(answer(body)), cut=40),
    "truncated JSON": lambda _: replies.CUT_JSON,
    "no JSON": lambda _: Reply(body="<html>Welcome</html>", headers={"content-type": "text/html"}),
    "nothing": lambda _: Reply(),
    "wrong shape": lambda _: Reply(body={"choices": {"message": "a cup"}}),
    "another wrong shape": lambda _: Reply(body='["a cup"]'),
    "no choices": lambda _: Reply(body={**chat_body(), "choices": []}),
    "an error in a reply of status 200": lambda _: Reply(body={"error": {"message": "Down.", "code": 502}}),
}

SLOW = {"429 with Retry-After", "429 without"}
"""Those that ask for pauses of seconds, so that a few must do."""


@pytest.mark.parametrize("name", PASSING)
async def test_what_passes_costs_nothing_but_time(tmp_path: Path, name: str) -> None:
    every = 10 if name in SLOW else 3
    with FakeEndpoint(faulty(PASSING[name], every=every)) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path)
        lines = await run.lines()
    tries = [one for line in lines for tries in line["meta"]["tries"].values() for one in tries]
    faults = sum(one["error"] is not None for one in tries)
    assert (outcomes(lines), faults) == (["answered"] * 4, 4 * CALLS // every)
    assert (asked_twice(endpoint), invented(tmp_path, endpoint)) == (faults, set())
    assert stable(await Run(url=run.url, store=tmp_path, mode="replay").lines()) == stable(lines)


HANGING: dict[str, Fault] = {
    "silence": lambda _: replies.SILENT,
    "one byte a second": lambda body: Reply(body=chat_body(answer(body)), drip=1.0),
}


@pytest.mark.parametrize("fault", HANGING.values(), ids=HANGING)
async def test_what_hangs_is_cut_off_and_asked_again(tmp_path: Path, fault: Fault) -> None:
    with FakeEndpoint(faulty(fault, every=9)) as endpoint:
        lines = await Run(url=endpoint.url, store=tmp_path, timeout=2.0).lines()
    assert outcomes(lines) == ["answered"] * 4
    assert (asked_twice(endpoint) >= 3, invented(tmp_path, endpoint)) == (True, set())


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        pytest.param(chat_body("A cu", finish="length"), "truncated", id="length"),
        pytest.param(chat_body("A cu", finish="content_filter"), "filtered", id="content filter"),
        pytest.param(chat_body(None, refusal="I cannot help with that."), "refused", id="refusal"),
        pytest.param(error(400, "No.", code="content_filter"), "filtered", id="filtered before"),
        pytest.param(error(400, "That parameter is wrong."), "failed", id="rejected"),
        pytest.param(error(422, "That cannot be processed."), "failed", id="unprocessable"),
    ],
)
async def test_what_lasts_is_an_outcome_and_is_not_asked_again(tmp_path: Path, reply: Answer, outcome: str) -> None:
    def script(request: Seen) -> Answer:
        body = request.json
        name = body.get("response_format", {}).get("json_schema", {}).get("name")
        return reply if name == "unusual" else answer(body)

    with FakeEndpoint(script) as endpoint:
        lines = await Run(url=endpoint.url, store=tmp_path).lines()
    links = [{name: link["outcome"] for name, link in line["links"].items()} for line in lines]
    assert [(each["unusual"], each["answers"]) for each in links] == [(outcome, "skipped")] * 4
    assert {each[link] for each in links for link in ("objects", "scene_text", "narration")} == {"answered"}
    assert asked_twice(endpoint) == 0


async def test_an_answer_of_the_wrong_shape_is_asked_again_with_what_was_wrong(tmp_path: Path) -> None:
    def red(body: JsonObject) -> str:
        asked_again = any(message["role"] == "assistant" for message in body["messages"])
        return answer(body) if asked_again else '{"colour": "red"}'

    with FakeEndpoint(faulty(red, every=5)) as endpoint:
        lines = await Run(url=endpoint.url, store=tmp_path).lines()
    assert outcomes(lines) == ["answered"] * 4
    assert len(endpoint.requests) > 4 * CALLS


async def test_the_id_of_another_reply_confuses_nobody(tmp_path: Path) -> None:
    numbers = itertools.count()
    with FakeEndpoint(lambda seen: {**chat_body(answer(seen.json)), "id": f"chat-{next(numbers) // 5}"}) as endpoint:
        lines = await Run(url=endpoint.url, store=tmp_path).lines()
    assert (outcomes(lines), invented(tmp_path, endpoint)) == (["answered"] * 4, set())


async def test_bursts_of_faults_are_outlived(tmp_path: Path) -> None:
    numbers = itertools.count()

    def bursts(seen: Seen) -> Answer:
        return error(503, "Overloaded.") if next(numbers) % 20 >= 10 else answer(seen.json)

    with FakeEndpoint(bursts) as endpoint:
        lines = await Run(url=endpoint.url, store=tmp_path).lines()
    assert (outcomes(lines), invented(tmp_path, endpoint)) == (["answered"] * 4, set())


async def _restarted(store: Path, seconds: float, policy: RetryPolicy) -> tuple[list[JsonObject], FakeEndpoint]:
    """The lines of a run whose endpoint is away for `seconds` in the middle."""
    with FakeEndpoint(lambda seen: answer(seen.json), delay=0.02) as endpoint:

        def restart() -> None:
            endpoint.wait(15)
            endpoint.down()
            time.sleep(seconds)
            endpoint.up()

        thread = threading.Thread(target=restart)
        thread.start()
        lines = await Run(url=endpoint.url, store=store, pictures=10, policy=policy).lines()
        await asyncio.to_thread(thread.join)
    return lines, endpoint


async def test_a_restart_of_the_server_loses_nothing(tmp_path: Path) -> None:
    lines, endpoint = await _restarted(tmp_path, 1.5, RetryPolicy(tries=2, first_wait=0.05))
    assert (outcomes(lines), invented(tmp_path, endpoint)) == (["answered"] * 10, set())
    assert asked_twice(endpoint) <= 16, "those that were under way"


@pytest.mark.slow
async def test_a_long_restart_of_the_server_loses_nothing(tmp_path: Path) -> None:
    lines, endpoint = await _restarted(tmp_path, 20, RetryPolicy())
    assert (outcomes(lines), invented(tmp_path, endpoint)) == (["answered"] * 10, set())


async def test_a_server_that_does_not_come_back_leaves_every_picture_an_outcome(tmp_path: Path) -> None:
    with FakeEndpoint(lambda seen: answer(seen.json), delay=0.02) as endpoint:
        run = Run(url=endpoint.url, store=tmp_path, pictures=10, policy=RetryPolicy(first_wait=0.02, deadline=1.0))
        reading = asyncio.ensure_future(run.lines())
        await asyncio.to_thread(endpoint.wait, 15)
        endpoint.down()
        lines = await reading
        endpoint.up()
    assert len(lines) == 10
    assert {link["outcome"] for line in lines for link in line["links"].values()} <= {"answered", "failed", "skipped"}
    assert invented(tmp_path, endpoint) == set()


async def test_a_jump_of_the_clock_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumps: Any = itertools.cycle([0.0, 4e9, 1e9, 2e9])
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    with FakeEndpoint(faulty(slow_down({"retry-after-ms": "20"}))) as endpoint:
        lines = await asyncio.wait_for(Run(url=endpoint.url, store=tmp_path).lines(), 30)
    assert (outcomes(lines), invented(tmp_path, endpoint)) == (["answered"] * 4, set())
