from __future__ import annotations

import io
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from askance.chat import JsonObject
from askance.errors import CassetteError, StoreError
from askance.replay import (
    Cassette,
    ImportCounts,
    MemoryStore,
    Record,
    RecordedPicture,
    Records,
    export_cassette,
    import_cassette,
    open_records,
    read_cassette,
    read_pictures,
)
from tests.replay.samples import AT, picture_request, record, request, search

GIF = bytes.fromhex("47494638396101000100800000000000ffffff2c00000000010001000002024401003b")
GIF_DIGEST = sha256(GIF).hexdigest()


def by_key(*records: Record) -> list[Record]:
    return sorted(records, key=lambda one: one.key)


def pictured() -> Record:
    images = {GIF_DIGEST: {"sent": GIF_DIGEST, "media_type": "image/gif", "width": 1, "height": 1}}
    return Record.make("chat", picture_request(GIF_DIGEST), {"text": "a dot", "finish": "stop"}, images=images, at=AT)


def write(path: Path, *lines: object) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    return tmp_path / "cassette.jsonl"


def test_what_is_exported_is_read_again(cassette: Path) -> None:
    made = [record("שלום \u202e 🧱", "a\u2028b\x85c"), record("two", "broken \ud83d emoji"), pictured()]
    made.append(Record.make("ocr", {"engine": "rapidocr", "sha256": GIF_DIGEST}, {"lines": []}))
    assert export_cassette(made, cassette) == 4
    assert list(read_cassette(cassette)) == by_key(*made)


def test_equal_records_make_equal_files(cassette: Path, tmp_path: Path) -> None:
    made = [record(f"question {number}") for number in range(100)]
    with open_records() as store:
        for one in made:
            store.put(one)
        export_cassette(store, cassette)
    export_cassette(reversed([*made, *made]), tmp_path / "other.jsonl")
    export_cassette(MemoryStore(made), tmp_path / "third.jsonl")
    assert cassette.read_bytes() == (tmp_path / "other.jsonl").read_bytes() == (tmp_path / "third.jsonl").read_bytes()


def test_a_line_is_one_record(cassette: Path) -> None:
    export_cassette([record()], cassette)
    assert cassette.read_text(encoding="utf-8") == (
        '{"at":"2026-01-31T12:00:00Z","key":"' + record().key + '","kind":"chat",'
        '"request":{"messages":[{"parts":[{"text":"You look at advertisements.","type":"text"}],"role":"system"},'
        '{"parts":[{"text":"Name the objects.","type":"text"}],"role":"user"}],'
        '"model":{"model":"gpt-4o","provider":"openai"}},"response":{"finish":"stop","text":"a cup"}}\n'
    )


def test_a_stream_is_written_as_well() -> None:
    stream = io.StringIO()
    assert export_cassette([record(), record("two")], stream, model="gpt") == 2
    assert stream.getvalue().count("\n") == 2


def test_filters_pick_what_is_exported(cassette: Path) -> None:
    export_cassette([record(), record(model="llava"), record("two", model="llava")], cassette, model="LLaVA")
    assert {one.model for one in read_cassette(cassette)} == {"openai:llava"}


def test_pictures_travel_along_where_asked_for(cassette: Path) -> None:
    images = {GIF_DIGEST: GIF, "0" * 64: b"of nobody's concern"}
    assert export_cassette([pictured(), record()], cassette, images=images) == 2
    assert list(read_pictures(cassette)) == [RecordedPicture(GIF_DIGEST, "image/gif", GIF)]
    assert list(read_cassette(cassette)) == by_key(pictured(), record())
    assert b"concern" not in cassette.read_bytes()


def test_an_export_that_fails_leaves_the_old_file(cassette: Path) -> None:
    export_cassette([record()], cassette)
    before = cassette.read_bytes()
    with pytest.raises(StoreError) as caught:
        export_cassette([record(answer="one"), record(answer="two"), record("other")], cassette)
    assert str(caught.value) == (
        f"Two records answer the request {record().key[:12]!r}, and differently. Export them apart."
    )
    assert cassette.read_bytes() == before
    assert [path.name for path in cassette.parent.glob("*cassette*")] == ["cassette.jsonl"]


def test_an_export_to_nowhere_says_so(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "cassette.jsonl"
    with pytest.raises(StoreError) as caught:
        export_cassette([record()], path)
    assert str(caught.value) == (
        f"The cassette {str(path)!r} cannot be written: No such file or directory. "
        "Name a file in a folder that is there, can be written, and has room."
    )


def test_an_import_counts_what_it_did(cassette: Path) -> None:
    export_cassette([record("new"), record("same"), record("other")], cassette)
    with open_records() as store:
        store.put(record("same", at="2020-01-01T00:00:00Z"))
        store.put(record("other", "a brick"))
        counts = import_cassette(cassette, store)
        assert counts == ImportCounts(new=1, same=1, conflicting=(record("other").key,))
        assert store.get(record("other").key) == record("other", "a brick")
        assert len(store) == 3


def test_an_import_replaces_where_told_to(cassette: Path) -> None:
    export_cassette([record()], cassette)
    store = MemoryStore([record(answer="a brick")])
    counts = import_cassette(cassette, store, overwrite=True)
    assert counts == ImportCounts(conflicting=(record().key,), replaced=True)
    assert list(store) == [record()]


def test_a_broken_cassette_changes_nothing(cassette: Path) -> None:
    write(cassette, record().to_json(), "{")
    with open_records() as store:
        with pytest.raises(CassetteError):
            import_cassette(cassette, store)
        assert not store.beside("").exists()


def test_lines_that_repeat_count_once(cassette: Path) -> None:
    write(cassette, record().to_json(), "", record().to_json().replace(AT, "2026-02-01T00:00:00Z"))
    assert list(read_cassette(cassette)) == [record()]


def test_other_systems_line_ends_and_marks_are_read(cassette: Path) -> None:
    cassette.write_bytes(b"\xef\xbb\xbf" + record().to_json().encode() + b"\r\n\r\n")
    assert list(read_cassette(cassette)) == [record()]


def changed(**fields: Any) -> JsonObject:
    return record().canonical() | fields


def answered(**fields: Any) -> JsonObject:
    return changed(response={"text": "", "finish": "stop"} | fields)


def rekeyed(**fields: Any) -> JsonObject:
    return Record.make("chat", request() | fields, record().response).canonical()


def searched(**fields: Any) -> JsonObject:
    return Record.make("search", search().request | fields, search().response).canonical()


def found(**fields: Any) -> JsonObject:
    return search().canonical() | {"response": search().response | fields}


def image(**fields: Any) -> JsonObject:
    return {"image": {"sha256": GIF_DIGEST, "media_type": "image/gif", "base64": "R0lG"} | fields}


def test_searches_are_exchanged(tmp_path: Path) -> None:
    export_cassette(MemoryStore([search(), record()]), tmp_path / "one.jsonl")
    with open_records(tmp_path / "store") as store:
        import_cassette(tmp_path / "one.jsonl", store)
        assert [*store] == by_key(search(), record())
        assert [*store.of_kind("search")] == [search()]


DEEP = '{"a":' * 200 + "1" + "}" * 200
TEXT = record().to_json()
BROKEN: dict[str, tuple[object, str]] = {
    "no-json": ("{", "it is no JSON (Expecting property name enclosed in double quotes, column 2)."),
    "torn": (TEXT[:-2], "it is no JSON (Expecting ',' delimiter, column"),
    "two-on-a-line": (TEXT + TEXT, "it is no JSON (Extra data, column"),
    "list": ([], "it is no JSON object."),
    "text": ('"text"', "it is no JSON object."),
    "nan": (TEXT.replace('"a cup"', "NaN"), "it holds NaN, which is no JSON."),
    "infinity": (TEXT.replace('"a cup"', "-Infinity"), "it holds -Infinity, which is no JSON."),
    "overflow": (TEXT.replace('"a cup"', "1e999"), "it holds 1e999, a number that is too large."),
    "integer": (TEXT.replace('"a cup"', "9" * 30), "it holds 999999999999999999…, a number of 30 digits."),
    "digits": (TEXT.replace('"a cup"', "9" * 9999), "it holds 999999999999999999…, a number of 9,999 digits."),
    "twice": (TEXT.replace('"kind"', '"kind":"ocr","kind"'), "it gives a name twice in one object."),
    "deep": (DEEP, "it is nested deeper than 100 levels."),
    "endless": ("[" * 200_000, "it is nested deeper than 100 levels."),
    "empty": ({}, "the record: 'kind' is a required property."),
    "kind": (changed(kind="song"), "kind: 'song' is not one of ['chat', 'ocr', 'endpoint', 'embed', 'score', 's"),
    "extra-field": (changed(path="/x"), "the record: Additional properties are not allowed ('path' was unexpected)."),
    "key-form": (changed(key="../../x"), "key: '../../x' does not match '^[0-9a-f]{64}$'."),
    "key": (changed(key="0" * 64), "The key '000000000000' is not that of the request beside it, "),
    "request": (changed(request=[]), "request: [] is not of type 'object'."),
    "no-model": (changed(request={"messages": []}), "request: 'model' is a required property."),
    "header": (rekeyed(headers={}), "request: Additional properties are not allowed ('headers' was unexpected)."),
    "role": (rekeyed(messages=[{"role": "robot", "parts": []}]), "request.messages[0].role: 'robot' is not one of"),
    "finish": (answered(finish="tired"), "response.finish: 'tired' is not one of"),
    "tokens": (answered(usage={"input": "1"}), "response.usage.input: '1' is not of type 'integer'."),
    "usage": (answered(usage={"money": 1}), "response.usage: 'money' is not one of"),
    "refusal": (answered(refusal={}), "response.refusal: {} is not of type 'string'."),
    "escape": (answered(text=["\x1b[2J"]), r"response.text: ['\x1b[2J'] is not of type 'string'."),
    "search-k": (searched(k=0), "request.k: 0 is less than the minimum of 1."),
    "search-how": (searched(how=1), "request.how: 1 is not of type 'string'."),
    "search-index": (searched(index="/x"), "request.index: '/x' is not of type 'object'."),
    "search-field": (searched(folder="/x"), "request: Additional properties are not allowed ('folder' was"),
    "search-places": (found(places=[1]), "response: Additional properties are not allowed ('places' was unexpected)."),
    "search-ids": (found(ids=[7]), "response.ids[0]: 7 is not of type 'string'."),
    "search-scores": (found(scores=["high"]), "response.scores[0]: 'high' is not of type 'number'."),
    "at": (changed(at="yesterday"), "at: 'yesterday' does not match"),
    "image-key": (changed(images={"x.jpg": {"sent": "0" * 64}}), "images: 'x.jpg' does not match '^[0-9a-f]{64}$'."),
    "image-digest": (image(), f"the bytes of picture {GIF_DIGEST[:12]!r} have another digest."),
    "image-base64": (image(base64="!!"), f"the bytes of picture {GIF_DIGEST[:12]!r} are no base64."),
    "image-type": (image(media_type="text/html"), "image.media_type: 'text/html' does not match"),
    "image-and-record": (
        changed() | image(),
        "the record: Additional properties are not allowed ('at', 'key', 'kind', 'request', 'response' were",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("line", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_named(cassette: Path, line: object, message: str) -> None:
    write(cassette, record("fine").to_json(), "", line)
    with pytest.raises(CassetteError) as caught:
        list(read_cassette(cassette))
    assert caught.value.message.startswith(f"{str(cassette)!r}, line 3: {message}")
    assert caught.value.hint == "Mend the line, or take it out."


def test_lines_that_contradict_each_other_are_named(cassette: Path) -> None:
    write(cassette, record().to_json(), record("two").to_json(), record(answer="a brick").to_json())
    with pytest.raises(CassetteError) as caught:
        list(read_cassette(cassette))
    assert str(caught.value) == (
        f"{str(cassette)!r}, line 3: it answers the same request as line 1, but differently."
        " Take one of the two lines out."
    )


def test_bytes_that_are_no_text_are_named(cassette: Path) -> None:
    cassette.write_bytes(b'{"text": "\xff"}\n')
    with pytest.raises(CassetteError, match=r"line 1: it is no UTF-8 text at byte 11\. Mend the line"):
        list(read_cassette(cassette))


@pytest.mark.parametrize("check", [True, False])
def test_a_cassette_that_is_not_there_is_named(cassette: Path, check: bool) -> None:
    with pytest.raises(StoreError) as caught:
        list(read_cassette(cassette, check=check))
    assert str(caught.value) == (
        f"The cassette {str(cassette)!r} cannot be read: No such file or directory. "
        "Name a file that `askance cache export` wrote, or one in a run's folder."
    )


def test_a_believed_cassette_is_read_without_the_schema(cassette: Path) -> None:
    write(cassette, record().to_json(), image(), changed(at="yesterday", key="0" * 64))
    assert [one.at for one in read_cassette(cassette, check=False)] == [AT, "yesterday"]
    write(cassette, record().to_json(), "{}")
    with pytest.raises(CassetteError, match=r"line 2: These values are no record"):
        list(read_cassette(cassette, check=False))


def test_a_cassette_is_a_holder_of_records_that_reads_each_when_it_is_looked_at(cassette: Path) -> None:
    one, two = by_key(record(), record("two"))
    held = Cassette(cassette)
    write(cassette, "", two.to_json(), one.to_json(), two.to_json())

    assert isinstance(held, Records)
    assert (list(held), list(held.keys()), len(held)) == ([one, two], [one.key, two.key], 2)
    assert list(held.of_kind("chat")) == [two, one]
    assert (held.get(one.key), held.get("0" * 64), held.writable, held.name) == (one, None, False, str(cassette))
    with pytest.raises(StoreError, match="are open for reading only"):
        held.put(one)


def test_a_cassette_with_a_broken_line_is_refused_when_it_is_looked_at(cassette: Path) -> None:
    write(cassette, record().to_json(), "{}")
    with pytest.raises(CassetteError, match="line 2: the record: "):
        Cassette(cassette).get(record().key)


def test_a_cassette_that_is_changed_while_it_is_read_is_told(cassette: Path) -> None:
    write(cassette, record().to_json())
    held = Cassette(cassette)
    assert len(held) == 1
    write(cassette, record("two").to_json())
    with pytest.raises(StoreError, match="was changed while it was read"):
        held.get(record().key)
