from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any, get_args

import pytest

from askance.chat import ChatRequest, ChatResponse, FinishReason, ModelId, ToolCall, Usage
from askance.demo.demo_model import CAPABILITIES
from askance.errors import AuthError, BadRequest, CallError, ImagesRejected, ReplayMiss, ServerFault, UsageError
from askance.images import Image
from askance.images.regions import Box
from askance.models import CallEvent, Capabilities, Engine, ModelSettings, OutputMode, ScriptedModel, get_model
from askance.models.box_unit import TARGETS, TARGETS_PICTURE, TARGETS_SIZE, BoxUnit, family_unit
from askance.models.call_scope import on_miss
from askance.models.capabilities import NEXT_WORD, ODD_WORD, RED_SQUARE
from askance.models.local.folder import DIGITS
from askance.models.local.hf import HFModel
from askance.models.settings import Vllm
from askance.models.vllm.vllm_model import VLLMModel
from askance.replay import MemoryStore
from tests.servers import Answer, FakeEndpoint, Seen, chat_body, tool_call

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
    wanted = Capabilities(
        schema="enforced",
        images=False,
        seed=False,
        logprobs=True,
        served_model="served-2026",
        tools=False,
        boxes="none",
    )
    assert (await model.check(), await model.capabilities()) == (wanted, wanted)
    assert {(request.sampling.temperature, request.sampling.max_tokens) for request in script.requests} == {(0.5, 64)}
    assert {request.extra["top_k"] for request in script.requests} == {5}
    assert [event.usage for event in events if event.phase == "probed"] == [Usage(input=15, output=12)]
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


def called(word: str, *, name: str = "say", call_id: str = "c1") -> ChatResponse:
    call = ToolCall(call_id, name, json.dumps({"word": word}))
    return ChatResponse(tool_calls=(call,), finish="tool_calls")


CALLERS: dict[str, tuple[list[str | ChatResponse | Exception], bool]] = {
    "calls, and reads results": ([called(ODD_WORD), called(NEXT_WORD)], True),
    "writes a text": (["quokka-17"], False),
    "was not told of the tool": ([called("first")], False),
    "calls another tool": ([called(ODD_WORD, name="speak")], False),
    "writes arguments that are no JSON": ([ChatResponse(tool_calls=(ToolCall("c1", "say", "{"),))], False),
    "was not told of the result": ([called(ODD_WORD), called(ODD_WORD)], False),
    "refuses tools": ([BadRequest("No tools.", status=400)], False),
    "refuses results": ([called(ODD_WORD), BadRequest("No such role.", status=400)], False),
}


@pytest.mark.parametrize(("replies", "able"), CALLERS.values(), ids=CALLERS)
async def test_whether_it_calls_tools(
    engine: Engines, events: list[CallEvent], replies: list[str | ChatResponse | Exception], able: bool
) -> None:
    script = ScriptedModel([HELD, *replies], identity="scripted")
    model = get_model(script, engine=engine(), extra={"top_k": 5})
    assert (await model.calls_tools(), await model.calls_tools()) == (able, able)
    assert (len(script.requests), [event.phase for event in events].count("probed")) == (1 + len(replies), 2)
    for asked in script.requests[1:]:
        assert (asked.extra, [tool.name for tool in asked.tools]) == ({"top_k": 5, "tool_choice": "required"}, ["say"])

    later = get_model(ScriptedModel([], identity="scripted"), engine=engine("replay"))
    assert (await later.calls_tools(), await later.output_mode()) == (able, "json_schema")


KNOWN = f"tiny:{'0' * DIGITS}:float32"
"""A model of which the digest of its weights is known."""


@pytest.mark.parametrize(
    ("declared", "tools"),
    [
        (HFModel(KNOWN).capabilities, False),
        (VLLMModel(KNOWN, vllm=Vllm(in_process=True)).capabilities, False),
        (VLLMModel(KNOWN).capabilities, None),
        (CAPABILITIES, False),
    ],
    ids=["transformers", "vLLM in process", "vLLM's server", "demo"],
)
def test_what_backends_say_of_tools(declared: Capabilities, tools: bool | None) -> None:
    assert declared.tools is tools


async def test_a_real_endpoint_is_made_to_call() -> None:
    words = iter([ODD_WORD, NEXT_WORD])

    def reply(seen: Seen) -> Answer:
        if "tools" not in seen.json:
            return None
        return chat_body(None, tool_calls=[tool_call("say", {"word": next(words)})], finish="tool_calls")

    with FakeEndpoint(reply) as endpoint:
        model = get_model(f"openai:m@{endpoint.url}", engine=Engine(records=MemoryStore()))
        assert await model.calls_tools()
        await model.aclose()
        first, second = endpoint.bodies[-2:]
    assert (first["tool_choice"], second["tool_choice"]) == ("required", "required")
    assert [turn["role"] for turn in second["messages"]] == ["user", "assistant", "tool"]


WIDTH, HEIGHT = TARGETS_SIZE
SAY_BOX: dict[str, tuple[Callable[[Box], str], BoxUnit, int]] = {
    "thousandths": (
        lambda box: (
            f"[{box[0] / WIDTH * 1000:.0f}, {box[1] / HEIGHT * 1000:.0f}, {box[2] / WIDTH * 1000:.0f}, "
            f"{box[3] / HEIGHT * 1000:.0f}]"
        ),
        "thousandths",
        3,
    ),
    "fractions": (
        lambda box: f"It is at {box[0] / WIDTH:.2f} {box[1] / HEIGHT:.2f} {box[2] / WIDTH:.2f} {box[3] / HEIGHT:.2f}.",
        "fractions",
        3,
    ),
    "pixels": (lambda box: json.dumps({"bbox_2d": box}), "pixels", 3),
    "pixels, somewhat beside": (lambda box: str([edge + 12 for edge in box]), "pixels", 3),
    "top first": (lambda box: str([box[1], box[0], box[3], box[2]]), "none", 2),
    "nothing": (lambda _: "I cannot say.", "none", 2),
    "too many": (lambda box: f"{box} or {box}", "none", 2),
}


@pytest.mark.parametrize(("say", "unit", "asked"), SAY_BOX.values(), ids=SAY_BOX)
async def test_the_unit_of_boxes_is_that_under_which_they_lie_on_the_targets(
    engine: Engines, say: Callable[[Box], str], unit: BoxUnit, asked: int
) -> None:
    script = ScriptedModel(lambda request: say(target_of(request)) if request.images else HELD, identity="scripted")
    model = get_model(script, engine=engine())
    assert (await model.box_unit(), len(script.requests)) == (unit, 1 + asked)
    later = get_model(ScriptedModel([], identity="scripted"), engine=engine("replay"))
    assert await later.box_unit() == unit


def target_of(request: ChatRequest) -> Box:
    [colour] = [colour for colour in TARGETS if colour in request.messages[0].text]
    return TARGETS[colour]


async def test_one_target_of_four_may_be_missed(engine: Engines) -> None:
    def reply(request: ChatRequest) -> str:
        return "?" if "green" in request.messages[0].text else str(target_of(request)) if request.images else HELD

    script = ScriptedModel(reply, identity="scripted")
    assert (await get_model(script, engine=engine()).box_unit(), len(script.requests)) == ("pixels", 5)


async def test_a_model_that_takes_no_pictures_gives_no_boxes(engine: Engines) -> None:
    script = ScriptedModel([HELD, ImagesRejected("No pictures.", status=400)], identity="scripted")
    assert await get_model(script, engine=engine()).box_unit() == "none"


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("Qwen/Qwen2-VL-7B-Instruct", "thousandths"),
        ("qwen2.5vl:7b", "pixels"),
        ("Qwen/Qwen3-VL-8B-Instruct", "thousandths"),
        ("claude-sonnet-4-5", "pixels"),
        ("Qwen/Qwen2.5-7B-Instruct", None),
        ("gpt-4o", None),
    ],
)
def test_the_unit_of_a_family(name: str, unit: BoxUnit | None) -> None:
    assert family_unit(None, name) == unit


async def test_a_family_is_not_asked_and_on_record(engine: Engines, records: MemoryStore) -> None:
    known = Capabilities(schema="enforced")
    script = ScriptedModel([], identity="scripted", capabilities=known)
    assert await get_model(script, engine=engine(), family="qwen3-vl").box_unit() == "thousandths"
    assert [record.response for record in records] == [{"schema": "enforced", "boxes": "thousandths"}]


COLOURS = {
    (True, False, False): "red",
    (False, True, False): "green",
    (False, False, True): "blue",
    (True, True, False): "orange",
}
"""By whether red, green and blue are strong."""


@pytest.mark.parametrize(("colour", "box"), TARGETS.items(), ids=TARGETS)
def test_the_targets_are_where_they_are_said_to_be(colour: str, box: Box) -> None:
    picture: Any = Image.from_bytes(TARGETS_PICTURE).open().convert("RGB")
    left, top, right, bottom = map(int, box)
    [(pixels, (red, green, blue))] = picture.crop((left, top, right, bottom)).getcolors()
    assert (picture.size, pixels) == (TARGETS_SIZE, (right - left) * (bottom - top))
    assert COLOURS[red > 100, green > 100, blue > 100] == colour
    assert picture.getpixel((left - 1, top - 1)) == picture.getpixel((right, bottom)) == (255, 255, 255)


async def test_what_is_asked_later_leaves_the_record_as_it_was(engine: Engines, records: MemoryStore) -> None:
    def reply(request: ChatRequest) -> str | ChatResponse:
        if request.tools:
            return called(NEXT_WORD if len(request.messages) > 1 else ODD_WORD)
        return str(target_of(request)) if request.images else HELD

    script = ScriptedModel(reply, identity="scripted")
    run = engine()
    model, other = get_model(script, engine=run), get_model(script, engine=run)
    found = await asyncio.gather(model.calls_tools(), other.box_unit(), other.calls_tools())
    assert (found, len(script.requests)) == ([True, "pixels", True], 6)
    model.notice("it ignores the schema", schema="ignored")
    await run.aclose()
    [record] = records
    assert record.response == {"schema": "enforced", "tools": True, "boxes": "pixels", "noted": {"schema": "ignored"}}


async def test_what_the_record_lacks_a_replay_does_not_ask(engine: Engines) -> None:
    await get_model(ScriptedModel([HELD], identity="scripted"), engine=engine()).capabilities()
    model = get_model(ScriptedModel([], identity="scripted"), engine=engine("replay"))
    with pytest.raises(ReplayMiss) as miss:
        await model.calls_tools()
    assert str(miss.value) == (
        "Whether 'scripted' calls tools is not on record, and replay does not ask. Run `askance models check scripted "
        "--refresh` with the endpoint up or import the cassette that it belongs to."
    )
    with pytest.raises(ReplayMiss, match=r"^In which unit 'scripted' gives boxes is not on record"):
        await model.box_unit()


class Plans:
    """A policy that makes no call."""

    reports_hits = True

    async def missing(self, request: ChatRequest, settings: ModelSettings) -> CallError:
        return CallError("Not made.")


async def test_a_plan_asks_no_endpoint_what_it_can_do(engine: Engines, records: MemoryStore) -> None:
    model = get_model(ScriptedModel([], identity="scripted"), engine=engine())
    with on_miss(Plans()):
        assert (await model.calls_tools(), await model.box_unit()) == (True, "thousandths")
    assert list(records) == []


async def test_an_endpoint_that_fails_is_not_said_to_call_no_tools(engine: Engines, records: MemoryStore) -> None:
    model = get_model(ScriptedModel([HELD, AuthError("No key.")], identity="scripted"), engine=engine())
    with pytest.raises(AuthError):
        await model.calls_tools()
    [record] = records
    assert "tools" not in record.response


def test_the_record_belongs_to_the_name_not_to_the_address(engine: Engines) -> None:
    models = [get_model(f"openai:m@http://h{port}/v1", identity="ours", engine=engine()) for port in (1, 2)]
    assert {str(model.id.canonical()) for model in models} == {str(ModelId("", "", name="ours").canonical())}
