"""Numbers of tokens that no call can take: they count as unknown, whoever gives them, and are said once."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from askance.chat import MOST_TOKENS, ChatResponse, Message, TextPart, Usage
from askance.errors import OverBudget
from askance.models import Engine, RetryPolicy, get_model
from askance.models.budget import BudgetGuard
from askance.models.langchain.messages import to_response
from askance.models.openai.chat_completions import from_chat
from askance.models.openai.responses import from_responses
from askance.replay import Budget, MemoryStore, SqliteLedger
from tests.servers import FakeEndpoint, chat_body, responses_body

IMPOSSIBLE: dict[str, Any] = {
    "negative": -1000,
    "a fraction": 7.5,
    "a truth value": True,
    "a text": "7",
    "a list": [7],
    "more than any": MOST_TOKENS + 1,
    "beyond 64 bits": 10**30,
    "not a number": float("nan"),
}


@pytest.mark.parametrize("count", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_count_is_unknown_and_named(count: Any) -> None:
    usage = Usage(input=count, output=7, cached=count)
    assert usage == Usage(output=7)
    assert usage.canonical() == {"output": 7}
    assert usage.impossible.startswith("input ")
    assert ", cached " in usage.impossible


@pytest.mark.parametrize("count", [0, 1, MOST_TOKENS, None])
def test_any_other_count_stays(count: int | None) -> None:
    usage = Usage(input=count, output=count, cached=count, image=count, thinking=count)
    assert (usage.input, usage.thinking, usage.impossible) == (count, count, "")


@pytest.mark.parametrize("count", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_every_reader_of_replies_leaves_it_unknown(count: Any) -> None:
    message = AIMessage("A cup.")
    message.usage_metadata = {"input_tokens": count, "output_tokens": 7, "total_tokens": 18}
    read = (
        from_chat(chat_body() | {"usage": {"prompt_tokens": count, "completion_tokens": 7}}),
        from_responses(responses_body() | {"usage": {"input_tokens": count, "output_tokens": 7}}),
        to_response(message),
    )
    for response in read:
        assert response.usage == Usage(output=7)
        assert response.usage.impossible


async def test_a_server_that_counts_backwards_does_not_lengthen_a_budget(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each call counts at its worst case, and what was recorded is whole."""
    guard, records = BudgetGuard(SqliteLedger(tmp_path / "run.db", Budget(tokens=2_000))), MemoryStore()
    body = chat_body("A cup.") | {"usage": {"prompt_tokens": -1000, "completion_tokens": 7, "total_tokens": -993}}
    with FakeEndpoint(lambda _: body) as endpoint, caplog.at_level(logging.WARNING, "askance"):
        engine = Engine(records=records, budget=guard, policy=RetryPolicy(tries=1))
        model = get_model(f"openai:fake-model@{endpoint.url}", engine=engine, protocol="prompted")
        asked = [
            model.request([Message("user", (TextPart(f"What is odd about {number}?"),))], max_tokens=100)
            for number in range(40)
        ]
        ended = await asyncio.gather(*map(model.generate, asked), return_exceptions=True)
        spent = (await guard.balance()).spent
        await model.aclose()
        await engine.aclose()

    answered = [end for end in ended if isinstance(end, ChatResponse)]
    assert {type(end) for end in ended} == {ChatResponse, OverBudget}
    assert len(endpoint.requests) == len(answered) < 20
    assert (spent.tokens <= 2_000, spent.calls) == (True, len(answered))
    assert spent.tokens > 100 * len(answered)
    assert [record.response["usage"] for record in records] == [{"output": 7}] * len(answered)
    said = [record.getMessage() for record in caplog.records if "no call can take" in record.getMessage()]
    (warning,) = said
    assert warning == (
        f"{model.id} counts tokens that no call can take (input -1000): such counts are unknown, and a budget counts "
        "these calls at their worst case."
    )
