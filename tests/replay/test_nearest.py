from __future__ import annotations

import pytest

from askance.chat import JsonObject, key_of
from askance.replay import MemoryStore, Record, explain_miss
from askance.replay import nearest as nearest_module
from askance.replay.nearest import nearest_key
from tests.replay.samples import picture_request, record, request

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
    monkeypatch.setattr(nearest_module, "MOST_CANDIDATES", 2)
    records = store(request("one"), request("two"), request("three"))
    assert nearest_key(request("three"), "chat", records) in {key_of("chat", request(text)) for text in ("one", "two")}


ODD: list[list[object]] = [[1], ["text"], [{"parts": 1}], [{"parts": ["text"]}], [{"parts": [{"sha256": []}]}]]


@pytest.mark.parametrize("messages", ODD, ids=["number", "text", "parts", "part", "digest"])
def test_a_request_of_another_shape_does_no_harm(messages: list[object]) -> None:
    odd = Record(kind="chat", key="0" * 64, request={"messages": messages}, response={})
    assert explain_miss(request(), "chat", MemoryStore([odd, record("unlike")])).nearest is not None
