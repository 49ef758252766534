from __future__ import annotations

import asyncio
import base64
import json
import math
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from askance.chat import key_of
from askance.errors import BadRecord, ConfigError, MissingExtra, ModelError, ReplayMiss, UsageError
from askance.images import Image
from askance.models import Engine, ScriptedEmbedder, collect_keys, cosine, get_embedder
from askance.models.encoders.sentence import SentenceEncoder
from askance.models.encoders.vectors import packed
from askance.replay import Cassette, MemoryStore, Mode, Record, Records

ROOT = Path(__file__).resolve().parents[3]
VECTORS = {"a cup": (1.0, 0.0), "a mug": (0.6, 0.8), "a horse": (0.0, 1.0), "nothing": (0.0, 0.0)}


def scripted(identity: str | None = "table") -> ScriptedEmbedder:
    return ScriptedEmbedder(VECTORS.__getitem__, identity=identity, normalized=True)


def over(records: Records, mode: Mode = "auto") -> Engine:
    return Engine(records=records, mode=mode)


def request(text: str) -> dict[str, Any]:
    return {"model": {"name": "table"}, "text": text}


async def test_each_text_has_a_record_with_its_numbers_in_32_bits() -> None:
    records = MemoryStore()
    embedder = get_embedder(scripted(), engine=over(records))

    vectors = await embedder.embed(["a mug", "a cup"])

    mug = struct.unpack("<2f", struct.pack("<2f", 0.6, 0.8))
    assert vectors == [mug, (1.0, 0.0)]
    record = records.get(key_of("embed", request("a mug")))
    assert record is not None
    packed = base64.b64encode(struct.pack("<2f", 0.6, 0.8)).decode()
    assert (record.kind, record.request, record.response) == (
        "embed",
        request("a mug"),
        {"float32": packed, "size": 2},
    )


async def test_equal_texts_are_embedded_once_and_what_is_on_record_never() -> None:
    script = scripted()
    embedder = get_embedder(script, engine=over(MemoryStore()))

    first = await embedder.embed(["a cup", "a horse", "a cup"])
    second = await embedder.embed(["a horse", "a mug"])

    assert script.asked == [("a cup", "a horse"), ("a mug",)]
    assert (first[0], first[1]) == (first[2], second[0])


async def test_what_is_on_its_way_is_not_made_again() -> None:
    script = scripted()
    embedder = get_embedder(script, engine=over(MemoryStore()))

    await asyncio.gather(*(embedder.embed(["a cup", "a mug"]) for _ in range(5)))

    assert script.asked == [("a cup", "a mug")]


@pytest.mark.parametrize(
    ("mode", "asked", "kept"),
    [
        ("auto", [("a mug",)], (1.0, 0.0)),
        ("live", [("a cup", "a mug"), ("a cup",)], (1.0, 0.0)),
        ("refresh", [("a cup", "a mug")], (0.5, 0.5)),
    ],
    ids=["auto", "live", "refresh"],
)
async def test_a_mode_says_what_is_read_asked_and_written(mode: Mode, asked: object, kept: tuple[float, ...]) -> None:
    records = MemoryStore()
    await get_embedder(scripted(), engine=over(records)).embed(["a cup"])
    script = ScriptedEmbedder(lambda _: (0.5, 0.5), identity="table")
    embedder = get_embedder(script, engine=over(records, mode))

    await embedder.embed(["a cup", "a mug"])
    await embedder.embed(["a cup"])

    assert script.asked == asked
    assert await get_embedder(scripted(), engine=over(records, "replay")).embed(["a cup"]) == [kept]


async def test_a_replay_asks_nobody_and_says_what_is_missing() -> None:
    records = MemoryStore()
    await get_embedder(scripted(), engine=over(records)).embed(["a cup"])
    script = scripted()
    embedder = get_embedder(script, engine=over(records, "replay"))

    assert await embedder.embed(["a cup"]) == [(1.0, 0.0)]
    with pytest.raises(ReplayMiss) as caught:
        await embedder.embed(["a cup", "a mug"])
    assert caught.value.key == key_of("embed", request("a mug"))
    assert "(table): the nearest, " in str(caught.value)
    assert "differs in 'text'." in str(caught.value)
    assert str(caught.value).splitlines()[-2:] == ["-a cup", "+a mug"]
    assert script.asked == []


async def test_texts_that_are_embedded_together_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    records, reads = MemoryStore(), list[int]()
    await get_embedder(scripted(), engine=over(records)).embed(["a cup", "a mug"])

    def noted(keys: Iterable[str], /) -> dict[str, Record]:
        wanted = list(keys)
        reads.append(len(wanted))
        return Records.get_all(records, wanted)

    monkeypatch.setattr(records, "get_all", noted)
    await get_embedder(scripted(), engine=over(records, "replay")).embed(["a cup", "a mug"])

    assert reads == [2]


async def test_the_keys_are_those_of_the_records_and_are_noted() -> None:
    records = MemoryStore()
    embedder = get_embedder(scripted(), engine=over(records))

    with collect_keys() as noted:
        await embedder.embed(["a cup", "a mug", "a cup"])

    assert embedder.keys(["a cup", "a mug", "a cup"]) == tuple(noted)
    assert sorted(noted) == sorted(records.keys())


async def test_a_script_without_an_identity_is_neither_recorded_nor_replayed() -> None:
    records = MemoryStore()
    embedder = get_embedder(scripted(None), engine=over(records))

    assert await embedder.embed(["a horse", "a cup", "a horse"]) == [(0.0, 1.0), (1.0, 0.0), (0.0, 1.0)]
    assert (len(records), embedder.keys(["a cup"])) == (0, ())
    with pytest.raises(UsageError, match=r"cannot be replayed: nothing tells them from another model's\."):
        get_embedder(scripted(None), engine=over(records, "replay"))


async def test_an_object_is_filed_under_the_name_it_is_given() -> None:
    class Lengths:
        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[len(text)] for text in texts]

    records = MemoryStore()
    await get_embedder(Lengths(), identity="lengths", engine=over(records)).embed(["four"])

    assert [record.request for record in records] == [{"model": {"name": "lengths"}, "text": "four"}]


async def test_what_an_embedder_is_made_of_enters_the_key() -> None:
    cut = scripted()
    cut.parameters = {"max_tokens": 4}  # pyright: ignore[reportAttributeAccessIssue]  # as an embedder may have
    records = MemoryStore()

    await get_embedder(scripted(), engine=over(records)).embed(["a cup"])
    await get_embedder(cut, engine=over(records)).embed(["a cup"])

    assert len(records) == 2


def picture(text: str = "red") -> Image:
    return Image.from_digest(sha256(text.encode()).hexdigest())


async def test_a_picture_has_a_record_by_the_digest_of_its_file() -> None:
    records, image = MemoryStore(), picture()
    script = ScriptedEmbedder(VECTORS.__getitem__, identity="table", image=lambda _: (0.6, 0.8))
    embedder = get_embedder(script, engine=over(records))

    assert embedder.lacking([image, "a cup"]) == {*embedder.keys([image]), *embedder.keys(["a cup"])}
    with collect_keys() as noted:
        vector = await embedder.embed_image(image)
    assert vector == await embedder.embed_image(image)
    replayed = get_embedder(embedder.form(), engine=over(records, "replay"))

    assert vector == await replayed.embed_image(image) == struct.unpack("<2f", struct.pack("<2f", 0.6, 0.8))
    assert len(script.shown) == 1
    assert not script.asked
    (record,) = records
    assert (record.kind, record.request) == ("embed", {"model": {"name": "table"}, "image": {"sha256": image.sha256}})
    assert (record.key,) == embedder.keys([image]) == tuple(noted)
    assert embedder.lacking([image, "a cup"]) == {*embedder.keys(["a cup"])}
    with pytest.raises(ReplayMiss, match="No embed answer is on record"):
        await replayed.embed_image(picture("blue"))


class TextsAlone:
    id = "texts"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (TextsAlone(), r"^The embedder 'texts' takes no pictures\. Give one that does: `clip:FOLDER`"),
        (scripted(), r"^This script has no vectors of pictures\. Give one: `image=`\.$"),
        (
            {"model": {"name": "table"}},
            r"^The embedder 'table' is known by its records alone, and they lack the picture",
        ),
        (
            {"model": {"provider": "clip", "model": "models/clip?remote_code=true"}},
            r"^The embedder 'clip:models/clip\?remote_code=true' is known by its records alone",
        ),
    ],
    ids=["texts alone", "script", "form", "form with settings"],
)
async def test_an_embedder_without_pictures_says_so(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        await get_embedder(given, engine=over(MemoryStore())).embed_image(picture())


async def test_a_form_is_enough_for_the_records() -> None:
    records = MemoryStore()
    embedder = get_embedder(scripted(), engine=over(records))
    await embedder.embed(["a cup"])

    described = get_embedder(embedder.form(), engine=over(records, "auto"))

    assert await described.embed(["a cup"]) == [(1.0, 0.0)]
    with pytest.raises(UsageError) as caught:
        await described.embed(["a mug"])
    assert str(caught.value) == (
        "The embedder 'table' is known by its records alone, and they lack 'a mug'. "
        "Name the embedder itself: a spec, or an object."
    )


@pytest.mark.parametrize("source", ["owner/name@main", "owner/name", "/etc", "./here", ".."])
async def test_a_form_downloads_nothing_and_opens_no_folder(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (tmp_path / "here").mkdir()
    described = get_embedder({"model": {"provider": "st", "model": source}}, engine=over(MemoryStore(), "auto"))

    with pytest.raises(UsageError, match=r"is known by its records alone, and they lack 'a mug'\. Name the embedder"):
        await described.embed(["a mug"])


WRONG: dict[str, tuple[Any, str]] = {
    "too few": ([[1.0]], "'wrong' was asked for 2 vectors of one size and gave some 1 in all."),
    "of two sizes": ([[1.0], [1.0, 2.0]], "'wrong' was asked for 2 vectors of one size and gave some of different"),
    "no number": ([[1.0], [math.nan]], "'wrong' gave a vector that is empty or holds something that is no number"),
    "too large": ([[1.0], [1e300]], "'wrong' gave a vector that is empty or holds something that is no number"),
    "empty": ([[], []], "'wrong' gave a vector that is empty or holds something that is no number"),
    "nested": ([[[1.0]], [[2.0]]], "'wrong' gave a vector that is empty or holds something that is no number"),
    "texts": ([["a"], ["b"]], "'wrong' gave a vector that is empty or holds something that is no number"),
    "nothing": ([None, None], "'wrong' gave a vector that is empty or holds something that is no number"),
}


class Wrong:
    id = "wrong"

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors

    async def embed(self, texts: Sequence[str]) -> Any:
        return self.vectors


@pytest.mark.parametrize(("vectors", "message"), WRONG.values(), ids=WRONG)
async def test_what_is_no_vector_is_no_answer(vectors: Any, message: str) -> None:
    records = MemoryStore()
    with pytest.raises(ModelError) as caught:
        await get_embedder(Wrong(vectors), engine=over(records)).embed(["a cup", "a mug"])
    assert str(caught.value).startswith(message)
    assert len(records) == 0


@pytest.mark.parametrize("name", ["too few", "of two sizes", "empty", "nested", "texts", "nothing"])
async def test_an_index_is_given_no_lists_that_are_no_vectors(name: str) -> None:
    vectors, message = WRONG[name]

    with pytest.raises(ModelError, match=re.escape(message)):
        await get_embedder(Wrong(vectors), engine=over(MemoryStore())).fresh(["a cup", "a mug"])


@pytest.mark.parametrize(
    "response",
    [{}, {"float32": "AAAA", "size": 1}, {"float32": "!", "size": 1}, {"float32": "AAAAAA==", "size": 2}, {"size": 0}],
    ids=["nothing", "three bytes", "no base64", "another size", "no numbers"],
)
async def test_a_damaged_record_is_said_to_be(response: dict[str, Any]) -> None:
    records = MemoryStore([Record.make("embed", request("a cup"), response)])

    with pytest.raises(BadRecord, match=r"^The record '[0-9a-f]{12}' holds no vector\."):
        await get_embedder(scripted(), engine=over(records)).embed(["a cup"])


NONE: dict[str, tuple[Any, type[UsageError], str]] = {
    "unknown": ("voyage:small", ConfigError, "'voyage:small' names no embedder. "),
    "misspelt": ("str:folder", ConfigError, "'str:folder' names no embedder. Nearest: 'st'. Write `st:FOLDER` or"),
    "nothing behind it": ("st:", ConfigError, "'st:' names no embedder. Write `st:FOLDER` or `st:sentence-"),
    "no folder": ("st:./missing", ConfigError, "There is no folder './missing', and it is no name on the hub."),
    "no embedder": (3, UsageError, "A int is no embedder. Give `st:FOLDER` or"),
    "no form": ({"text": "x"}, UsageError, "This is the identity of no model: 'None'."),
}


@pytest.mark.parametrize(("given", "kind", "message"), NONE.values(), ids=NONE)
def test_what_is_no_embedder_is_said_to_be_none(given: Any, kind: type[UsageError], message: str) -> None:
    with pytest.raises(kind) as caught:
        get_embedder(given, engine=over(MemoryStore()))
    assert str(caught.value).startswith(message)


COSINES: dict[str, tuple[tuple[float, ...], tuple[float, ...], float]] = {
    "the same": ((3.0, 4.0), (3.0, 4.0), 1.0),
    "of another length": ((3.0, 4.0), (6.0, 8.0), 1.0),
    "opposite": ((1.0, 2.0), (-1.0, -2.0), -1.0),
    "square": ((1.0, 0.0), (0.0, 7.0), 0.0),
    "24 of 25": ((3.0, 4.0), (4.0, 3.0), 0.96),
    "no length": ((0.0, 0.0), (1.0, 0.0), 0.0),
}


@pytest.mark.parametrize(("one", "other", "expected"), COSINES.values(), ids=COSINES)
def test_cosine(one: tuple[float, ...], other: tuple[float, ...], expected: float) -> None:
    assert cosine(one, other) == pytest.approx(expected, abs=1e-15)
    assert -1 <= cosine(one, other) <= 1


def test_vectors_of_two_sizes_cannot_be_compared() -> None:
    with pytest.raises(
        UsageError, match=r"^Vectors of 1 and of 2 numbers cannot be compared\. Make them by one encoder\.$"
    ):
        cosine((1.0,), (1.0, 2.0))


# --- st: ---


def folder_of(place: Path, **files: bytes) -> Path:
    for name, content in {"model.safetensors": b"weights", "config.json": b"{}", **files}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return place


def test_a_folder_is_known_by_what_decides_vectors_and_not_by_its_place(tmp_path: Path) -> None:
    here = SentenceEncoder(str(folder_of(tmp_path / "here"))).id
    there = SentenceEncoder(str(folder_of(tmp_path / "there", **{"README.md": b"words"}))).id
    other = SentenceEncoder(str(folder_of(tmp_path / "other", **{"model.safetensors": b"others"}))).id

    assert here == there
    assert other != here
    assert str(here).startswith("st:sha256:")


def module(kind: str, path: str = "") -> dict[str, str]:
    return {"type": f"sentence_transformers.models.{kind}", "path": path}


def pooled(settings: dict[str, Any], *more: dict[str, str]) -> dict[str, bytes]:
    """The files of an encoder that pools as its `settings` say."""
    modules = [module("Transformer"), module("Pooling", "1_Pooling"), *more]
    return {"modules.json": json.dumps(modules).encode(), "1_Pooling/config.json": json.dumps(settings).encode()}


EVERY = ("mean_tokens", "cls_token", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
PROMPTS = {"config_sentence_transformers.json": b'{"prompts": {"query": "find: "}}'}

KEYS: dict[str, tuple[dict[str, bytes], str, str, str]] = {
    "a plain transformer": ({}, "", "mean", "96c7699d511dfd24598ef4b69b6bf0345ed3377b9b2d05d4466bc1ee8d4bfa97"),
    "one that pools as was said": (
        {},
        "?pooling=lasttoken",
        "lasttoken",
        "e10eb2e0c5cd63dd8285b4965c8df7f4e6afb1170734c81b32e8e56ff93b44ae",
    ),
    "in other numbers": (
        {},
        "?dtype=bfloat16",
        "mean",
        "905da031970f2bf3e36fc7fc07d9e4bc430473ff4b0868716228bb0f3152ffab",
    ),
    "older settings": (
        pooled({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}),
        "",
        "cls",
        "17c98cfa6c12156b99fc4d78eb1fad475362eb7b4058668681f9f2472f2b5483",
    ),
    "nothing is on": (
        pooled({"pooling_mode_cls_token": False}),
        "",
        "mean",
        "173f3bff294469511068aef44fed5a6551b8614249658c5871c37a25fd9e896f",
    ),
    "every way": (
        pooled({f"pooling_mode_{way}": True for way in EVERY}),
        "",
        "cls+max+mean+mean_sqrt_len_tokens+weightedmean+lasttoken",
        "b2ab9c922a5ff59cdaa0d962d4b5a5dcf55001afe99878c3aedba016b8e730c5",
    ),
    "newer settings": (
        pooled({"pooling_mode": "lasttoken", "pooling_mode_cls_token": True}),
        "",
        "lasttoken",
        "ed69935e6a8ac5aa8df88189d6bcdb8ca2f7ceafb554ddc8a99aa6084c6033eb",
    ),
    "a list": (
        pooled({"pooling_mode": ["mean", "cls"]}),
        "",
        "mean+cls",
        "0aed052e61946a4fcfb8db21cd0881c8eab339ca8871ac1a60e778eb47e47c34",
    ),
    "a dense layer": (
        pooled({}, module("Dense", "2_Dense"), module("Normalize")),
        "",
        "mean",
        "138493a3942bdedaddd740d173bc1142a7beea0abfa252da5da434f19547fc20",
    ),
    "another layer": (
        pooled({}, module("Dropout", "2_Dropout")),
        "",
        "own",
        "44b4b40601150ee63e7fccec74d1d5ad3e0cdc4db735c0b7e2bcaf9633fae9fa",
    ),
    "out of order": (
        pooled({}, module("Normalize"), module("Dense", "2_Dense")),
        "",
        "own",
        "c6f59da2822d57920b3ea678b22716007838496dba630cf89053e9b57c307beb",
    ),
    "no transformer": (
        {"modules.json": json.dumps([module("StaticEmbedding")]).encode()},
        "",
        "own",
        "3015b4351d61d162feb6cafbb5ea9d5bd6affd985431e5b4e4821f857b3f3e0a",
    ),
    "a prompt": (
        {**pooled({}), **PROMPTS},
        "?prompt=query",
        "mean",
        "261bcf8360c93ddbff839e7afc8b4e3b815b47463b8d2c064c9f325ce6fe6a82",
    ),
}
"""Files beside the weights, settings, how such an encoder pools, and the key of its vector of "a cup"."""


@pytest.mark.parametrize(("files", "settings", "pooling", "key"), KEYS.values(), ids=KEYS)
def test_the_keys_of_recorded_vectors_stay(
    tmp_path: Path, files: dict[str, bytes], settings: str, pooling: str, key: str
) -> None:
    folder = folder_of(tmp_path / "encoder", **files)

    embedder = get_embedder(f"st:{folder}{settings}", engine=over(MemoryStore()))

    assert embedder.parameters["pooling"] == pooling
    assert embedder.keys(["a cup"]) == (key,)


async def test_vectors_that_were_recorded_before_are_found_by_the_folder() -> None:
    place = Path(__file__).parent / "recorded"
    records = Cassette(place / "calls.jsonl")

    for settings in ("", "?prompt=other", "?pooling=cls+mean"):
        embedder = get_embedder(f"st:{place}/encoder{settings}", engine=over(records, "replay"))
        vectors = await embedder.embed(["a cup", "the cup of brick on the table", ""])
        assert [len(vector) for vector in vectors] == [12, 12, 12]
        assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1, 1, 1], abs=1e-6)


UNREADABLE: dict[str, tuple[dict[str, bytes], str]] = {
    "no list": ({"modules.json": b"3"}, "'int' object is not iterable"),
    "no JSON": ({"modules.json": b"["}, r"is no JSON \(Expecting value, column 2\)"),
    "a bottomless list": ({"modules.json": b"[" * 100_000}, "is nested deeper than 100 levels"),
    "no kind": ({"modules.json": b'[{"path": ""}]'}, "'type'"),
    "another way": (
        pooled({"pooling_mode": "median"}),
        "it pools by median, and known are cls, max, mean, .*lasttoken",
    ),
}


@pytest.mark.parametrize(("files", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_files_that_cannot_say_how_an_encoder_pools(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"that say how it pools cannot be used: {message}\. Give the folder"):
        SentenceEncoder(str(folder_of(tmp_path / "encoder", **files)))


@pytest.mark.parametrize(
    ("source", "identity"),
    [
        ("sentence-transformers/all-mpnet-base-v2", "st:sentence-transformers/all-mpnet-base-v2@main"),
        ("sentence-transformers/all-mpnet-base-v2@e8c3b32", "st:sentence-transformers/all-mpnet-base-v2@e8c3b32"),
        ("sha256:abc", "st:sha256:abc"),
    ],
    ids=["name", "revision", "digest"],
)
def test_a_name_is_known_with_its_revision(source: str, identity: str) -> None:
    assert str(SentenceEncoder(source).id) == identity


def test_a_folder_without_safetensors_is_none(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"")

    with pytest.raises(ConfigError, match=r"holds no weights in safetensors files\."):
        get_embedder(f"st:{tmp_path}", engine=over(MemoryStore()))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("torch", "needs torch and transformers, and torch is not installed. pip install 'askance[local]'"),
        (
            "sentence_transformers",
            "needs sentence-transformers, and sentence_transformers is not installed. pip install 'askance[local]'",
        ),
    ],
    ids=["torch", "sentence-transformers"],
)
async def test_a_package_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, message: str
) -> None:
    for name in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    monkeypatch.setitem(sys.modules, missing, None)
    embedder = get_embedder(f"st:{folder_of(tmp_path / 'encoder')}?device=cpu", engine=over(MemoryStore()))

    with pytest.raises(MissingExtra) as caught:
        await embedder.embed(["a cup"])
    assert message in str(caught.value)


async def test_a_digest_alone_can_be_replayed_and_not_asked() -> None:
    embedder = get_embedder("st:sha256:abc", engine=over(MemoryStore()))

    with pytest.raises(UsageError, match=r"by the digest of its weights alone\. Name its folder: `st:FOLDER`\."):
        await embedder.embed(["a cup"])


REPLAYED = """\
import asyncio, sys
from askance.models import Engine, get_embedder
from askance.replay import Cassette, Records
async def main():
    engine = Engine(mode="replay", records=Cassette("calls.jsonl"))
    print(await get_embedder("st:org/name", engine=engine).embed(["a cup"]))
asyncio.run(main())
print({"torch", "transformers", "numpy"} & set(sys.modules))
"""


def test_a_replay_needs_neither_weights_nor_what_runs_them(own_place: Path) -> None:
    form = {"model": {"provider": "st", "model": "org/name@main"}, "pooling": "mean", "normalized": True}
    kept = Record.make("embed", {**form, "text": "a cup"}, packed((1.0, 0.0), by="org/name"))
    (own_place / "calls.jsonl").write_text(kept.to_json() + "\n", encoding="utf-8")

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", REPLAYED], capture_output=True, text=True, check=True, env=environment)

    assert done.stdout.splitlines() == ["[(1.0, 0.0)]", "set()"]
