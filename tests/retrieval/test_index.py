from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

from askance.errors import AskanceError, ModelError, StoreError, UsageError
from askance.models import Engine, ScriptedEmbedder
from askance.models.encoders.vectors import cosine_of, half
from askance.replay import MemoryStore, Mode
from askance.retrieval import Bm25, Bm25Settings, Index, IndexEntry, VectorStore, merge_entries, retriever
from askance.retrieval.entries import digest_of

if TYPE_CHECKING:
    from askance.models.encoders.vectors import Half

ROOT = Path(__file__).resolve().parents[2]
SIZE = 8


def vector(text: str, *, seed: str = "") -> list[float]:
    draw = random.Random(seed + text)
    return [draw.gauss(0, 1) for _ in range(SIZE)]


def embedder(name: str = "one") -> ScriptedEmbedder:
    return ScriptedEmbedder(partial(vector, seed=name), identity=name)


def engine(mode: Mode = "auto") -> Engine:
    return Engine(records=MemoryStore(), mode=mode)


def rows(count: int = 20, word: str = "buy") -> list[IndexEntry]:
    return [
        IndexEntry.of(f"I should {word} number {number} because it is good", (f"{number}.jpg",), "train")
        for number in range(count)
    ]


async def build(folder: Path, entries: Sequence[IndexEntry] | None = None, **options: Any) -> Index:
    options = {"embedder": embedder(), "engine": engine(), **options}
    return await Index.build(folder, rows() if entries is None else entries, **options)


def asked_of(script: ScriptedEmbedder) -> list[str]:
    return [text for call in script.asked for text in call]


async def nearest(index: Index, text: str, name: str = "one", k: int = 5) -> list[tuple[str, float]]:
    store = index.vectors(index.space(embedder(name)))
    ((*found,),) = await store.search([half(vector(text, seed=name))], k)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder."""
    made = tmp_path / "index"
    made.mkdir()
    return made


async def test_an_index_finds_its_texts_by_vector_and_by_word(folder: Path) -> None:
    entries = rows()
    index = await build(folder / "i", entries)
    text = entries[7].text

    for found in (index, Index.open(folder / "i"), Index.open(str(folder / "i" / "index.json")), Index.open(index)):
        assert (found.count, found.digest) == (20, digest_of(entry.id for entry in merge_entries(entries)))
        assert found.entries == merge_entries(entries)
        assert (await nearest(found, text))[0][0] == found.bm25.search(text, 5)[0][0] == entries[7].id
        assert found.by_id[entries[7].id].images == ("7.jpg",)
        assert list(found.verify()) == []
        assert [space.form() for space in found.spaces] == [
            {"embedder": {"model": {"name": "one"}}, "size": SIZE, "store": "file"}
        ]


async def test_the_order_of_entries_decides_nothing(folder: Path) -> None:
    entries = rows()
    await build(folder / "one", entries)
    await build(folder / "two", [*reversed(entries), *entries[3:5]])

    assert (folder / "one" / "index.json").read_bytes() == (folder / "two" / "index.json").read_bytes()


async def test_a_second_embedder_adds_its_vectors_to_the_same_texts(folder: Path) -> None:
    script = embedder("two")
    first = await build(folder)
    both = await build(folder, embedder=script)
    again = embedder("one")
    await build(folder, embedder=again)

    assert first.form()["spaces"] == [both.form()["spaces"][0]]
    assert [space.embedder["model"]["name"] for space in both.spaces] == ["one", "two"]
    assert sorted(asked_of(script)) == sorted(entry.text for entry in rows())
    assert not again.asked
    assert await nearest(both, rows()[3].text, "two") != await nearest(both, rows()[3].text, "one")
    assert both.space(embedder("two")) == both.spaces[1]
    with pytest.raises(UsageError, match=r"has vectors of 2 embedders, and none is named\. It has: .*one.*; .*two"):
        both.space()
    with pytest.raises(
        UsageError, match=r"has no vectors of the embedder .*'three'\. It has: 'one'; 'two'\. A build .* adds its"
    ):
        both.space(embedder("three"))


async def test_without_an_embedder_texts_are_found_by_their_words(folder: Path) -> None:
    index = await build(folder, embedder=None)

    assert index.bm25.search("number 7", 1)[0][0] == rows()[7].id
    assert index.bm25_settings == index.bm25.settings.form()
    with pytest.raises(UsageError, match=r"has no vectors, and none is named\. Build it with an embedder"):
        index.space()


async def test_a_blank_text_has_no_vector_and_is_an_entry(folder: Path) -> None:
    script = embedder()
    index = await build(folder, [*rows(2), IndexEntry.of(" ", ("1.jpg",)), IndexEntry.of("")], embedder=script)

    assert index.count == 4
    assert sorted(asked_of(script)) == sorted(entry.text for entry in rows(2))
    assert len(await nearest(index, "x", k=9)) == 2
    assert list(index.verify()) == []


async def test_blank_texts_alone_are_found_neither_by_vector_nor_by_word(folder: Path) -> None:
    blank = [IndexEntry.of(" "), IndexEntry.of("")]
    for make in (build, Index.plan):
        with pytest.raises(UsageError, match=r"^The texts of the index '.*' are all blank, .*Build it without"):
            await make(folder, blank, embedder=embedder(), engine=engine())

    index = await build(folder, blank, embedder=None)

    assert index.bm25.search("a text", 1) == []


async def test_what_is_counted_of_the_entries(folder: Path) -> None:
    entries = [
        *rows(3),
        IndexEntry.of(rows(1)[0].text, ("8.jpg", "9.jpg"), "test"),
        IndexEntry.of("n/a", ("1.jpg",), "train"),
        IndexEntry.of("You should fly"),
    ]
    stats = (await build(folder, entries)).stats()

    assert (stats.entries, stats.merged, stats.without_image, stats.junk, stats.no_because) == (5, 2, 1, 1, 2)
    assert stats.splits == {"": 1, "test+train": 1, "train": 3}


async def test_near_twins_are_of_different_images(folder: Path) -> None:
    directions = {"a": (1.0, 0.0), "b": (1.0, 0.01), "c": (1.0, 0.02), "d": (0.0, 1.0), "e": (1.0, 0.03)}
    script = ScriptedEmbedder(lambda text: directions[text[0]], identity="flat")
    images = {"a": ("1.jpg",), "b": ("1.jpg", "2.jpg"), "c": ("3.jpg",), "d": ("4.jpg",), "e": ()}
    entries = [IndexEntry.of(f"{name} text", images[name]) for name in images]
    index = await build(folder, entries, embedder=script)

    twins = await index.near_twins(index.space())

    assert (twins.pairs, twins.entries) == (2, 3)  # a–c and b–c: a and b share an image, and e is true of none
    assert (await index.near_twins(index.space(), above=0.99999)).pairs == 0


# --- what was begun is gone on with ---

CHILD = """
import asyncio, sys, time
from pathlib import Path
from askance.models import Engine
from askance.replay import MemoryStore
from askance.retrieval import Index
from askance.retrieval import index as module
from tests.retrieval.test_index import embedder, rows

folder, go, block, stop = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
module.BLOCK = block
script = embedder()

class Slow:
    id = script.id
    async def embed(self, texts):
        vectors = await script.embed(texts)
        with (go / "asked").open("a") as log:
            log.writelines(text + "\\n" for text in texts)
        if len(script.asked) == stop:
            (go / "up").touch()
            while not (go / "go").exists():
                await asyncio.sleep(0.01)
        return vectors

asyncio.run(Index.build(folder, rows(), embedder=Slow(), engine=Engine(records=MemoryStore())))
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Any]:
    """Starts a build in a process of its own, which stops in the middle of its third block of four texts."""
    started: list[subprocess.Popen[bytes]] = []

    def start(folder: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", CHILD, str(folder), str(tmp_path), "4", "3"]
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def until(path: Path) -> None:
    """Waits for a file."""
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not come"
        time.sleep(0.01)


@pytest.mark.parametrize("torn", [0, 7])
async def test_a_killed_build_goes_on_where_it_was(tmp_path: Path, child: Any, torn: int) -> None:
    folder = tmp_path / "index"
    process = child(folder)
    until(tmp_path / "up")
    process.kill()
    assert process.wait() == -signal.SIGKILL
    asked = (tmp_path / "asked").read_text().splitlines()
    (kept,) = (folder / "vectors").glob("*.rows")
    with kept.open("ab") as file:
        file.write(b"x" * torn)  # a part of a row that was being written

    with pytest.raises(UsageError, match=r"^The index '.*' was not finished\. Run the same build again"):
        Index.open(folder)
    assert await Index.plan(folder, rows(), embedder=embedder(), engine=engine()) == 12
    script, told = embedder(), list[tuple[int, int]]()

    def tell(done: int, count: int) -> None:
        told.append((done, count))

    index = await build(folder, embedder=script, progress=tell)

    assert len(asked) == 12
    assert set(asked_of(script)) & set(asked) == set(asked[8:])  # what was in flight, and nothing else
    assert len(asked_of(script)) == len(set(asked_of(script))) == 12
    assert told == [(8, 20), (20, 20)]  # what is there is said first
    assert list(index.verify()) == []
    await build(tmp_path / "whole")
    assert (folder / "index.json").read_bytes() == (tmp_path / "whole" / "index.json").read_bytes()


async def test_two_builds_at_once_take_turns(tmp_path: Path, child: Any) -> None:
    folder, script = tmp_path / "index", embedder()
    process = child(folder)
    until(tmp_path / "up")
    second = asyncio.create_task(build(folder, embedder=script))
    await asyncio.sleep(0.5)
    assert not second.done()
    assert not script.asked
    (tmp_path / "go").touch()

    assert await asyncio.to_thread(process.wait) == 0
    index = await asyncio.wait_for(second, 60)

    assert not script.asked  # all of it was there
    assert list(index.verify()) == []


async def test_a_build_that_failed_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.retrieval.index.BLOCK", 4)
    script = embedder()

    class Broken:
        id = script.id

        async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            if len(script.asked) == 2:
                raise ModelError("The machine is gone.")
            return await script.embed(texts)

    with pytest.raises(ModelError, match="is gone"):
        await build(folder, embedder=Broken())
    assert await Index.plan(folder, rows(), embedder=script, engine=engine()) == 12
    await build(folder, embedder=script)

    assert len(asked_of(script)) == 20


async def test_what_is_no_number_is_in_no_index(folder: Path) -> None:
    script = ScriptedEmbedder(lambda text: [float("nan" if "number 7" in text else 1)] * SIZE, identity="one")

    with pytest.raises(ModelError, match=r"^An encoder gave a vector that holds something that is no number"):
        await build(folder, embedder=script)
    index = await build(folder)  # none of it was kept

    assert list(index.verify()) == []
    assert len(await nearest(index, "x", k=99)) == 20


async def test_a_missing_file_is_made_again(folder: Path) -> None:
    index = await build(folder)
    before = (folder / "index.json").read_bytes()
    others = {"index.json", "lock", "params.index.json"}  # bm25s writes the last, and nobody reads it
    files = [path for path in files_in(folder) if path.name not in others]
    assert len(files) == 7

    for path in files:
        path.unlink()
        assert path.name in " ".join(index.verify())
        await build(folder)
        assert (folder / "index.json").read_bytes() == before
        assert list(index.verify()) == []


@pytest.mark.parametrize("there", ["nothing", "a file"])
async def test_a_plan_writes_nothing(tmp_path: Path, there: str) -> None:
    folder = tmp_path / "index"
    if there == "a file":
        folder.mkdir()
        (folder / "lock").touch()

    assert await Index.plan(folder, [*rows(), IndexEntry.of("")], embedder=embedder(), engine=engine()) == 20
    assert folder.exists() == (there == "a file")
    await build(folder)
    assert await Index.plan(folder, rows(), embedder=embedder(), engine=engine()) == 0
    assert await Index.plan(folder, rows(), embedder=embedder("two"), engine=engine()) == 20


# --- without the folder ---


async def test_a_form_says_all_that_decides_results(folder: Path) -> None:
    index = await build(folder / "whole")
    form = json.loads(json.dumps(index.form()))
    (folder / "alone").mkdir()
    shutil.copy(folder / "whole" / "index.json", folder / "alone")

    described, alone = Index.open(form), Index.open(folder / "alone")

    for each in (described, alone):
        assert (each.form(), each.digest, each.count, each.spaces) == (form, index.digest, 20, index.spaces)
        assert each.space(embedder()) == index.space()
        assert each.bm25_settings == index.bm25_settings
    form_only = r"^The index .* is known by its form alone, and a record is lacking\. Give the folder"
    lacking = r"lacks its file '{}.*'\. Run the same build again"
    asks: dict[str, Callable[[Index], object]] = {
        "statements": lambda each: each.entries,
        "vectors": lambda each: each.vectors(each.space()),
        "bm25": lambda each: each.bm25,
    }
    for part, ask in asks.items():
        with pytest.raises(UsageError, match=form_only):
            ask(described)
        with pytest.raises(StoreError, match=lacking.format(part)):
            ask(alone)
    assert described.files == {}
    with pytest.raises(UsageError, match=form_only):
        list(described.verify())
    assert len(list(alone.verify())) > 3


async def test_a_replay_embeds_nothing(folder: Path) -> None:
    script = embedder()
    with pytest.raises(UsageError, match=r"^20 texts of the index '.*' have no vectors, and a replay makes none"):
        await build(folder, embedder=script, engine=engine("replay"))
    assert not script.asked

    await build(folder)
    assert (await build(folder, embedder=script, engine=engine("replay"))).count == 20
    assert not script.asked


# --- other stores ---


async def test_vectors_may_be_in_tables_of_lancedb(tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    folder, script = tmp_path / "lance", embedder()
    exact, text = await build(tmp_path / "exact"), rows()[3].text
    await build(folder, store="lance")
    index = await build(folder, store="lance", embedder=embedder("two"))
    await build(folder, store="lance", embedder=script)

    assert not script.asked
    assert index.form()["spaces"][0] == {**exact.form()["spaces"][0], "store": "lance"}
    assert await nearest(Index.open(folder), text) == await nearest(exact, text)
    assert await nearest(index, text, "two") != await nearest(index, text)
    assert list(Index.open(folder).verify()) == []
    table = next((folder / "lance").iterdir())
    (table / "link").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="is a symbolic link"):
        Index.open(folder)
    shutil.rmtree(table)
    (message,) = Index.open(folder).verify()
    assert message.endswith("lack 20 of 20 texts.")


class Table:
    """A store in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, Half] = {}

    async def add(self, ids: Sequence[str], vectors: Sequence[Half]) -> None:
        self.rows = {**dict(zip(ids, vectors, strict=True)), **self.rows}

    async def search(
        self, vectors: Sequence[Half], k: int, among: Collection[str] | None = None
    ) -> list[list[tuple[str, float]]]:
        kept = [(name, row) for name, row in self.rows.items() if among is None or name in among]
        scored = [[(name, cosine_of(row, query)) for name, row in kept] for query in vectors]
        return [sorted(each, key=lambda hit: (-hit[1], hit[0]))[:k] for each in scored]

    async def count(self) -> int:
        return len(self.rows)

    async def lacking(self, ids: Sequence[str]) -> list[str]:
        return [name for name in ids if name not in self.rows]


async def test_vectors_may_be_in_a_store_of_ones_own(folder: Path) -> None:
    table, script = Table(), embedder()
    assert isinstance(table, VectorStore)
    index = await build(folder, store=table, embedder=script)
    exact = await build(folder / "exact")

    assert index.spaces[0].form() == {**exact.spaces[0].form(), "store": "own"}
    assert await nearest(index, rows()[3].text) == await nearest(exact, rows()[3].text)
    again = Index.open(folder)
    with pytest.raises(UsageError, match=r"does not name\. Give it as it was given to the build: `Index.open\(folder"):
        again.vectors(again.space())
    assert [message for message in again.verify() if "does not name" in message]
    given = Index.open(again, store=table)
    assert await nearest(given, rows()[3].text) == await nearest(index, rows()[3].text)
    assert list(given.verify()) == []
    table.rows.popitem()
    assert list(given.verify()) == ["The vectors of " + str(given.space()) + " lack 1 of 20 texts."]
    with pytest.raises(UsageError, match=r"^Near-twins are counted in files of vectors, and those of .* are elsewhere"):
        await given.near_twins(given.space())


async def test_an_embedder_has_one_store_and_an_own_store_one_embedder(folder: Path) -> None:
    table = Table()
    await build(folder, store=table)

    with pytest.raises(
        UsageError, match=r"has the vectors of .* in the store 'own'\. Take that store, or another folder"
    ):
        await build(folder)
    with pytest.raises(UsageError, match=r"and one index takes one such store\. Take `store=\"file\"`"):
        await build(folder, store=Table(), embedder=embedder("two"))
    both = await build(folder, embedder=embedder("two"))
    assert [space.store for space in both.spaces] == ["own", "file"]


async def test_an_unfinished_build_in_an_own_store_learns_the_size_again(folder: Path) -> None:
    table, script = Table(), embedder()
    await build(folder, store=table)
    (folder / "index.json").unlink()

    index = await build(folder, store=table, embedder=script)

    assert index.spaces[0].size == SIZE
    assert len(asked_of(script)) == 1


# --- what is refused ---


async def test_a_folder_keeps_its_entries(folder: Path) -> None:
    entries = rows()
    await build(folder, entries)
    other_images = [*entries[1:], IndexEntry.of(entries[0].text, ("other.jpg",))]

    for others in (rows(word="drink"), entries[1:], other_images):
        with pytest.raises(UsageError, match=r"^The folder '.*' has an index of other entries\. Name another folder"):
            await build(folder, others)
        with pytest.raises(UsageError, match="other entries"):
            await Index.plan(folder, others, embedder=embedder(), engine=engine())
        (folder / "index.json").rename(folder / "aside")
        with pytest.raises(UsageError, match="other entries"):  # not finished, and of others still
            await build(folder, others)
        (folder / "aside").rename(folder / "index.json")
    assert list(Index.open(folder).verify()) == []


async def test_what_no_index_is_made_of(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"^There are no entries for an index"):
        await build(folder / "none", [])
    with pytest.raises(UsageError, match=r"^There are no entries for an index"):
        await Index.plan(folder / "none", [], embedder=embedder(), engine=engine())
    with pytest.raises(
        UsageError, match=r"^Nothing tells the vectors of 'custom:ScriptedEmbedder' from another embedder's"
    ):
        await build(folder / "none", embedder=ScriptedEmbedder(vector))
    (folder / "thesis.docx").touch()
    with pytest.raises(UsageError, match=r"^The folder '.*' holds 'thesis.docx', and no index\. Name a new folder"):
        await build(folder)
    assert {path.name for path in files_in(folder)} == {"lock", "thesis.docx"}
    for path in (folder, folder / "nowhere", folder / "thesis.docx"):
        with pytest.raises(UsageError, match=r"holds no index\. Make one: `askance index build"):
            Index.open(path)
    with pytest.raises(StoreError, match=r"^The index '.*' cannot be written: .*Name another folder"):
        await build(folder / "thesis.docx")


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def change(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert data.count(old) >= 1
    path.write_bytes(data.replace(old, new, 1))


async def test_changed_entries_are_no_entries(folder: Path) -> None:
    await build(folder)
    path = folder / "statements.jsonl"
    sound = path.read_bytes()
    cases = {
        (b"buy number 7", b"bug number 7"): "has a text that is not that of the id",
        (b'"7.jpg"', b'"8.jpg"'): "was changed since the index was built. Put the file back, or delete it",
        (b'"7.jpg"', b'"17.jpg"'): "was changed since the index was built",
    }
    for (old, new), message in cases.items():
        change(path, old, new)
        index = Index.open(folder)
        with pytest.raises(StoreError) as error:
            _ = index.entries
        assert message in str(error.value)
        assert message in " ".join(index.verify())
        with pytest.raises(UsageError, match="other entries"):
            await build(folder)
        path.write_bytes(sound)
    path.write_bytes(sound[: sound.index(b"\n") + 1])
    with pytest.raises(StoreError, match="was changed since"):
        _ = Index.open(folder).entries


async def failures(folder: Path) -> list[str]:
    """What a search in each of the two spaces ends with, where it fails."""
    found: list[str] = []
    for name in ("one", "two"):
        try:
            await nearest(Index.open(folder), "x", name)
        except StoreError as error:
            found.append(str(error))
    return found


async def test_changed_vectors_are_no_vectors(folder: Path) -> None:
    await build(folder)
    await build(folder, embedder=embedder("two"))
    index = Index.open(folder)
    one, two = sorted((folder / "vectors").glob("*.rows"))
    sound = one.read_bytes()
    assert await failures(folder) == []
    cases = {
        two.read_bytes(): "cannot be used: it is another encoder's. Delete it",
        sound[:-1] + bytes([sound[-1] ^ 1]): "the checksum of row 19 does not fit. Delete it",
        sound + b"x": "was changed since the index was built. Put the file back, or delete it",
    }

    for data, message in cases.items():
        one.write_bytes(data)
        (failure,) = await failures(folder)  # the other space is sound
        assert message in failure
        assert "was changed since the index was built" in " ".join(index.verify())
        digests = Index.open(folder).files
        await build(folder, embedder=embedder("three"))  # says nothing of the others
        assert {name: said for name, said in Index.open(folder).files.items() if name in digests} == digests
    one.unlink()
    assert (await build(folder, embedder=embedder("three"))).count == 20
    (failure,) = await failures(folder)
    assert f"lacks its file 'vectors/{one.name}'. Run the same build again" in failure


async def test_vectors_of_other_texts_are_refused(folder: Path, tmp_path: Path) -> None:
    others = [*rows(19), IndexEntry.of("another text")]
    await build(folder)
    await build(tmp_path / "others", others)
    (path,) = (folder / "vectors").glob("*.rows")
    (other,) = (tmp_path / "others" / "vectors").glob("*.rows")
    path.write_bytes(other.read_bytes())  # as long as before, and sound in itself

    said = " ".join(Index.open(folder).verify())
    assert "was changed since the index was built" in said
    assert "lack 1 of 20 texts. The vectors of" in said
    assert "hold 1 of other texts" in said
    with pytest.raises(StoreError, match="was changed since the index was built"):
        await build(folder)
    (folder / "index.json").unlink()
    with pytest.raises(UsageError, match=r"has 1 of other texts\. Give it a store of its own, or empty this one"):
        await build(folder)
    path.unlink()
    assert list((await build(folder)).verify()) == []
    table = Table()
    await build(tmp_path / "own", others, store=table)
    with pytest.raises(UsageError, match=r"has 1 of other texts"):
        await build(tmp_path / "own too", store=table)


def _rewrite_vectors(folder: Path, change: Callable[[bytes], bytes]) -> None:
    """Changes the file of vectors, and writes its size and digest into `index.json`: a stranger writes both."""
    (file,) = (folder / "vectors").glob("*.rows")
    file.write_bytes(change(file.read_bytes()))
    form = json.loads((folder / "index.json").read_bytes())
    form["files"][f"vectors/{file.name}"] = {
        "bytes": file.stat().st_size,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    (folder / "index.json").write_text(json.dumps(form))


async def test_vectors_of_half_of_the_texts_are_not_searched(folder: Path) -> None:
    await build(folder)
    _rewrite_vectors(folder, lambda content: content[: -10 * (36 + 2 * SIZE)])
    index = Index.open(folder)

    with pytest.raises(StoreError, match="lack 10 of 20 texts"):
        await index.near_twins(index.space())
    with pytest.raises(StoreError) as caught:
        await retriever(folder, how="dense", embedder=embedder(), engine=engine()).search("buy")
    assert str(caught.value) == (
        f'The vectors of {{"model": {{"name": "one"}}}} in the index {str(folder)!r} lack 10 of 20 texts. '
        "Run the same build again, which makes what is missing."
    )


async def test_vectors_under_other_ids_are_not_counted_as_those_of_the_texts(folder: Path) -> None:
    def renamed(content: bytes) -> bytes:
        step = 36 + 2 * SIZE
        kept, last = content[:-step], content[-step:]
        key = last[:20] + b"\1" * 12  # the same beginning, by which entries are named
        return kept + key + struct.pack("<I", crc32(last[36:], crc32(key))) + last[36:]

    await build(folder)
    _rewrite_vectors(folder, renamed)

    with pytest.raises(StoreError, match=r"lack 1 of 20 texts\. Build the index again, in another folder\."):
        await retriever(folder, how="dense", embedder=embedder(), engine=engine()).search("buy")


async def test_a_table_of_vectors_that_is_gone_is_missed(folder: Path) -> None:
    pytest.importorskip("lancedb")
    await build(folder, store="lance")
    shutil.rmtree(next((folder / "lance").iterdir()))

    with pytest.raises(StoreError, match=r"lack 20 of 20 texts\. Run the same build again"):
        await retriever(folder, how="dense", embedder=embedder(), engine=engine()).search("buy")


async def test_an_own_store_that_lost_its_vectors_is_missed(folder: Path) -> None:
    table = Table()
    await build(folder, store=table)
    table.rows.clear()
    index = Index.open(folder, store=table)

    found = retriever(index, how="dense", embedder=embedder(), engine=engine())

    for among in (None, [index.entries[3].id]):
        with pytest.raises(StoreError, match=r"The store with the vectors of .* found nothing at all among 20 texts\."):
            await found.search("buy", among=among)


async def test_changed_words_are_no_words(folder: Path) -> None:
    index = await build(folder)
    for path in sorted((folder / "bm25").iterdir()):
        sound = path.read_bytes()
        path.write_bytes(sound[:-2] + bytes([sound[-2] ^ 1]) + sound[-1:])
        if path.name != "params.index.json":  # bm25s writes it, and nobody reads it
            assert [message for message in index.verify() if path.name in message]
            with pytest.raises(StoreError, match=path.name):
                _ = Index.open(folder).bm25
        path.write_bytes(sound)
    assert list(index.verify()) == []
    texts = [entry.text for entry in index.entries]
    Bm25.build([entry.id for entry in index.entries], texts, Bm25Settings(k1=9)).save(folder / "bm25")
    assert [message for message in index.verify() if "bm25.json" in message]
    assert (await build(folder, embedder=embedder("two"))).bm25_settings == index.bm25_settings
    assert list(index.verify()) == []


async def test_settings_that_the_words_were_not_made_with_name_no_records(folder: Path) -> None:
    index = await build(folder)
    path = folder / "index.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    said["bm25"]["k1"] = 0.5
    path.write_text(json.dumps(said), encoding="utf-8")

    with pytest.raises(StoreError, match=r"index\.json' was changed since"):
        _ = Index.open(folder).bm25
    assert [message for message in Index.open(folder).verify() if "index.json" in message]
    assert (await build(folder)).bm25_settings == index.bm25_settings


# --- a folder of strangers ---


DESCRIPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"format": 2}, r"has the format 2, which a newer version of askance wrote; this one knows 1\. Upgrade"),
    ({"format": "1"}, r"describes no index: format: .*Build the index again"),
    ({"digest": "abc"}, r"describes no index: digest"),
    ({"count": -1}, r"describes no index: count"),
    ({"spaces": [{"embedder": {"model": {"name": "m"}}, "size": 0, "store": "file"}]}, r"spaces\[0\]\.size"),
    ({"spaces": [{"embedder": {"model": {"name": "m"}}, "size": 1, "store": "own.py@S"}]}, r"spaces\[0\]\.store"),
    ({"spaces": [{"embedder": {"model": 3}, "size": 1, "store": "file"}]}, r"spaces\[0\]\.embedder\.model"),
    ({"spaces": [{"embedder": {"model": {}}, "size": 1, "store": "file"}]}, r"spaces\[0\]\.embedder\.model"),
    ({"spaces": [{"embedder": {"model": {"name": []}}, "size": 1, "store": "file"}]}, r"\.embedder\.model"),
    ({"spaces": [{"embedder": {"model": {"provider": "clip", "model": {}}}, "size": 1, "store": "file"}]}, r"\.model"),
    ({"code": "x"}, r"describes no index: .*code"),
    ({"files": {}}, r"it names no 'statements\.jsonl'"),
    ({"files": None}, r"describes no index: files"),
    ({"bm25": None}, r"describes no index: bm25"),
]


@pytest.mark.parametrize(("changes", "message"), DESCRIPTIONS)
async def test_a_description_that_is_none(folder: Path, changes: dict[str, Any], message: str) -> None:
    await build(folder)
    form = json.loads((folder / "index.json").read_bytes())
    (folder / "index.json").write_text(json.dumps({**form, **changes}))

    with pytest.raises(StoreError, match=message):
        Index.open(folder)
    if "files" not in changes:
        with pytest.raises(StoreError, match=message):
            Index.open({name: value for name, value in {**form, **changes}.items() if name != "files"})


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "vectors/../../x", "a\\b", "a//b", "", "lance/a/b/../c"])
async def test_a_description_names_files_of_its_folder_alone(folder: Path, name: str) -> None:
    await build(folder)
    form = json.loads((folder / "index.json").read_bytes())
    form["files"][name] = {"bytes": 1, "sha256": "0" * 64}
    (folder / "index.json").write_text(json.dumps(form))

    with pytest.raises(StoreError, match=r"names a file outside of its folder: "):
        Index.open(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 200_000, "nested deeper"),
        (b'{"format": 1, "format": 1}', "gives a name twice"),
        (b'{"count": 1' + b"0" * 400 + b"}", "a number of 401 digits"),
        (b'{"count": NaN}', "holds NaN"),
        (b"\xff\xfe", "is no text in UTF-8"),
        (b"[]", "is not of type 'object'"),
        (b"", "is no JSON"),
    ],
)
def test_a_description_that_is_made_to_harm(folder: Path, content: bytes, message: str) -> None:
    (folder / "index.json").write_bytes(content)

    with pytest.raises(StoreError, match=message):
        Index.open(folder)


def test_a_description_beyond_the_limit_is_not_read(folder: Path) -> None:
    with (folder / "index.json").open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(StoreError, match="is larger than 50,000,000 bytes"):
        Index.open(folder)


@pytest.mark.parametrize("name", ["index.json", "statements.jsonl", "bm25/vocab.index.json", "lock"])
async def test_nothing_waits_for_a_pipe(folder: Path, name: str) -> None:
    await build(folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)

    with pytest.raises(UsageError, match=r"is no regular file\. Put the file itself there, or remove it"):
        Index.open(folder)
    with pytest.raises(UsageError, match=r"is no regular file"):
        await build(folder)


@pytest.mark.parametrize("name", ["index.json", "statements.jsonl", "vectors", "bm25", "lock", "bm25/bm25.json"])
async def test_links_lead_nowhere(tmp_path: Path, name: str) -> None:
    folder, aside = tmp_path / "index", tmp_path / "aside"
    await build(folder)
    (folder / name).rename(aside)
    (folder / name).symlink_to(aside)

    with pytest.raises(UsageError, match=rf"{name}' is a symbolic link\. Put the file itself there"):
        Index.open(folder)
    with pytest.raises(UsageError, match=r"is a symbolic link"):
        await build(folder)


async def test_nothing_is_written_through_a_link(folder: Path) -> None:
    aside = folder.parent / "aside"
    aside.write_text("mine")
    for name in ("index.json.part", "statements.jsonl.part"):
        (folder / name).symlink_to(aside)
        with pytest.raises(UsageError, match=r"is a symbolic link"):
            await build(folder)
        (folder / name).unlink()

    assert aside.read_text() == "mine"


async def test_a_header_of_vectors_that_is_made_to_harm(folder: Path) -> None:
    await build(folder)
    (path,) = (folder / "vectors").glob("*.rows")
    size = path.stat().st_size
    for header in (b"[" * 300, b'{"encoder": {}, "size": 1' + b"0" * 17 + b"}", b'{"encoder": {}, "size": NaN}'):
        path.write_bytes((b"askance vectors 1 " + header + b"\n").ljust(size, b"\0"))
        with pytest.raises(AskanceError, match=r"cannot be used: it (does not begin as one|is another encoder's)"):
            await nearest(Index.open(folder), "x")


# --- what it costs ---


def test_memory_and_time_stay_near_those_of_plain_numpy() -> None:
    """A smaller run of the benchmark, whose figures for 200,000 entries stand in `docs/performance.md`."""
    command = [sys.executable, str(ROOT / "benchmarks" / "retrieval.py"), "--entries", "4000", "--rounds", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, cwd=ROOT)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[4:]]
    found = {name: (float(seconds), float(megabytes)) for name, seconds, _, megabytes, _ in rows}

    assert {"build, index", "search, index", "search, words", "first search, index"} < found.keys()
    for name in ("build", "search"):
        assert found[f"{name}, index"][1] < found[f"{name}, numpy"][1] + 150, done.stdout
    assert found["search, index"][0] < 0.1


def test_what_is_no_path_names_no_index() -> None:
    nothing: Any = None
    with pytest.raises(UsageError, match="'None' names no index"):
        Index.open(nothing)
