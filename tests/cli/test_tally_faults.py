"""What `askance run` says at its end after faults: what came of the pictures, and every request that was made."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Command, Done, draw, link_of, start, telling
from tests.faults.run import asked_twice, room
from tests.faults.table import LASTING, PASSING, Lasting, Passing, faulty
from tests.servers import Answer, FakeEndpoint, Seen, error

CALLS = 5
"""Calls that `askance run verbalize` makes for a picture."""
PRICE = "cost not known (no price is set)"
PROBE = "1 more to see what the endpoint can do"


def tokens(answers: int) -> str:
    return f"{18 * answers} tokens"


def run(askance: Command, script: Callable[[Seen], Answer], *more: str) -> tuple[Done, FakeEndpoint]:
    with FakeEndpoint(script) as endpoint:
        done = askance("run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--json", *more)
    return done, endpoint


COUNTED = {name: passing for name, passing in PASSING.items() if not passing.slow or name == "429 in milliseconds"}
"""Of the rate limits one: how long each asks to wait makes no difference to the count."""


@pytest.mark.usefixtures("ads")
@pytest.mark.parametrize("passing", COUNTED.values(), ids=COUNTED)
def test_faults_that_pass_are_counted(askance: Command, passing: Passing) -> None:
    done, endpoint = run(askance, faulty(passing.fault, every=5, text=telling))

    assert (done.code, asked_twice(endpoint)) == (0, 3)
    assert done.err == (
        "3 of 3 images: 3 answered\n"
        f"15 calls made · 0 replayed · {PROBE} · 3 more tries failed (3 × {passing.said}) · {tokens(16)} · {PRICE}\n"
    )


@pytest.mark.usefixtures("ads")
def test_each_try_that_failed_is_said_where_the_log_is_wanted(
    askance: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKANCE_LOG", "debug")
    done, endpoint = run(askance, faulty(PASSING["503"].fault, every=16, text=telling))
    line, *counts = done.err.splitlines()
    assert len(counts) == 2
    assert line == (
        f"askance: openai:m@{endpoint.url}: try 1, 0.0 s: ServerFault: {endpoint.url} failed (status 503): The server "
        "is overloaded. Try again later; the server's log may say more."
    )


def test_another_level_of_the_log_is_refused(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_LOG", "loud")
    done = askance("run", "verbalize", "ads", "--vlm", "openai:m@http://localhost:1/v1")
    assert (done.code, done.err) == (
        2,
        "askance: ASKANCE_LOG is 'loud'.\n  → Set it to `debug`, or to nothing.\n",
    )


@pytest.mark.usefixtures("ads")
@pytest.mark.parametrize("lasting", LASTING.values(), ids=LASTING)
def test_what_lasts_is_counted_once(askance: Command, lasting: Lasting) -> None:
    done, endpoint = run(askance, lambda seen: lasting.reply if link_of(seen) == "unusual" else telling(seen))

    made, failed = (9, "3 failed · ") if lasting.failed else (12, "")
    assert (done.code, len(endpoint.requests), asked_twice(endpoint)) == (1, 12 + 1, 0)
    assert {line["links"]["unusual"]["outcome"] for line in done.lines} == {lasting.outcome}
    assert done.err.splitlines()[-2:] == [
        "3 of 3 images: 3 skipped",
        f"{made} calls made · 0 replayed · {PROBE} · {failed}{tokens(13 if lasting.counted else 10)} · {PRICE}",
    ]


@pytest.mark.usefixtures("ads")
def test_calls_that_fail_after_all_are_counted_beside_their_tries(askance: Command) -> None:
    done, endpoint = run(
        askance, lambda seen: error(500, "It broke.") if link_of(seen) == "scene_text" else telling(seen)
    )

    assert (done.code, len(endpoint.requests)) == (1, 9 + 1 + 3 * 5)
    assert done.err.splitlines()[-2:] == [
        "3 of 3 images: 3 skipped",
        f"9 calls made · 0 replayed · {PROBE} · 12 more tries failed (12 × 500) · 3 failed · {tokens(10)} · {PRICE}",
    ]
    for line in done.lines:
        meta = line["meta"]
        tries = meta["tries"][meta["failed"]["scene_text"]]
        assert (meta["failed"].keys(), len(tries)) == ({"scene_text"}, 5)
        assert all(one["error"].startswith("ServerFault: ") and one["at"] > 1e9 for one in tries)
        assert meta["seconds"] >= sum(one["seconds"] for one in tries) > 0


@pytest.mark.usefixtures("ads")
def test_what_a_killed_run_had_answered_is_replayed(askance: Command, own_place: Path) -> None:
    with FakeEndpoint(telling, delay=0.05) as endpoint:
        command = ("run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--json", "--concurrency", "2")
        with start(*command, cwd=own_place) as process:
            endpoint.wait(8, timeout=60)
            process.send_signal(signal.SIGKILL)
        asked = len(endpoint.requests)
        done = askance(*command)

    made = len(endpoint.requests) - asked
    assert asked_twice(endpoint) <= 2, "those that were under way"
    assert done.err == (
        f"3 of 3 images: 3 answered\n{made} calls made · {3 * CALLS - made} replayed · {tokens(made)} · {PRICE}\n"
    )


def test_answers_that_are_not_on_record_are_counted(askance: Command, own_place: Path) -> None:
    draw(own_place / "ads", *(f"{number}.png" for number in range(20)))
    with FakeEndpoint(telling) as endpoint:
        command = ("run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--json")
        with room(250_000):
            first = askance(*command)
        made = len(endpoint.requests)
        again = askance(*command)

    lost = len(endpoint.requests) - made
    assert 0 < lost < 20 * CALLS
    assert first.err.splitlines()[1:] == [
        "20 of 20 images: 20 answered",
        f"100 calls made · 0 replayed · {PROBE} · 1,818 tokens · {PRICE} · {lost} answers are not on record",
    ]
    assert (first.code, first.err.count("askance: Answers are not recorded"), again.stable) == (0, 1, first.stable)
