from __future__ import annotations

from typing import Any

import pytest

from askance.chat import JsonObject, key_of
from askance.errors import ReplayMiss
from askance.replay import MemoryStore, Record, differences, explain_miss, open_records
from askance.replay import miss as miss_module
from askance.replay.miss import nearest_key
from tests.replay.samples import DIGEST, picture_request, record, request, search, search_request

LONG = "Look at the picture. Name up to five objects that it shows. Write one a line. Write nothing else, no numbers."


def miss(asked: JsonObject, *recorded: JsonObject) -> ReplayMiss:
    made = [Record.make("chat", form, {"text": "a cup", "finish": "stop"}) for form in recorded]
    return explain_miss(asked, "chat", MemoryStore(made, name="cassette.jsonl"))


def test_a_miss_names_the_nearest_and_shows_the_first_difference() -> None:
    old, new = request(LONG), request(LONG.replace("five", "seven"))
    keys = [key_of("chat", form) for form in (old, new)]
    error = miss(new, old, request("Read the text."), request(LONG, model="llava"))
    assert (error.key, error.nearest) == (keys[1], keys[0])
    assert str(error) == (
        f"No chat answer is on record for {keys[1][:12]}"
        " (openai:gpt-4o, 'Look at the picture. Name up to seven objects…'):"
        f" the nearest, {keys[0][:12]} (openai:gpt-4o, 'Look at the picture. Name up to five objects…'),"
        " differs in the text of message 2 (user)."
        " Undo what changed, or record the answer with --mode auto.\n"
        f"--- recorded {keys[0][:12]}\n"
        f"+++ asked {keys[1][:12]}\n"
        "@@ -1,4 +1,4 @@\n"
        " Look at the picture.\n"
        "- Name up to five objects that it shows.\n"
        "+ Name up to seven objects that it shows.\n"
        "  Write one a line.\n"
        "  Write nothing else, no numbers."
    )


def test_a_search_in_another_index_names_the_index() -> None:
    store = MemoryStore([search(), search("a dog in the rain"), record()])
    error = explain_miss(search_request(index="cd" * 32), "search", store)
    assert error.nearest == search().key
    assert error.message == (
        f"No search answer is on record for {error.key[:12]} (bm25, 'a cup made of bricks'): "
        f"the nearest, {search().key[:12]} (bm25, 'a cup made of bricks'), differs in the texts of the index."
    )
    assert f'-  "sha256": "{DIGEST}"' in error.diff


def test_a_search_by_a_picture_is_near_to_others_by_it() -> None:
    pictures = [{"sha256": digest * 32} for digest in ("ab", "cd")]
    first, second = ({"how": "image", "image": picture, "k": 9} for picture in pictures)
    records = [Record.make("search", form, {"ids": [], "scores": [], "texts": []}) for form in (first, second)]
    for form, recorded in zip((first, second), records, strict=True):
        error = explain_miss({**form, "k": 8}, "search", MemoryStore(records))
        assert error.nearest == recorded.key
        assert "differs in how many hits are wanted." in error.message


def test_a_miss_without_records_says_where_it_looked() -> None:
    error = explain_miss({"engine": "rapidocr"}, "ocr", MemoryStore([record()], name="cassette.jsonl"))
    assert (error.nearest, error.diff) == (None, "")
    assert str(error) == (
        f"No ocr answer is on record for {error.key[:12]}: 'cassette.jsonl' holds no ocr records."
        " Name the store that does with ASKANCE_STORE, import a cassette, or record with --mode auto."
    )


def without(form: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in form.items() if key != name}


SCHEMA = {"kind": "json_schema", "schema": {"type": "object"}}
PICTURE = picture_request()
USER = " of message 2 (user)"
TURN: JsonObject = {"role": "assistant", "parts": []}
CHANGES: dict[str, tuple[JsonObject, JsonObject, list[str]]] = {
    "model": (request(), request(model="llava"), ["the model"]),
    "sampling": (request(temperature=0), request(temperature=0.5), ["the sampling"]),
    "sampling-new": (request(), request(temperature=0), ["the sampling"]),
    "schema": (request() | {"response": SCHEMA}, request(), ["the response schema"]),
    "tools": (request(), request() | {"tools": [{"name": "look"}]}, ["the tools"]),
    "extra": (request() | {"extra": {"a": True}}, request() | {"extra": {"a": 1}}, ["the provider's extra fields"]),
    "draw": (request(), request() | {"draw": 1}, ["the number of the draw"]),
    "null": (request(), request() | {"later": None}, ["'later'"]),
    "image": (PICTURE, picture_request("cd" * 32), ["the image of message 2 (user)"]),
    "image-none": (PICTURE, request(), [f"the {part}{USER}" for part in ("image", "preparation of the image")]),
    "text": (request("a"), request("b"), ["the text of message 2 (user)"]),
    "longer": (request(), request() | {"messages": [*request()["messages"], TURN]}, ["message 3 (assistant)"]),
    "several": (
        request("a", model="llava", temperature=0) | {"draw": 1},
        request("b", temperature=1),
        ["the model", "the text of message 2 (user)", "the sampling", "the number of the draw"],
    ),
    "other-kind": ({"engine": "a", "boxes": 1}, {"engine": "b"}, ["'boxes'", "'engine'"]),
    "messages-none": (without(request(), "messages"), request(), ["the messages"]),
    "nothing": (request(temperature=0), request(temperature=0.0), []),
}  # fmt: skip


@pytest.mark.parametrize(("recorded", "asked", "expected"), CHANGES.values(), ids=CHANGES)
def test_differences_come_in_the_order_in_which_one_looks(
    recorded: JsonObject, asked: JsonObject, expected: list[str]
) -> None:
    assert [difference.what for difference in differences(recorded, asked)] == expected


def test_the_message_lists_what_else_differs() -> None:
    error = miss(request("Name them.", temperature=1), request("Name it.", model="llava"))
    assert "differs in the model (and in the text of message 2 (user), the sampling). Undo" in error.message + " Undo"


def test_the_preparation_of_a_picture_is_a_difference() -> None:
    asked = picture_request()
    asked["messages"][1]["parts"][0]["policy"] = {"name": "original", "version": 1}
    error = miss(asked, picture_request())
    assert "differs in the preparation of the image of message 2 (user)." in error.message
    assert '-    "name": "clean",\n+    "name": "original",' in error.diff


def test_the_order_of_parts_is_a_difference() -> None:
    asked = picture_request()
    asked["messages"][1]["parts"].reverse()
    assert [one.what for one in differences(picture_request(), asked)] == ["the order of the parts of message 2 (user)"]


def test_a_new_tool_call_is_a_difference() -> None:
    asked = request()
    asked["messages"][1]["tool_calls"] = [{"id": "1", "name": "look", "arguments": "{}"}]
    assert [one.what for one in differences(request(), asked)] == ["the tool calls of message 2 (user)"]


def test_recorded_text_cannot_move_the_cursor_or_reorder_the_message() -> None:
    evil = "\x1b[2J\u202egone"
    error = miss(request(f"{evil} now", model=evil), request(f"{evil} then", model=evil))
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
    assert r"-\x1b[2J\u202egone then" in error.diff


def test_a_diff_has_an_end() -> None:
    error = miss(request("\n".join(map(str, range(10_000)))), request("\n".join(map(str, range(10_000, 20_000)))))
    assert len(error.diff.splitlines()) == 41
    assert error.diff.endswith("lines more")


def test_a_difference_far_down_has_its_line_number() -> None:
    lines = [f"line {number}" for number in range(1, 1001)]
    changed = [*lines[:699], "another", *lines[700:]]
    error = miss(request("\n".join(changed)), request("\n".join(lines)))
    assert error.diff.split("\n")[2:] == [
        "@@ -698,5 +698,5 @@",
        " line 698",
        " line 699",
        "-line 700",
        "+another",
        " line 701",
        " line 702",
    ]


def test_an_answer_that_came_meanwhile_is_no_difference() -> None:
    error = miss(request(), request())
    assert (error.nearest, error.diff) == (error.key, "")
    assert "differs in nothing any more: it was recorded meanwhile." in error.message


ODD: list[dict[str, Any]] = [{}, {"messages": []}, {"messages": [{"role": "user", "parts": []}]}, {"model": 7}]


@pytest.mark.parametrize("asked", ODD, ids=["empty", "no-messages", "no-parts", "model"])
def test_any_request_can_be_missed(asked: dict[str, Any]) -> None:
    assert miss(asked, request(), picture_request(DIGEST)).nearest is not None


def test_a_store_explains_its_misses() -> None:
    with open_records() as store:
        store.put(record())
        error = explain_miss(request("Name the things."), "chat", store)
    assert error.nearest == record().key


OBJECTS = "Look at the picture and name up to five objects that it shows, one a line."
SCENE = "Read the text in the picture and write down each line as it stands there."
CAPTION = "Describe in one sentence what a passer-by would notice first about this advertisement."
A, B, C = "aa" * 32, "bb" * 32, "cc" * 32


def store(*forms: JsonObject) -> MemoryStore:
    return MemoryStore(Record.make("chat", form, {"text": "", "finish": "stop"}) for form in forms)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (picture_request(A, OBJECTS.replace("five", "six")), picture_request(A, OBJECTS)),
        (picture_request(C, CAPTION), picture_request(B, CAPTION)),
        (picture_request(A, SCENE) | {"sampling": {"seed": 1}}, picture_request(A, SCENE)),
        (
            request("A cup with the texture of brick. Which statement holds?"),
            request("A cup of brick. Which statement?"),
        ),
    ],
    ids=["prompt-edited", "new-picture", "sampling", "text-alone"],
)
def test_the_nearest_is_what_a_person_would_pick(asked: JsonObject, expected: JsonObject) -> None:
    records = store(
        picture_request(A, SCENE),
        picture_request(A, OBJECTS),
        picture_request(B, CAPTION),
        request("A cup of brick. Which statement?"),
        request("A rocket of coins. Which reasons?", model="llava"),
    )
    found = nearest_key(asked, "chat", records)
    assert found is not None
    assert found == key_of("chat", expected)


def test_of_equals_the_smallest_key_is_taken() -> None:
    forms = [request("same words") | {"draw": number} for number in range(1, 20)]
    smallest = min(key_of("chat", form) for form in forms)
    assert nearest_key(request("same words"), "chat", store(*forms)) == smallest
    assert nearest_key(request("same words"), "chat", store(*reversed(forms))) == smallest


def test_other_kinds_are_not_near() -> None:
    assert nearest_key(request(), "ocr", store(request())) is None


def test_records_that_are_added_are_seen() -> None:
    records = store(request("unlike"))
    assert nearest_key(request(), "chat", records) == key_of("chat", request("unlike"))
    records.put(record())
    assert nearest_key(request(), "chat", records) == record().key


def test_many_records_are_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miss_module, "MAX_CANDIDATES", 2)
    records = store(request("one"), request("two"), request("three"))
    assert nearest_key(request("three"), "chat", records) in {key_of("chat", request(text)) for text in ("one", "two")}


ODD_MESSAGES: list[list[object]] = [[1], ["text"], [{"parts": 1}], [{"parts": ["text"]}], [{"parts": [{"sha256": []}]}]]


@pytest.mark.parametrize("messages", ODD_MESSAGES, ids=["number", "text", "parts", "part", "digest"])
def test_a_request_of_another_shape_does_no_harm(messages: list[object]) -> None:
    odd = Record(kind="chat", key="0" * 64, request={"messages": messages}, response={})
    assert explain_miss(request(), "chat", MemoryStore([odd, record("unlike")])).nearest is not None
