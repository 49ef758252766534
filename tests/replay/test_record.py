from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from askance.atypicality import RELATIONS
from askance.chat import (
    ChatRequest,
    ChatResponse,
    JsonObject,
    Message,
    ModelId,
    ResponseFormat,
    Sampling,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
    canonical_json,
    key_of,
)
from askance.errors import StoreError
from askance.replay import KINDS, Cassette, MemoryStore, Record, ValidRecords, export_cassette, open_records
from askance.replay.record import SCHEMA, check_key, check_schema, model_name, recorded_response
from tests.replay.samples import AT, picture_request, record, request

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_record_comes_back_from_its_text(asked: JsonObject, answered: JsonObject) -> None:
    made = Record.make("embed", asked, answered, at=AT)
    back = Record.from_canonical(json.loads(made.to_json()))
    assert back == made
    assert back.to_json() == made.to_json()
    assert key_of("embed", back.request) == made.key == key_of("embed", asked)


@given(OBJECTS, OBJECTS, st.dictionaries(TEXT, OBJECTS, max_size=2))
def test_a_response_is_found_beside_its_request(
    asked: JsonObject, answered: JsonObject, images: dict[str, JsonObject]
) -> None:
    made = Record.make("chat", asked, answered, images=images, at=AT)

    found = recorded_response(made.to_json(), key=made.key, canonical_text=canonical_json(asked))

    assert found in (made.response, None)
    assert found is not None or canonical_json(asked) not in made.to_json()


ASKED, SAID = '{"model":"m"}', '{"text":"a cup"}'
TEXTS = {
    "as written": (f'{{"at":"x","key":"k","kind":"chat","request":{ASKED},"response":{SAID}}}', True),
    "with pictures": (f'{{"images":{{"a":{{}}}},"key":"k","kind":"chat","request":{ASKED},"response":{SAID}}}', True),
    "another key": (f'{{"key":"l","kind":"chat","request":{ASKED},"response":{SAID}}}', False),
    "another kind": (f'{{"key":"k","kind":"ocr","request":{ASKED},"response":{SAID}}}', False),
    "another request": (f'{{"key":"k","kind":"chat","request":{{"model":"n"}},"response":{SAID}}}', False),
    "written otherwise": (f'{{"key": "k", "kind": "chat", "request": {ASKED}, "response": {SAID}}}', False),
    "more behind it": (f'{{"key":"k","kind":"chat","request":{ASKED},"response":{SAID},"x":1}}', False),
    "a record in a record": (f'{{"images":{{"key":"k","kind":"chat","request":{ASKED},"response":{SAID}}}}}', False),
    "no response": (f'{{"key":"k","kind":"chat","request":{ASKED},"response":[]}}', False),
    "no pictures": (f'{{"images":[],"key":"k","kind":"chat","request":{ASKED},"response":{SAID}}}', False),
    "two values": (f'{{"at":"x"}},{{"key":"k","kind":"chat","request":{ASKED},"response":{SAID}}}', False),
}


@pytest.mark.parametrize(("text", "found"), TEXTS.values(), ids=TEXTS)
def test_only_the_record_of_this_very_request_is_read_in_part(text: str, found: bool) -> None:
    try:
        response = recorded_response(text, key="k", canonical_text=ASKED)
    except ValueError:
        response = None

    assert response == ({"text": "a cup"} if found else None)


def test_a_record_has_the_key_of_the_request() -> None:
    made = record()
    assert made == Record(
        kind="chat",
        key=key_of("chat", request()),
        request=request(),
        response={"text": "a cup", "finish": "stop"},
        images={},
        at=AT,
    )
    check_key(made)


def test_a_record_is_dated_now_by_default() -> None:
    made = Record.make("score", {}, {})
    assert len(made.at) == len(AT)
    assert made.at > AT


def test_equal_values_make_equal_lines() -> None:
    one = Record.make("score", {"b": 1.0, "a": (1, 2)}, {"x": 0.0}, at=AT)
    other = Record.make("score", {"a": [1.0, 2], "b": 1}, {"x": 0}, at=AT)
    assert one.to_json() == other.to_json()


def test_half_a_surrogate_pair_is_kept() -> None:
    made = record(answer="broken \ud83d emoji")
    assert made.to_json().isascii()
    assert Record.from_canonical(json.loads(made.to_json())) == made


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "The number nan cannot be recorded: JSON has no such number."),
        (float("-inf"), "The number -inf cannot be recorded: JSON has no such number."),
        (2**64, "An integer beyond 64 bits cannot be recorded."),
        (b"bytes", "A bytes cannot be recorded: it is no JSON value."),
        ({1: 2}, "The field name 1 cannot be recorded: it is no text."),
    ],
    ids=["nan", "infinity", "integer", "bytes", "name"],
)
def test_what_cannot_be_recorded_is_refused(value: Any, message: str) -> None:
    with pytest.raises(StoreError) as caught:
        Record.make("chat", request(), {"value": value})
    assert str(caught.value) == message


def test_nesting_without_end_is_refused() -> None:
    form: JsonObject = {}
    form["again"] = form
    with pytest.raises(StoreError, match=r"^A value nested deeper than 100 levels cannot be recorded\.$"):
        Record.make("chat", request(), form)


def test_a_key_that_is_another_requests_is_refused() -> None:
    made = record()
    false = Record(kind="chat", key="0" * 64, request=made.request, response=made.response)
    message = f"The key '000000000000' is not that of the request beside it, {made.key[:12]!r}."
    with pytest.raises(StoreError) as caught:
        check_key(false)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"kind": "song", "key": "k", "request": {}, "response": {}},
        {"kind": ["chat"], "key": "k", "request": {}, "response": {}},
        {"kind": "chat", "key": "k", "request": [], "response": {}},
        {"kind": "chat", "key": "k", "request": {}, "response": "a cup"},
        {"kind": "chat", "request": {}, "response": {}},
        ["chat"],
    ],
    ids=["empty", "kind", "kind-list", "request", "response", "no-key", "list"],
)
def test_other_values_are_no_record(form: Any) -> None:
    with pytest.raises(StoreError, match=r"^These values are no record: a record has a kind"):
        Record.from_canonical(form)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({"provider": "openai", "model": "gpt-4o"}, "openai:gpt-4o"),
        ({"provider": "openai", "model": "x", "endpoint": "http://h/v1"}, "openai:x@http://h/v1"),
        ({"name": "llava"}, "llava"),
        ("rapidocr", "rapidocr"),
        (None, ""),
    ],
    ids=["provider", "endpoint", "named", "text", "none"],
)
def test_a_model_has_a_name_in_words(model: Any, name: str) -> None:
    assert model_name({"model": model}) == name


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (ChatResponse(text="a cup"), "answered"),
        (ChatResponse(finish="length"), "truncated"),
        (ChatResponse(finish="content_filter"), "filtered"),
        (ChatResponse(refusal="No."), "refused"),
    ],
    ids=["answered", "truncated", "filtered", "refused"],
)
def test_a_chat_record_knows_its_outcome(response: ChatResponse, outcome: str) -> None:
    assert Record.make("chat", request(), response.canonical()).outcome == outcome


def test_what_other_processes_see_has_leases_and_a_folder(tmp_path: Path) -> None:
    with open_records(tmp_path) as store, open_records(tmp_path, read_only=True) as other:
        leases = store.leases()
        assert leases is not None
        assert (leases.take("ab" * 32), other.leases(), other.folder) == (True, None, tmp_path)
        leases.close()
    for records in (MemoryStore(), ValidRecords(store)):
        assert (records.leases(), records.folder) == (None, None)


def test_of_valid_records_answers_are_read_and_nothing_is_put() -> None:
    records = ValidRecords(MemoryStore([record()]))
    assert records.answer(record().key, canonical_json(record().request)) == record().response
    with pytest.raises(StoreError, match=r"^The records of 'memory' are open for reading only\."):
        records.put_all([record("another")])


def test_a_cassette_is_played_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "cassette.jsonl"
    export_cassette([record()], path)
    store = Cassette(path)
    assert (list(store), store.writable, store.name) == ([record()], False, str(path))
    with pytest.raises(StoreError) as caught:
        store.put(record("another"))
    assert str(caught.value) == (
        f"The records of {str(path)!r} are open for reading only."
        " Import the cassette into a store, or replay what it holds."
    )


def test_a_memory_store_may_be_open_for_reading_only() -> None:
    store = MemoryStore([record()], writable=False)
    with pytest.raises(StoreError, match=r"^The records of 'memory' are open for reading only\."):
        store.put(record("another"))
    assert (list(store), store.writable) == ([record()], False)


CALL = ToolCall("1", "look", '{"at": "it"}')
FULL_REQUEST = ChatRequest(
    model=ModelId("openai", "gpt-4o", endpoint="http://127.0.0.1:8000/v1", api="responses"),
    messages=(
        Message("system", (TextPart("Look."),)),
        Message("assistant", (), tool_calls=(CALL,)),
        Message("tool", (TextPart("a cup"),), tool_call_id="1"),
    ),
    tools=(ToolSpec("look", "Looks.", {"type": "object"}),),
    response=ResponseFormat("json_schema", "Answer", {"enum": list(RELATIONS)}),
    sampling=Sampling(temperature=0.5, top_p=0.9, seed=1, max_tokens=10, stop=("\n",), logprobs=3),
    extra={"reasoning_effort": "low"},
    draw=2,
)
FULL_RESPONSE = ChatResponse(
    text="TR1",
    thinking="Hm.",
    tool_calls=(CALL,),
    finish="tool_calls",
    refusal="No.",
    usage=Usage(input=1, output=2, cached=3, image=4, thinking=5),
    model="gpt-4o-2024",
    logprobs=({"token": "TR", "logprob": -0.5, "top": {"TR": -0.5}},),
)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_all_that_a_chat_can_say_fits() -> None:
    digest = "0" * 64
    images = {digest: {"sent": digest, "media_type": "image/png", "width": 1, "height": 2}}
    check_schema(Record.make("chat", FULL_REQUEST.canonical(), FULL_RESPONSE.canonical(), images=images).canonical())
    check_schema(Record.make("chat", picture_request(), ChatResponse().canonical(), at="").canonical())


def test_nothing_that_a_chat_can_say_is_left_out() -> None:
    asked = {field.name for field in fields(ChatRequest) if field.init and field.compare}
    answered = {field.name for field in fields(ChatResponse) if field.compare}
    request = replace(FULL_REQUEST, given="a text to be weighed")
    assert (request.canonical().keys(), FULL_RESPONSE.canonical().keys()) == (asked, answered)


@pytest.mark.parametrize("kind", sorted(KINDS - {"chat", "search"}))
def test_other_kinds_are_free_in_what_they_hold(kind: str) -> None:
    check_schema({"kind": kind, "key": "0" * 64, "request": {"any": 1}, "response": {"thing": [None]}})


def test_a_long_instance_is_cut_in_the_message() -> None:
    with pytest.raises(StoreError) as caught:
        check_schema({"kind": "chat", "key": "x" * 10_000, "request": {}, "response": {}})
    assert len(str(caught.value)) < 250
