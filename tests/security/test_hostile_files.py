"""Cassettes and stores of strangers are data: read or refused, never run, and nothing is written elsewhere."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Picture

from askance.chains import verbalize
from askance.chat import ChatRequest
from askance.cli import main
from askance.errors import BadImage, BadRecord, CassetteError, StoreError
from askance.images import Image, Shown
from askance.models import Capabilities, Engine, ScriptedModel, get_model
from askance.models.capabilities import endpoint_form
from askance.replay import Cassette, MemoryStore, Record, Records, find_address, import_cassette, merge, open_records
from askance.replay.leases import StoreLeases
from askance.tools import narration
from tests.replay.samples import record
from tests.scripted import PICTURE, model_of, scripted

MB = 2**20


def a_gigabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


def a_long_text(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'{"kind": "chat", "x": "')
        for _ in range(70):
            file.write(b"x" * MB)


def many_values(path: Path) -> None:
    path.write_bytes(b'{"kind":"chat","request":{"a":[' + b"[]," * (10 * MB))


HUGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a gigabyte": (a_gigabyte, "it is longer than 67108864 bytes"),
    "a long text": (a_long_text, "it is longer than 67108864 bytes"),
    "many values": (many_values, "it holds more than 1000000 values"),
}


@pytest.mark.parametrize(("write", "message"), HUGE.values(), ids=HUGE)
def test_a_huge_cassette_is_refused_in_little_memory(
    write: Callable[[Path], None], message: str, tmp_path: Path, memory: Callable[[], int]
) -> None:
    write(tmp_path / "huge.jsonl")
    with open_records() as store, pytest.raises(CassetteError, match=rf"line 1: {message}\."):
        import_cassette(tmp_path / "huge.jsonl", store)
    assert memory() < 300 * MB


def test_nothing_of_a_cassette_names_a_file(tmp_path: Path) -> None:
    """Paths in every place that takes text are text."""
    outside = tmp_path / "outside"
    path = f"../../{outside.name}"
    named = Record.make("ocr", {"path": path, "image": str(outside), "filename": path}, {"text": path, "file": path})
    (tmp_path / "paths.jsonl").write_text(named.to_json() + "\n", encoding="utf-8")

    with open_records() as store:
        import_cassette(tmp_path / "paths.jsonl", store)
        assert list(store) == [named]

    assert not outside.exists()
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} <= {"paths.jsonl", "cache.db", ".gitignore"}


STRANGE: dict[str, Any] = {
    "text that is none": {"text": 5, "finish": "stop"},
    "nested text": {"text": {"a": "b"}, "finish": "stop"},
    "tool calls that are none": {"text": "", "finish": "stop", "tool_calls": [{"id": 1}]},
    "counts that are none": {"text": "", "finish": "stop", "usage": {"input": "9" * 100}},
    "fields of another schema": {"text": "", "finish": "stop", "usage": {"bogus": 1}},
    "another ending": {"text": "", "finish": "explosion"},
    "log-probabilities that are none": {"text": "", "finish": "stop", "logprobs": 5},
}


@pytest.mark.parametrize("response", STRANGE.values(), ids=STRANGE)
async def test_a_record_that_holds_no_answer_is_no_answer(response: dict[str, Any]) -> None:
    """The keys are right, so only its values tell."""
    records = MemoryStore()
    script = scripted()
    await verbalize(model_of(script, records)).ainvoke(PICTURE)
    for kept in list(records):
        records.put(Record.make(kept.kind, kept.request, response))

    chain = verbalize(model_of(scripted(), records, mode="replay"))
    reading = await chain.ainvoke(PICTURE)
    objects = reading.objects
    assert objects is not None
    assert (reading.outcome, objects.outcome, objects.error) == ("skipped", "failed", BadRecord.__name__)
    assert re.match(
        r"The record '.*' of 'memory' holds no answer: .*askance cache verify", objects.reason or "", re.DOTALL
    )
    with open_records() as store, pytest.raises(StoreError, match=r"is damaged: (response|logprobs)"):
        merge(records, store)


ENDPOINTS: dict[str, Any] = {
    "another schema": {"schema": "explosion"},
    "no texts": {"schema": ["enforced"], "without": 5, "served_model": 5, "token_field": {"a": 1}, "images": "yes"},
    "fields of a later version": {"schema": "enforced", "smell": True},
}


@pytest.mark.parametrize("response", ENDPOINTS.values(), ids=ENDPOINTS)
async def test_a_strange_record_of_an_endpoint_is_read_as_far_as_it_goes(response: dict[str, Any]) -> None:
    script = ScriptedModel([], identity="scripted")
    strange = Record.make("endpoint", endpoint_form(script.id), response)

    found = await get_model(script, engine=Engine(mode="replay", records=MemoryStore([strange]))).capabilities()

    assert found == Capabilities(schema="enforced" if response["schema"] == "enforced" else "unknown")


NUMBERS: dict[str, Callable[[str], str]] = {
    "no number": lambda text: text.replace('"input":3', '"input":NaN'),
    "beyond all floats": lambda text: text.replace('"input":3', '"input":1e999'),
    "400 digits": lambda text: text.replace('"input":3', f'"input":1{"0" * 400}'),
    "no number in the request": lambda text: text.replace('"max_tokens":7', '"max_tokens":NaN'),
}


@pytest.mark.parametrize("change", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("command", [["stats"], ["why", "--last"], ["export", "-"], ["diff", "{store}", "{store}"]])
def test_a_number_that_is_none_damages_its_record_alone(
    command: list[str], change: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    model = {"provider": "openai", "model": "gpt-4o"}
    requests: list[dict[str, Any]] = [
        {"model": model, "messages": [], "sampling": {"max_tokens": tokens}} for tokens in (7, 8)
    ]
    with open_records() as store:
        for each in requests:
            store.put(Record.make("chat", each, {"text": "", "finish": "stop", "usage": {"input": 3, "output": 4}}))
        text = next(iter(store)).to_json()
        spoilt = Record.make("chat", requests[0], {})
    with closing(sqlite3.connect(store.beside("cache.db"), isolation_level=None)) as connection:
        ((text,),) = connection.execute("SELECT value FROM Cache WHERE key = ?", (spoilt.key,)).fetchall()
        assert change(text) != text
        connection.execute("UPDATE Cache SET value = ? WHERE key = ?", (change(text), spoilt.key))

    with pytest.raises(SystemExit) as end:
        main(["cache", *(part.format(store=store.folder) for part in command)])

    assert end.value.code == 1
    assert "damaged record" in capsys.readouterr().err


def test_what_would_steer_a_terminal_is_escaped_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steering = "\x9b31m\u202e\u2066\x7f\U000e0041"
    with open_records() as store:
        store.put(record(steering))
        kept = list(store)

    with pytest.raises(SystemExit):
        main(["cache", "export", "-"])

    out = capsys.readouterr().out
    assert [mark for mark in steering if mark in out and mark not in "31m"] == []
    (tmp_path / "stdout.jsonl").write_text(out, encoding="utf-8")
    assert list(Cassette(tmp_path / "stdout.jsonl")) == kept


async def test_a_batch_of_another_century_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's store, or a clock that was wrong: nobody waits for a batch that can never end."""
    key = (await asked_of(open_records())).calls[0].key
    with open_records() as store:
        store.remove([key])
    leases = StoreLeases(Path(find_address()))
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time", lambda: 2**32 - 1e8)
        assert leases.assign_to_batch("0" * 32, [key])
    leases.close()

    again = await asyncio.wait_for(asked_of(open_records()), 10)

    assert (again.outcome, again.calls[0].key, again.calls[0].meta.replayed) == ("answered", key, False)


async def asked_of(store: Records) -> Any:
    """What one question to a model comes to, on the records of a store."""
    with store:
        return await narration(get_model(scripted(), engine=Engine(records=store))).ask(PICTURE)


def scanned(times: int) -> bytes:
    """A JPEG whose last scan stands in it so often again."""
    stream = io.BytesIO()
    Picture.new("RGB", (64, 64), (10, 90, 160)).save(stream, "JPEG", progressive=True)
    data = stream.getvalue()
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * times + data[-2:]


def test_a_picture_of_thousands_of_scans_is_refused(own_place: Path) -> None:
    Path("scans.jpg").write_bytes(scanned(3000))
    Path("sound.jpg").write_bytes(scanned(20))

    with pytest.raises(BadImage, match=r"^The picture 'scans.jpg' is a JPEG of 3,0\d\d scans, and at most 100 "):
        Shown(Image.from_path("scans.jpg")).prepare()
    Shown(Image.from_path("sound.jpg")).prepare()


def test_no_request_is_made_of_what_a_record_says(tmp_path: Path) -> None:
    """Addresses in records and cassettes are never followed: only the caller's model is asked."""
    there = ChatRequest(model=ScriptedModel([], identity="scripted").id, messages=()).canonical()
    strange = Record.make("chat", {**there, "model": {"endpoint": "http://192.0.2.1/v1", "provider": "openai"}}, {})
    (tmp_path / "one.jsonl").write_text(json.dumps(strange.canonical()), encoding="utf-8")

    with pytest.raises(CassetteError, match="line 1: response"):
        list(Cassette(tmp_path / "one.jsonl"))
