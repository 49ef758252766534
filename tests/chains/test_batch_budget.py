"""A budget around batches: what a batch can cost is set aside before it is made, and by the batch, not the process."""

from __future__ import annotations

import signal
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.models import Price
from askance.replay import Balance, Budget, Cost
from tests import replies
from tests.batch_client import JsonObject, Run, answer, draw
from tests.batch_server import BatchServer, Serve
from tests.servers import Reply, chat_body

PROBES = 1
"""Calls online that show what the endpoint can do."""
TOKENS = 18
"""Of every answer."""
HALF = Price(input=1000.0, output=1000.0, batch=0.5)


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    return draw(tmp_path, 3)


def over(lines: list[JsonObject]) -> list[bool]:
    """Of each line, whether the budget had nothing left for it."""
    return [any(link.get("error") == "OverBudget" for link in line["links"].values()) for line in lines]


def balance(run: Run) -> Balance:
    ledger = run.ledger
    try:
        return ledger.balance()
    finally:
        ledger.close()


def calls(count: int) -> Cost:
    return Cost(nanodollars=count * TOKENS * 500_000, tokens=count * TOKENS, calls=count)


def test_what_a_batch_came_to_takes_the_place_of_what_it_could(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures, budget=Budget(dollars=100.0), settings={"price": HALF})
        lines = run.in_batches()

    assert ([line["outcome"] for line in lines], over(lines)) == (["answered"] * 3, [False] * 3)
    probe = Cost(nanodollars=TOKENS * 1_000_000, tokens=TOKENS, calls=PROBES)
    assert balance(run) == Balance(spent=probe + calls(21), lost=Cost(), reserved=Cost())


def test_an_answer_with_impossible_counts_of_tokens_counts_at_its_worst_case(
    tmp_path: Path, pictures: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def backwards(body: JsonObject) -> Reply:
        return Reply(body=chat_body(answer(body)) | {"usage": {"prompt_tokens": 11, "completion_tokens": -(10**6)}})

    with BatchServer(tmp_path / "endpoint", answer=backwards) as server:
        run = Run(server.url, tmp_path, pictures, budget=Budget(tokens=100_000), settings={"max_tokens": 200})
        lines = run.in_batches()

    assert [line["outcome"] for line in lines] == ["answered"] * 3
    spent = balance(run).spent
    assert (spent.calls, spent.tokens > 200 * 22) == (PROBES + 21, True)
    said = [record.getMessage() for record in caplog.records if "no call can take" in record.getMessage()]
    assert (len(said), "(output -1000000)" in said[0]) == (1, True)


def test_the_limit_is_never_passed_and_a_larger_one_goes_on(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures, budget=Budget(calls=PROBES + 10))
        first = run.in_batches()
        made = server.made.total()
        again = replace(run, budget=Budget(calls=PROBES + 21)).in_batches()

        assert (made, server.made.total(), set(server.made.values())) == (10, 21, {1})
    assert (over(first)[-1], over(again)) == (True, [False] * 3)
    assert [line["outcome"] for line in again] == ["answered"] * 3


def test_calls_wait_for_what_batches_under_way_leave(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    """The worst cases of three pictures do not fit at once, but one after the other."""
    with serve() as server:
        run = Run(server.url, tmp_path, pictures, budget=Budget(tokens=25_000), settings={"max_tokens": 2_000})
        lines = run.in_batches()

        assert ([line["outcome"] for line in lines], over(lines)) == (["answered"] * 3, [False] * 3)
        assert (len(server.batches) > 3, set(server.made.values())) == (True, {1})
    assert balance(run).reserved == Cost()


def test_kills_lose_nothing_that_is_set_aside(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    kills = cycle([(1, "after"), (2, "before"), (2, "torn")])
    with serve() as server:
        run = Run(server.url, tmp_path, pictures[:2], budget=Budget(calls=PROBES + 14))
        code, where = -signal.SIGKILL, balance(run)
        while code == -signal.SIGKILL:
            process = run.killed_at(*next(kills)).alone()
            process.join(60)
            code, where = process.exitcode, balance(run)
            assert where.spent.calls + where.reserved.calls >= server.made.total()
            assert where.spent.calls + where.reserved.calls <= PROBES + 14 + where.lost.calls

        assert (code, len(server.batches), set(server.made.values()), server.made.total()) == (0, 3, {1}, 14)
        assert where.reserved == Cost()
        assert where.spent.calls - where.lost.calls == PROBES + 14
        assert [line["outcome"] for line in run.lines] == ["answered"] * 2


ENDS: dict[str, tuple[Reply, int]] = {"rejected": (replies.OPENAI_TOO_LONG, 0), "a fault": (replies.OVERLOADED, 3)}


@pytest.mark.parametrize(("reply", "billed"), ENDS.values(), ids=ENDS)
def test_what_may_be_billed_counts_at_its_worst(
    serve: Serve, tmp_path: Path, pictures: list[str], reply: Reply, billed: int
) -> None:
    def failing(body: JsonObject) -> Reply | str:
        name = body["response_format"].get("json_schema", {}).get("name")
        return reply if name == "unusual" else answer(body)

    with serve() as server:
        server.answer = failing
        run = Run(server.url, tmp_path, pictures[:1], budget=Budget(calls=100))
        run.in_batches()

    answered = 5  # without what is unusual, neither the description nor what follows from it alone
    assert balance(run).spent.calls - PROBES - billed in {answered - 2, answered - 1, answered}


def test_what_an_earlier_job_left_counts_in_full(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures[:1], budget=Budget(calls=100))
        process = run.killed_at(6, "after").alone()
        process.join(60)
        held = balance(run).reserved
        for file in (tmp_path / "batches").iterdir():
            file.unlink()
        run.in_batches()

    assert held.calls == 4
    assert balance(run).lost.calls == 4


def test_a_job_that_was_begun_without_a_budget_goes_on_without(
    serve: Serve, tmp_path: Path, pictures: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures[:1])
        run.killed_at(6, "after").alone().join(60)
        held = replace(run, budget=Budget(calls=100))
        lines = held.in_batches()

    assert [line["outcome"] for line in lines] == ["answered"]
    assert "Batches that were begun without a budget do not count in it: 1." in caplog.text
    assert balance(held).spent.calls == 3


def test_a_price_that_is_not_known_is_refused(tmp_path: Path, pictures: list[str]) -> None:
    run = Run("http://127.0.0.1:9/v1", tmp_path, pictures, budget=Budget(dollars=5))
    with pytest.raises(UsageError, match=r"costs is not known, so a budget in dollars cannot hold it"):
        run.in_batches()
    assert not (tmp_path / "batches").exists()
