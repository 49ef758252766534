from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import get_args

import pytest

from askance.chat import ChatRequest, ChatResponse, FinishReason, ModelId, Usage
from askance.errors import AuthError, BadRequest, ImagesRejected, ReplayMiss, ServerFault, UsageError
from askance.images import Image
from askance.models import CallEvent, Capabilities, Engine, OutputMode, ScriptedModel, get_model
from askance.models.capabilities import ODD_WORD, RED_SQUARE
from askance.replay import MemoryStore

Engines = Callable[..., Engine]
Reply = Callable[[ChatRequest], str | ChatResponse | Exception]

HELD = json.dumps({"word": ODD_WORD}, indent=2)


def kind(request: ChatRequest) -> str | None:
    return request.response.kind if request.response else None


def endpoint(*, schema: Reply, json_object: Reply, plain: str = "blue") -> Reply:
    """An endpoint by what it answers to the two forms of asking."""

    def reply(request: ChatRequest) -> str | ChatResponse | Exception:
        wanted = kind(request)
        return plain if wanted is None else (schema if wanted == "json_schema" else json_object)(request)

    return reply


def always(reply: str | ChatResponse | Exception) -> Reply:
    return lambda _: reply


def cut_off(text: str, *, thinking: str = "", finish: FinishReason = "length") -> ChatResponse:
    return ChatResponse(text=text, thinking=thinking, finish=finish)


REFUSES = always(BadRequest("Unknown field.", status=400))
ENDPOINTS: dict[str, tuple[Reply, Capabilities, OutputMode]] = {
    "enforces": (
        endpoint(schema=always(HELD), json_object=REFUSES),
        Capabilities(schema="enforced"),
        "json_schema",
    ),
    "enforces, and writes blanks to the limit": (
        endpoint(schema=always(cut_off('{ "word":        ')), json_object=REFUSES),
        Capabilities(schema="enforced"),
        "json_schema",
    ),
    "enforces, after much thinking": (
        endpoint(
            schema=lambda request: HELD if request.sampling.max_tokens is None else cut_off("", thinking="Well"),
            json_object=REFUSES,
        ),
        Capabilities(schema="enforced", thinks=True),
        "json_schema",
    ),
    "ignores": (
        endpoint(schema=always('{"word": "blue"}'), json_object=always('{"word": "blue"}')),
        Capabilities(schema="ignored", json_object=True),
        "json_object",
    ),
    "ignores both": (
        endpoint(schema=always("blue"), json_object=always("blue")),
        Capabilities(schema="ignored", json_object=False),
        "prompted",
    ),
    "refuses, with JSON": (
        endpoint(schema=REFUSES, json_object=always(cut_off(' {"word": "bl'))),
        Capabilities(schema="refused", json_object=True),
        "json_object",
    ),
    "refuses both": (
        endpoint(schema=REFUSES, json_object=REFUSES),
        Capabilities(schema="refused", json_object=False),
        "prompted",
    ),
}


@pytest.mark.parametrize(("reply", "found", "rung"), ENDPOINTS.values(), ids=ENDPOINTS)
async def test_first_contact(engine: Engines, reply: Reply, found: Capabilities, rung: OutputMode) -> None:
    model = get_model(ScriptedModel(reply, identity="scripted"), engine=engine())
    assert (await model.capabilities(), await model.output_mode()) == (found, rung)


async def test_it_is_asked_once_and_recorded(engine: Engines, records: MemoryStore, events: list[CallEvent]) -> None:
    script, run = ScriptedModel(ENDPOINTS["ignores"][0], identity="scripted"), engine()
    models = [get_model(script, engine=run) for _ in range(2)]
    found = await asyncio.gather(*(models[number % 2].capabilities() for number in range(10)))
    assert (set(found), len(script.requests)) == ({Capabilities(schema="ignored", json_object=True)}, 2)
    assert [event.phase for event in events] == ["probed"]
    (record,) = records
    assert (record.kind, record.request) == ("endpoint", {"model": {"name": "scripted"}, "probe": 1})
    later = get_model(ScriptedModel([], identity="scripted"), engine=engine("replay"))
    assert await later.capabilities() == found[0]


async def test_a_replay_does_not_ask(engine: Engines) -> None:
    script = ScriptedModel([], identity="scripted")
    with pytest.raises(ReplayMiss) as miss:
        await get_model(script, engine=engine("replay")).output_mode()
    assert str(miss.value) == (
        "What 'scripted' can do is not on record, and replay does not ask. Run `askance models check scripted` with "
        "the endpoint up, import the cassette that it belongs to, or name the form of asking (`protocol`)."
    )
    assert script.requests == []


@pytest.mark.parametrize("rung", get_args(OutputMode))
async def test_a_form_by_choice_asks_nothing(engine: Engines, rung: OutputMode) -> None:
    script = ScriptedModel([], identity="scripted")
    assert await get_model(script, engine=engine(), protocol=rung).output_mode() == rung
    assert await get_model(script, engine=engine("replay", protocol=rung)).output_mode() == rung


async def test_what_a_model_says_of_itself_is_taken(engine: Engines) -> None:
    said = Capabilities(schema="enforced")
    model = get_model(ScriptedModel([], capabilities=said, identity="scripted"), engine=engine("replay"))
    assert await model.capabilities() == said


async def test_an_endpoint_that_fails_is_not_judged(engine: Engines, records: MemoryStore) -> None:
    model = get_model(ScriptedModel([AuthError("No key."), HELD], identity="scripted"), engine=engine())
    with pytest.raises(AuthError):
        await model.capabilities()
    assert list(records) == []
    assert (await model.capabilities()).schema == "enforced"


async def test_an_endpoint_that_refuses_everything_is_not_judged(engine: Engines) -> None:
    model = get_model(ScriptedModel(REFUSES, identity="scripted"), engine=engine())
    with pytest.raises(BadRequest, match=r"^Unknown field\.$"):
        await model.capabilities()


def able(request: ChatRequest) -> ChatResponse | Exception:
    if request.images:
        return ImagesRejected("No pictures.", status=400)
    if request.sampling.seed is not None:
        return ServerFault("It broke.")
    logprobs = ({"token": "blue", "logprob": -0.1},) if request.sampling.logprobs is not None else ()
    return ChatResponse(text=HELD, logprobs=logprobs, model="served-2026", usage=Usage(input=5, output=4))


async def test_a_check_asks_for_everything(engine: Engines, events: list[CallEvent]) -> None:
    script = ScriptedModel(able, identity="scripted")
    model = get_model(script, engine=engine(), temperature=0.5, extra={"top_k": 5}, max_tokens=9)
    wanted = Capabilities(schema="enforced", images=False, seed=False, logprobs=True, served_model="served-2026")
    assert (await model.check(), await model.capabilities()) == (wanted, wanted)
    assert {(request.sampling.temperature, request.sampling.max_tokens) for request in script.requests} == {(0.5, 64)}
    assert {str(request.extra) for request in script.requests} == {"{'top_k': 5}"}
    assert [event.usage for event in events if event.phase == "probed"] == [Usage(input=10, output=8)]
    with pytest.raises(UsageError, match=r"^`replay` asks nothing, so it cannot check a model\."):
        await get_model(script, engine=engine("replay")).check()


async def test_what_a_backend_learnt_is_kept(engine: Engines) -> None:
    class Learns(ScriptedModel):
        noticed = {"token_field": "max_completion_tokens", "without": ["temperature"]}  # noqa: RUF012

    found = await get_model(Learns([HELD]), engine=engine()).capabilities()
    assert (found.token_field, found.without) == ("max_completion_tokens", ("temperature",))
    assert Capabilities.from_canonical(found.canonical()) == found


async def test_what_is_noticed_counts_for_the_next_run(
    engine: Engines, records: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    model = get_model(ScriptedModel([HELD], identity="scripted"), engine=engine())
    assert await model.output_mode() == "json_schema"
    with caplog.at_level(logging.WARNING, "askance"):
        for _ in range(2):
            model.notice("it ignores the schema", schema="ignored")
    assert (caplog.messages, await model.output_mode()) == (["scripted: it ignores the schema"], "json_schema")
    async with asyncio.timeout(5):
        while "noted" not in next(iter(records)).response:  # noqa: ASYNC110  # written by a thread
            await asyncio.sleep(0.001)
    assert (
        await get_model(ScriptedModel([], identity="scripted"), engine=engine(mode="replay")).output_mode()
        == "json_schema"
    )
    assert await get_model(ScriptedModel([], identity="scripted"), engine=engine()).output_mode() == "prompted"


def test_fields_of_a_later_version_are_left_out() -> None:
    assert Capabilities.from_canonical({"schema": "ignored", "smell": True}) == Capabilities(schema="ignored")


def test_the_picture_of_the_probe_is_one() -> None:
    info = Image.from_bytes(RED_SQUARE).info
    assert (info.format, info.width, info.height) == ("png", 64, 64)


def test_the_record_belongs_to_the_name_not_to_the_address(engine: Engines) -> None:
    models = [get_model(f"openai:m@http://h{port}/v1", identity="ours", engine=engine()) for port in (1, 2)]
    assert {str(model.id.canonical()) for model in models} == {str(ModelId("", "", name="ours").canonical())}
