"""How likely a given text is: asked of a server by real HTTP, on record, planned, within a budget, or not offered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.chat import ChatRequest, ChatResponse, Message, ModelId, ResponseFormat, Sampling, TextPart
from askance.errors import BadRequest, MalformedReply, OverBudget, ReplayMiss, ServerFault
from askance.models import BudgetGuard, Engine, Model, RetryPolicy, ScriptedModel, get_model
from askance.models.likelihood import TextLikelihood, end_of_prompt, likelihood_of
from askance.models.openai.chat_completions import prompt_logprobs
from askance.models.token_estimate import worst_case
from askance.replay import Budget, MemoryStore, Record, SqliteLedger
from askance.replay.record import check_record
from tests.servers import FakeEndpoint, Reply, Seen, chat_body, error

GIVEN = "A dog is odd."
QUICK = RetryPolicy(tries=2, first_wait=0)


def weighing_server(seen: Seen) -> dict[str, Any]:
    """As vLLM's server answers: each word of the prompt is a token, the third in value where it is the first."""
    body = seen.json
    if "prompt_logprobs" not in body:
        return chat_body()
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)
    said = "".join(f"<{message['role']}> {message['content']} " for message in body["messages"]).split()
    places: list[dict[str, Any] | None] = [
        {str(place): {"logprob": -0.25 * place, "rank": 1, "decoded_token": f" {word}"}}
        for place, word in enumerate(said)
    ]
    return {**chat_body("x"), "prompt_logprobs": [None, *places[1:]]}


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(weighing_server) as served:
        yield served


Connect: TypeAlias = Callable[..., Model]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Models at an endpoint, closed afterwards; `fields` are those of an engine."""
    models: list[Model] = []

    def at(endpoint: FakeEndpoint, **fields: Any) -> Model:
        engine = Engine(records=fields.pop("records", MemoryStore()), policy=QUICK, **fields)
        models.append(get_model(f"openai:fake-model@{endpoint.url}", engine=engine))
        return models[-1]

    yield at
    for model in models:
        await model.aclose()


def question(model: Model, text: str = "Why is it funny?") -> ChatRequest:
    return model.request([Message("user", (TextPart(text),))])


# --- requests ---


def test_a_request_without_a_given_text_is_what_it_was() -> None:
    request = ChatRequest(model=ModelId("openai", "m"), messages=(Message("user", (TextPart("Hi"),)),))

    assert "given" not in request.canonical()
    assert request.kind == "chat"
    assert request.weighing("x").canonical() == {**request.canonical(), "given": "x"}
    assert request.weighing("x").kind == "score"
    assert len({request.key, request.weighing("x").key, request.weighing("y").key, request.weighing("").key}) == 4


def test_how_an_answer_is_written_does_not_matter_to_a_text() -> None:
    request = ChatRequest(model=ModelId("openai", "m"), messages=(Message("user", (TextPart("Hi"),)),))
    other = ChatRequest(
        model=request.model,
        messages=request.messages,
        response=ResponseFormat("json_object"),
        sampling=Sampling(temperature=1, max_tokens=5),
        draw=3,
    )

    assert other.weighing("x").key == request.weighing("x").key


def test_the_worst_case_holds_the_text_and_one_token() -> None:
    request = ChatRequest(model=ModelId("openai", "m"), messages=(Message("user", (TextPart("Hi"),)),))
    plain, weighed = worst_case(request), worst_case(request.weighing("é" * 50))

    assert (weighed.input or 0) - (plain.input or 0) == 100
    assert weighed.output == 1


# --- the end of a prompt ---


def test_the_end_of_a_prompt_is_found_whatever_the_blanks() -> None:
    prompt = [None, ("<user>", -9.0), ("\n", -8.0), ("A", -1.0), (" dog", -2.0), ("\n\n", -0.5), ("barks", -3.0)]

    found = end_of_prompt(prompt, "A dog  barks")

    assert found is not None
    assert [token["logprob"] for token in found] == [-1.0, -2.0, -0.5, -3.0]


def test_a_character_of_several_tokens_is_counted_whole() -> None:
    prompt = [None, (">", -9.0), ("", -1.0), ("", -1.0), ("“", -1.0), ("Odd", -1.0), ("", -1.0), ("”", -1.0)]

    found = end_of_prompt(prompt, "“Odd”")

    assert found is not None
    assert len(found) == 6


@pytest.mark.parametrize("text", ["A cat", "x A dog", "dog A dog A dog", "og"])
def test_a_prompt_that_ends_otherwise_is_not_weighed(text: str) -> None:
    assert end_of_prompt([None, ("A", -1.0), (" dog", -1.0)], text) is None


WORDS = st.lists(st.text(alphabet="ab “\n", min_size=1, max_size=4).filter(str.strip), min_size=1, max_size=6)


@given(WORDS, WORDS)
def test_the_tokens_found_are_those_of_the_text(before: list[str], words: list[str]) -> None:
    prompt = [None, *((word, -1.0) for word in before), ("|", -1.0), *((word, -0.5) for word in words)]

    found = end_of_prompt(prompt, "".join(words))

    assert found is not None
    assert [token["token"] for token in found] == words


@pytest.mark.parametrize("place", [{}, "x", {"1": {"logprob": "x", "decoded_token": "a"}}, {"1": {"logprob": -1.0}}])
def test_a_reply_of_another_shape_is_malformed(place: object) -> None:
    assert prompt_logprobs(None) is None
    with pytest.raises(MalformedReply):
        prompt_logprobs([None, place])


# --- a server ---


async def test_a_server_weighs_the_text_behind_the_prompt(connect: Connect, endpoint: FakeEndpoint) -> None:
    model = connect(endpoint)

    response = await model.generate(question(model).weighing(GIVEN))

    # <user> Why is it funny? <assistant> A dog is odd.: the words of the text are at the places 6 to 9
    assert likelihood_of(response) == TextLikelihood(nll=0.25 * (6 + 7 + 8 + 9), tokens=4)
    assert endpoint.bodies[0]["messages"][-1] == {"role": "assistant", "content": GIVEN}
    assert (endpoint.bodies[0]["max_tokens"], endpoint.bodies[0]["prompt_logprobs"]) == (1, 0)


async def test_it_is_on_record_and_replayed_without_the_server(connect: Connect, endpoint: FakeEndpoint) -> None:
    records = MemoryStore()
    model = connect(endpoint, records=records)
    request = question(model).weighing(GIVEN)
    live = await model.generate(request)
    endpoint.down()

    again = await model.generate(request)
    replayed = await connect(endpoint, records=records, mode="replay").generate(request)

    assert live == again == replayed
    assert replayed.meta.replayed
    (record,) = records.of_kind("score")
    check_record(record)
    assert record.request["given"] == GIVEN
    assert Record.from_canonical(json.loads(record.to_json())) == record


async def test_a_replay_without_it_says_what_is_nearest(connect: Connect, endpoint: FakeEndpoint) -> None:
    records = MemoryStore()
    model = connect(endpoint, records=records)
    await model.generate(question(model).weighing(GIVEN))

    with pytest.raises(ReplayMiss, match="odd") as missed:
        await connect(endpoint, records=records, mode="replay").generate(question(model).weighing("A dog is even."))
    assert missed.value.nearest


async def test_equal_calls_are_made_once_and_live_keeps_what_is_there(connect: Connect, endpoint: FakeEndpoint) -> None:
    records = MemoryStore()
    for mode in ("auto", "auto", "live"):
        model = connect(endpoint, records=records, mode=mode)
        await model.generate(question(model).weighing(GIVEN))

    assert (len(endpoint.requests), len(records)) == (2, 1)


async def test_a_fault_is_tried_again(connect: Connect) -> None:
    replies = iter([error(503, "overloaded")])
    with FakeEndpoint(lambda seen: next(replies, None) or weighing_server(seen)) as faulty:
        model = connect(faulty)
        response = await model.generate(question(model).weighing(GIVEN))

    assert (likelihood_of(response) or TextLikelihood(nll=0, tokens=0)).tokens == 4
    assert [each.error is None for each in response.meta.tries] == [False, True]


async def test_a_fault_that_stays_is_an_error_and_on_no_record(connect: Connect) -> None:
    records = MemoryStore()
    with FakeEndpoint(lambda _: error(500, "broken")) as broken:
        model = connect(broken, records=records)
        with pytest.raises(ServerFault):
            await model.generate(question(model).weighing(GIVEN))

    assert len(records) == 0


async def test_it_counts_against_the_budget(connect: Connect, endpoint: FakeEndpoint, tmp_path: Path) -> None:
    model = connect(endpoint, budget=BudgetGuard(SqliteLedger(tmp_path / "spent.db", Budget(calls=1))))
    await model.generate(question(model).weighing(GIVEN))

    with pytest.raises(OverBudget):
        await model.generate(question(model).weighing("Another."))


# --- not offered ---


UNKNOWN = error(400, "Unrecognized request argument supplied: prompt_logprobs", param="prompt_logprobs")


@pytest.mark.parametrize("reply", [UNKNOWN, Reply(body=chat_body())], ids=["refused", "ignored"])
async def test_a_server_that_cannot_is_asked_once_and_that_is_on_record(connect: Connect, reply: Reply) -> None:
    records = MemoryStore()
    with FakeEndpoint(lambda _: reply) as plain:
        model = connect(plain, records=records)
        requests = [question(model).weighing(text) for text in ("One.", "Two.", "Three.")]
        found = [await model.generate(request) for request in requests]
        asked = len(plain.requests)
    replayed = await connect(plain, records=records, mode="replay").generate(requests[2])

    assert asked == 1
    assert {each.outcome for each in found} == {"refused"}
    assert [likelihood_of(each) for each in found] == [None, None, None]
    assert replayed.refusal == found[2].refusal
    assert "weighs no given text" in (replayed.refusal or "")


async def test_another_bad_request_is_an_error(connect: Connect) -> None:
    with FakeEndpoint(lambda _: error(400, "The messages are too many.")) as strict:
        model = connect(strict)
        with pytest.raises(BadRequest):
            await model.generate(question(model).weighing(GIVEN))


async def test_a_template_that_changes_the_text_is_told(connect: Connect) -> None:
    def other(seen: Seen) -> dict[str, Any]:
        reply = weighing_server(seen)
        reply["prompt_logprobs"].append({"7": {"logprob": -1.0, "decoded_token": "<end>"}})
        return reply

    with FakeEndpoint(other) as odd:
        model = connect(odd)
        response = await model.generate(question(model).weighing(GIVEN))

    assert "does not end with the given text" in (response.refusal or "")


@pytest.mark.parametrize("fields", [{"api": "responses"}, {}], ids=["responses API", "OpenAI itself"])
async def test_openai_is_not_asked(fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    model = get_model("openai:gpt-4o", engine=Engine(records=MemoryStore()), **fields)

    response = await model.generate(question(model).weighing(GIVEN))
    await model.aclose()

    assert response.refusal == "this API weighs no given text"
    assert response.usage.input == 0


async def test_a_model_without_the_method_is_not_asked_for_an_answer() -> None:
    scripted = ScriptedModel(lambda _: "An answer.", identity="scripted")
    model = get_model(scripted, engine=Engine(records=MemoryStore()))

    response = await model.generate(question(model).weighing(GIVEN))

    assert (response.outcome, response.text, scripted.requests) == ("refused", "", [])


async def test_a_backend_of_ones_own_may_have_it() -> None:
    class Weighs:
        id = "mine"

        async def generate(self, request: ChatRequest) -> ChatResponse:
            return ChatResponse(text="An answer.")

        async def likelihood(self, request: ChatRequest) -> ChatResponse:
            words = (request.given or "").split()
            return ChatResponse(logprobs=tuple({"token": word, "logprob": -2.0} for word in words))

    model = get_model(Weighs(), engine=Engine(records=MemoryStore()))

    response = await model.generate(question(model).weighing(GIVEN))

    assert likelihood_of(response) == TextLikelihood(nll=8.0, tokens=4)
