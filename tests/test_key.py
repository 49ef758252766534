"""The key cannot lie: whatever can change an answer changes the key, and nothing else does."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import create_model

from askance.chat import (
    ChatRequest,
    Detail,
    ImagePart,
    Message,
    ModelId,
    ResponseFormat,
    Sampling,
    TextPart,
    ToolCall,
    ToolSpec,
    canonical_json,
    key_of,
)
from askance.images import CLEAN_POLICY, ORIGINAL_POLICY, WHOLE_IMAGE, Image, RegionView, Shown
from askance.models import Engine, Model, ModelSettings, Price, RetryPolicy, ScriptedModel
from askance.models.backend import Backend
from askance.replay import MemoryStore, Record, open_records
from tests.scripted import PICTURES

# Requests -------------------------------------------------------------------------------------------------------------

words = st.text(max_size=12)
names = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False, width=32)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(names, json_values, max_size=3)
policies = st.sampled_from([CLEAN_POLICY, ORIGINAL_POLICY]) | st.integers(1, 9000).map(
    lambda side: replace(CLEAN_POLICY, max_side=side)
)
views = st.sampled_from(
    [
        WHOLE_IMAGE,
        RegionView("crop", ((0, 0, 8, 8),)),
        RegionView("crop", ((0, 0, 8, 9),)),
        RegionView("crop", ((0, 0, 8, 8),), "thousandths"),
        RegionView("highlight", ((0, 0, 8, 8),)),
        RegionView("highlight", ((0, 0, 8, 8),), style="sherlock"),
        RegionView("highlight", ((0, 0, 8, 8),), "native pixels"),
        RegionView("hide", ((0, 0, 8, 8),)),
    ]
)
shown = st.builds(Shown, st.binary(max_size=8).map(Image.from_bytes), policies, views)
pictures = st.builds(ImagePart, shown, st.sampled_from(["auto", "low", "high"]))
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(st.builds(TextPart, words) | pictures, max_size=3).map(tuple),
    st.lists(st.builds(ToolCall, words, names, words), max_size=2).map(tuple),
    st.none() | words,
)
requests = st.builds(
    ChatRequest,
    model=st.builds(
        ModelId, names, words, st.none() | words, st.none() | words, st.sampled_from(["chat", "responses"])
    ),
    messages=st.lists(messages, min_size=1, max_size=3).map(tuple),
    tools=st.lists(st.builds(ToolSpec, names, words, objects), max_size=2).map(tuple),
    response=st.none() | st.builds(ResponseFormat, st.just("json_schema"), names, objects),
    sampling=st.builds(
        Sampling,
        temperature=st.none() | st.floats(0, 2),
        top_p=st.none() | st.floats(0, 1),
        seed=st.none() | st.integers(0, 99),
        max_tokens=st.none() | st.integers(1, 99),
        stop=st.lists(words, max_size=2).map(tuple),
        logprobs=st.none() | st.integers(0, 5),
    ),
    extra=objects,
    draw=st.integers(0, 3),
)


def sent(request: ChatRequest) -> str:
    """All that reaches a model, written down here once more and apart from `canonical`; numbers by value."""
    model = request.model
    who = (
        [model.name, model.api] if model.name is not None else [model.provider, model.model, model.endpoint, model.api]
    )
    turns = [
        [
            turn.role,
            [
                [part.text]
                if isinstance(part, TextPart)
                else [part.shown.image.sha256, repr(part.shown.policy), repr(part.shown.view), part.detail]
                for part in turn.parts
            ],
            [[call.id, call.name, call.arguments] for call in turn.tool_calls],
            turn.tool_call_id,
        ]
        for turn in request.messages
    ]
    tools = [[tool.name, tool.description, tool.parameters] for tool in request.tools]
    form = request.response and [request.response.kind, request.response.name, request.response.schema]
    drawn = [getattr(request.sampling, field.name) for field in fields(Sampling)]
    return written([who, model.api, turns, tools, form, drawn, request.extra, request.draw])


def written(value: object) -> str:
    """JSON text in which 1 and 1.0 are one number and true is none."""
    return json.dumps(json.loads(json.dumps(value), parse_int=float), sort_keys=True)


FIELDS = ("model", "messages", "tools", "response", "sampling", "extra", "draw")


@given(requests, requests, st.sets(st.sampled_from(FIELDS)))
def test_two_requests_share_a_key_exactly_when_they_ask_the_same(
    one: ChatRequest, another: ChatRequest, taken: set[str]
) -> None:
    other = replace(one, **{name: getattr(another, name) for name in taken})

    assert (one.key == other.key) == (sent(one) == sent(other))


@given(requests)
@example(ChatRequest(model=ModelId("a", "b"), messages=(), extra={"large": 2.0**64}))
def test_the_key_is_that_of_the_record(request: ChatRequest) -> None:
    record = Record.make("chat", request.canonical(), {"text": "", "finish": "stop"})

    assert record.key == request.key
    assert request.canonical_text == canonical_json(request.canonical())
    assert [part.canonical_text for part in request.messages] == [
        canonical_json(part.canonical()) for part in request.messages
    ]
    assert all(part.canonical_text is part.canonical_text for part in request.messages)
    assert Record.from_canonical(json.loads(record.to_json())).key == key_of(
        "chat", json.loads(record.to_json())["request"]
    )


# What can change an answer --------------------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[ChatRequest], ChatRequest]] = {
    "provider": lambda it: with_model(it, provider=it.model.provider + "x"),
    "model": lambda it: with_model(it, model=it.model.model + "x"),
    "endpoint": lambda it: with_model(it, endpoint=(it.model.endpoint or "") + "x"),
    "api": lambda it: replace(it, model=replace(it.model, api="chat" if it.model.api == "responses" else "responses")),
    "configured name": lambda it: replace(it, model=replace(it.model, name=(it.model.name or "") + "x")),
    "system text": lambda it: replace(it, messages=(Message("system", (TextPart("Lie."),)), *it.messages)),
    "text": lambda it: with_part(it, TextPart("more")),
    "white space": lambda it: with_part(it, TextPart(" ")),
    "an empty message": lambda it: replace(it, messages=(*it.messages, Message("user"))),
    "role": lambda it: with_turn(it, role="user" if it.messages[0].role != "user" else "assistant"),
    "picture": lambda it: with_part(it, ImagePart(Shown(Image.from_bytes(b"another")))),
    "tool": lambda it: replace(it, tools=(*it.tools, ToolSpec("look", "Looks.", {}))),
    "tool call": lambda it: with_turn(it, tool_calls=(*it.messages[0].tool_calls, ToolCall("1", "f", "{}"))),
    "answered tool call": lambda it: with_turn(it, tool_call_id=(it.messages[0].tool_call_id or "") + "x"),
    "form of the answer": lambda it: replace(
        it, response=ResponseFormat("json_object") if it.response is None else None
    ),
    "temperature": lambda it: drawn(it, temperature=(it.sampling.temperature or 0) + 0.1),
    "top p": lambda it: drawn(it, top_p=(it.sampling.top_p or 0) + 0.1),
    "seed": lambda it: drawn(it, seed=(it.sampling.seed or 0) + 1),
    "most tokens": lambda it: drawn(it, max_tokens=(it.sampling.max_tokens or 0) + 1),
    "stop": lambda it: drawn(it, stop=(*it.sampling.stop, "\n")),
    "log-probabilities": lambda it: drawn(it, logprobs=(it.sampling.logprobs or 0) + 1),
    "extra": lambda it: replace(it, extra={**it.extra, "EXTRA": None}),
    "draw": lambda it: replace(it, draw=it.draw + 1),
}


def with_model(request: ChatRequest, **changes: str) -> ChatRequest:
    return replace(request, model=replace(request.model, name=None, **changes))


def with_turn(request: ChatRequest, **changes: Any) -> ChatRequest:
    first, *rest = request.messages
    return replace(request, messages=(replace(first, **changes), *rest))


def with_part(request: ChatRequest, part: TextPart | ImagePart) -> ChatRequest:
    return with_turn(request, parts=(*request.messages[0].parts, part))


def drawn(request: ChatRequest, **changes: Any) -> ChatRequest:
    return replace(request, sampling=replace(request.sampling, **changes))


@given(requests)
def test_any_change_in_what_is_asked_changes_the_key(request: ChatRequest) -> None:
    nameless = replace(request, model=replace(request.model, name=None))
    before = dict.fromkeys(CHANGES, request) | dict.fromkeys(("provider", "model", "endpoint"), nameless)

    assert [name for name, change in CHANGES.items() if change(before[name]).key == before[name].key] == []


@given(requests, st.data())
def test_the_order_of_messages_and_parts_is_part_of_the_key(request: ChatRequest, data: st.DataObject) -> None:
    turned = replace(
        request,
        messages=tuple(
            replace(turn, parts=tuple(data.draw(st.permutations(turn.parts))))
            for turn in data.draw(st.permutations(request.messages))
        ),
    )

    assert (turned.key == request.key) == (sent(turned) == sent(request))


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_a_picture_is_known_by_its_bytes(one: bytes, other: bytes) -> None:
    assert (showing(Image.from_bytes(one)).key == showing(Image.from_bytes(other)).key) == (one == other)


POLICIES = [
    CLEAN_POLICY,
    ORIGINAL_POLICY,
    replace(CLEAN_POLICY, version=2),
    replace(CLEAN_POLICY, max_side=1024),
    replace(CLEAN_POLICY, max_bytes=1000),
    replace(CLEAN_POLICY, formats=("jpeg",)),
]


def test_how_a_picture_is_prepared_and_shown_is_part_of_the_key() -> None:
    picture = Image.from_bytes(b"x")
    keys = {showing(picture, policy=policy, detail=detail).key for policy in POLICIES for detail in ("auto", "low")}

    assert len(keys) == 2 * len(POLICIES)


@given(objects, st.data())
def test_a_change_anywhere_in_a_nested_schema_changes_the_key(definition: dict[str, Any], data: st.DataObject) -> None:
    schema = {"$defs": {"Inner": {"properties": {"deep": definition}}}, "$ref": "#/$defs/Inner"}
    path = data.draw(st.sampled_from(list(places(schema))))

    assert asking(schema=changed_at(schema, path)).key != asking(schema=schema).key


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value inside `value`, and to itself."""
    return [path, *(place for step, item in items(value) for place in places(item, (*path, step)))]


def changed_at(value: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return {"was": value}
    pairs = [(step, changed_at(item, path[1:]) if step == path[0] else item) for step, item in items(value)]
    return dict(pairs) if isinstance(value, dict) else [item for _, item in pairs]


def items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).items())
    return list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []


# What cannot ----------------------------------------------------------------------------------------------------------


def test_the_name_and_the_place_of_a_picture_are_no_part_of_the_key(tmp_path: Path) -> None:
    data = (PICTURES / "brick-cup.jpg").read_bytes()
    moved = tmp_path / "other name.png"
    moved.write_bytes(data)

    found = {
        showing(picture).key
        for picture in (
            Image.from_path(PICTURES / "brick-cup.jpg"),
            Image.from_path(moved),
            Image.from_bytes(data, name="x"),
        )
    }

    assert len(found) == 1


@given(requests, st.randoms())
def test_the_order_in_which_fields_are_written_is_no_part_of_the_key(request: ChatRequest, chance: Any) -> None:
    def shuffled(value: Any) -> Any:
        pairs = [(name, shuffled(item)) for name, item in items(value)]
        if isinstance(value, dict):
            chance.shuffle(pairs)
            return dict(pairs)
        return [item for _, item in pairs] if isinstance(value, list) else value

    assert key_of("chat", shuffled(request.canonical())) == request.key


@given(st.integers(-(2**53), 2**53))
def test_a_number_counts_by_its_value(number: int) -> None:
    assert canonical_json({"n": float(number)}) == canonical_json({"n": number})


@pytest.mark.parametrize("kind", [ChatRequest, Sampling, Message, ModelId, ResponseFormat, ImagePart, Shown])
def test_a_field_at_its_default_leaves_no_trace(kind: Any) -> None:
    optional = {
        field.name for field in fields(kind) if field.default is not MISSING or field.default_factory is not MISSING
    }
    bare = {
        ChatRequest: asking(),
        Sampling: Sampling(),
        Message: Message("user"),
        ModelId: ModelId("openai", "m"),
        ResponseFormat: ResponseFormat("json_object"),
        ImagePart: ImagePart(Shown(Image.from_bytes(b"x"))),
        Shown: Shown(Image.from_bytes(b"x")),
    }[kind]

    # Two stand in every form: what a message holds, and how a picture is prepared.
    assert optional & set(bare.canonical()) <= {"parts", "policy"}


def test_keys_are_the_same_for_ever() -> None:
    plain = asking("Name the objects.")
    full = replace(
        showing(Image.from_bytes(b"x")),
        model=ModelId("openai", "m", "http://127.0.0.1:8000/v1", api="responses"),
        tools=(ToolSpec("look", "Looks.", {"type": "object"}),),
        response=ResponseFormat("json_schema", "answer", {"type": "object"}),
        sampling=Sampling(temperature=0.5, top_p=0.9, seed=1, max_tokens=9, stop=("\n",), logprobs=0),
        extra={"reasoning_effort": "low"},
        draw=1,
    )

    # Another key here means that every answer that anyone has paid for is asked again.
    assert plain.key == "759e973761fbfc6d33d4e28a942bbc360ebfdb5b712bc2ebe35dba13736d3b62"
    assert full.key == "4c8db6483bdc0355fbdbe4087ea6a3fa3797875aee3e170fb4af48c27f52a573"


def asking(text: str = "Look.", *, schema: Mapping[str, Any] | None = None, system: str | None = None) -> ChatRequest:
    turns = [Message("user", (TextPart(text),))]
    if system is not None:
        turns.insert(0, Message("system", (TextPart(system),)))
    form = None if schema is None else ResponseFormat("json_schema", "Answer", schema)
    return ChatRequest(model=ModelId("openai", "m"), messages=tuple(turns), response=form)


def showing(picture: Image, detail: Detail = "auto", **how: Any) -> ChatRequest:
    return ChatRequest(
        model=ModelId("openai", "m"),
        messages=(Message("user", (ImagePart(Shown(picture, **how), detail), TextPart("Look."))),),
    )


# Settings, through the whole stack ------------------------------------------------------------------------------------

PLAIN = ModelSettings(id=ModelId("openai", "m", "http://127.0.0.1:8000/v1"))


async def answers(*asked: tuple[ModelSettings, Engine]) -> list[str]:
    """What each model says to one question about one picture, all on one store; every call has another answer."""
    script = ScriptedModel((str(number) for number in range(len(asked))), identity="scripted")
    said: list[str] = []
    for known, engine in asked:
        model = Model(known, Backend(lambda: script), engine)
        request = model.request((Message("user", (model.image(Image.from_bytes(PNG)), TextPart("Look."))),))
        said.append((await model.generate(request)).text)
    return said


PNG = (PICTURES / "brick-cup.jpg").read_bytes()

TELLING: dict[str, ModelSettings] = {
    "model": replace(PLAIN, id=replace(PLAIN.id, model="n")),
    "endpoint": replace(PLAIN, id=replace(PLAIN.id, endpoint="http://127.0.0.1:8001/v1")),
    "api": replace(PLAIN, id=replace(PLAIN.id, api="responses")),
    "temperature": replace(PLAIN, sampling=Sampling(temperature=0)),
    "seed": replace(PLAIN, sampling=Sampling(seed=1)),
    "extra": replace(PLAIN, extra={"reasoning_effort": "low"}),
    "image policy": replace(PLAIN, image_policy=ORIGINAL_POLICY),
    "detail": replace(PLAIN, detail="low"),
}

SILENT: dict[str, ModelSettings] = {
    "price": replace(PLAIN, price=Price(input=1, output=2)),
    "timeout": replace(PLAIN, timeout=1.0),
    "key variable": replace(PLAIN, key_variable="OTHER_KEY"),
    "headers": replace(PLAIN, headers={"X-Team": "ads"}),
    "name of the token limit": replace(PLAIN, token_field="max_completion_tokens"),
    "family": replace(PLAIN, family="vicuna"),
}


@pytest.mark.parametrize("other", TELLING.values(), ids=TELLING)
async def test_a_model_with_other_settings_gets_no_answer_of_this_one(other: ModelSettings) -> None:
    records = MemoryStore()

    assert await answers((PLAIN, Engine(records=records)), (other, Engine(records=records))) == ["0", "1"]


@pytest.mark.parametrize("other", SILENT.values(), ids=SILENT)
async def test_settings_that_cannot_change_an_answer_pay_for_none(other: ModelSettings) -> None:
    records = MemoryStore()

    assert await answers((PLAIN, Engine(records=records)), (other, Engine(records=records))) == ["0", "0"]


ENGINES: dict[str, dict[str, Any]] = {
    "timeout": {"timeout": 3.0},
    "retry": {"policy": RetryPolicy(tries=1, deadline=None)},
    "asked again": {"retry": frozenset({"invalid"})},
    "concurrency": {"concurrency": 1},
    "observers": {"observers": [print]},
    "replay": {"mode": "replay"},
}


@pytest.mark.parametrize("run", ENGINES.values(), ids=ENGINES)
async def test_how_a_run_is_made_pays_for_no_answer(run: dict[str, Any]) -> None:
    records = MemoryStore()

    assert await answers((PLAIN, Engine(records=records)), (PLAIN, Engine(records=records, **run))) == ["0", "0"]


async def test_a_moved_server_keeps_the_answers_filed_under_a_name() -> None:
    records = MemoryStore()
    here, there = (
        (replace(known, id=replace(known.id, name="qwen")), Engine(records=records))
        for known in (PLAIN, TELLING["endpoint"])
    )

    assert await answers(here, there) == ["0", "0"]


async def test_draws_of_a_sampled_request_are_told_apart() -> None:
    script = ScriptedModel(["first", "second"], identity="scripted")
    model = Model(TELLING["temperature"], Backend(lambda: script), Engine(records=MemoryStore()))
    asked = [model.request((Message("user", (TextPart("Look."),)),), draw=draw) for draw in (0, 1, 0)]

    assert [(await model.generate(request)).text for request in asked] == ["first", "second", "first"]


# The false hits of others ---------------------------------------------------------------------------------------------


def test_not_as_langchain_a_schema_class_with_renamed_fields_is_another_schema() -> None:
    before: Any = create_model("Answer", cup=(str, ...))
    after: Any = create_model("Answer", mug=(str, ...))

    assert before.__name__ == after.__name__
    assert asking(schema=before.model_json_schema()).key != asking(schema=after.model_json_schema()).key


async def test_not_as_dspy_another_base_url_is_another_model() -> None:
    records = MemoryStore()

    said = await answers((PLAIN, Engine(records=records)), (TELLING["endpoint"], Engine(records=records)))

    assert said == ["0", "1"]


def test_not_as_curator_another_system_prompt_is_another_request() -> None:
    assert len({asking(system=system).key for system in (None, "", "Be brief.", "Be brief. ")}) == 4


def test_not_as_lmms_eval_another_image_under_the_same_name_is_another_request(tmp_path: Path) -> None:
    file = tmp_path / "ad.jpg"
    keys: list[str] = []
    for picture in ("brick-cup.jpg", "plain-coffee.jpg"):
        file.write_bytes((PICTURES / picture).read_bytes())
        keys.append(showing(Image.from_path(file)).key)

    assert keys[0] != keys[1]


async def test_not_as_inspect_an_answer_does_not_grow_too_old(tmp_path: Path) -> None:
    with open_records(tmp_path / "store") as records:
        first = await answers((PLAIN, Engine(records=records)))
    with closing(sqlite3.connect(tmp_path / "store" / "cache.db")) as connection, connection:
        changed = connection.execute("UPDATE Cache SET store_time = 0.5, access_time = 0.5, expire_time = 1.0").rowcount
    with open_records(tmp_path / "store") as records:
        replayed = await answers((PLAIN, Engine(records=records, mode="replay")))
        # The other model is asked and takes the first of the answers: one that was asked again would have the second.
        again = await answers((TELLING["model"], Engine(records=records)), (PLAIN, Engine(records=records)))

    assert (first, changed, replayed, again) == (["0"], 1, ["0"], ["0", "0"])
