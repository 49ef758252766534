"""`LanceVectors`: the same ids and scores as `ExactVectors`, resumed adds, and tables that cannot be used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from askance.errors import StoreError, UsageError
from askance.models.encoders.vectors import half
from askance.retrieval import ExactVectors, VectorStore
from askance.retrieval.entries import entry_id
from askance.retrieval.lance import LanceVectors

if TYPE_CHECKING:
    from askance.models.encoders.vectors import Half

pyarrow: Any = import_module("pyarrow")  # without types for all of its functions

ABOUT = {"model": {"name": "random"}, "normalized": True}
SIZE = 48


def connect(folder: Path) -> Any:
    """LanceDB's own view of a folder; loading it takes two seconds, which the other tests need not wait for."""
    return import_module("lancedb").connect(folder)


@pytest.fixture(scope="module")
def rows() -> dict[str, Half]:
    """4,000 random vectors by id: some equal, some that differ in one number only, three without length."""
    drawn = np.random.default_rng(7).standard_normal((4_000, SIZE))
    drawn[100:140] = drawn[99]
    drawn[200:230] = drawn[199]
    drawn[200:230, 0] += np.linspace(1e-3, 3e-2, 30)
    drawn[300:303] = 0
    return {entry_id(str(place)): half(vector) for place, vector in enumerate(drawn)}


@pytest.fixture(scope="module")
def queries(rows: dict[str, Half]) -> list[Half]:
    """Random ones, one of the equal vectors, one of those that differ in one number, and one without length."""
    drawn = [half(each) for each in np.random.default_rng(8).standard_normal((5, SIZE))]
    return [*drawn, rows[entry_id("99")], rows[entry_id("210")], half([0.0] * SIZE)]


@pytest.fixture(scope="module")
def folder(rows: dict[str, Half], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")

    async def fill() -> None:
        for store in (LanceVectors(folder, ABOUT), ExactVectors(folder, ABOUT)):
            await in_blocks(store, rows)

    asyncio.run(fill())
    return folder


async def in_blocks(store: VectorStore, rows: dict[str, Half], block: int = 900) -> None:
    ids = list(rows)
    for start in range(0, len(ids), block):
        some = ids[start : start + block]
        await store.add(some, [rows[each] for each in some])


@pytest.mark.parametrize("k", [1, 20, 100, 3_999, 5_000])
async def test_it_gives_what_exact_vectors_give(folder: Path, queries: Sequence[Half], k: int) -> None:
    found = await LanceVectors(folder, ABOUT).search(queries, k)

    assert found == await ExactVectors(folder, ABOUT).search(queries, k)
    assert {len(hits) for hits in found} == {min(k, 4_000)}


async def test_it_chooses_among_some(folder: Path, rows: dict[str, Half], queries: Sequence[Half]) -> None:
    among = [entry_id(str(place)) for place in (*range(95, 110), 301, 3_000)]
    for some in (among, [*among, "0123456789abcdef"], [entry_id("302")], [], ["it's none"]):
        found = await LanceVectors(folder, ABOUT).search(queries, 10, some)
        assert found == await ExactVectors(folder, ABOUT).search(queries, 10, some)
        assert {each for hits in found for each, _ in hits} <= set(some) & set(rows)


async def test_nothing_is_added_twice(tmp_path: Path, rows: dict[str, Half], queries: Sequence[Half]) -> None:
    some = dict(list(rows.items())[:500])
    begun = LanceVectors(tmp_path, ABOUT)
    assert await begun.count() == 0
    assert await begun.lacking(list(some)) == list(some)
    assert await begun.search(queries, 3) == [[] for _ in queries]
    await in_blocks(begun, dict(list(some.items())[:200]))

    resumed = LanceVectors(tmp_path, ABOUT)
    assert await resumed.lacking(list(some)) == list(some)[200:]
    await in_blocks(resumed, some, 150)

    assert await resumed.count() == await begun.count() == 500
    many = [*some, *(entry_id(f"new {place}") for place in range(11_000))]
    assert await resumed.lacking(many) == many[500:]
    assert list(resumed.verify()) == []
    exact = ExactVectors(tmp_path, ABOUT)
    await in_blocks(exact, some)
    assert await begun.search(queries, 40) == await exact.search(queries, 40)


async def test_each_embedder_has_a_table(tmp_path: Path, rows: dict[str, Half]) -> None:
    one, other = LanceVectors(tmp_path, ABOUT), LanceVectors(tmp_path, {"model": {"name": "other"}})
    await one.add(["a"], [half([1.0, 0.0])])
    await other.add(["a"], [half([0.0, 1.0, 0.0])])

    assert await one.search([half([1.0, 0.0])], 1) == [[("a", 1.0)]]
    assert await other.search([half([1.0, 0.0, 0.0])], 1) == [[("a", 0.0)]]


async def test_sizes_are_held_against_each_other(folder: Path) -> None:
    store = LanceVectors(folder, ABOUT)
    with pytest.raises(UsageError, match="Vectors of 3 and of 48 numbers"):
        await store.search([half([1.0, 0.0, 0.0])], 1)
    with pytest.raises(UsageError, match="Vectors of 3 and of 48 numbers"):
        await store.add(["new"], [half([1.0, 0.0, 0.0])])
    with pytest.raises(UsageError, match="The 0 best"):
        await store.search([], 0)


async def test_an_approximate_index_says_what_it_finds(
    tmp_path: Path, rows: dict[str, Half], queries: Sequence[Half]
) -> None:
    store = LanceVectors(tmp_path, ABOUT, approximate=True)
    with pytest.raises(UsageError, match="there are none"):
        await store.build_approximate(queries)
    await in_blocks(store, rows)
    before = await store.search(queries, 20)  # without an index all vectors are compared

    recall = await store.build_approximate(queries[:7], k=20)

    exact = await LanceVectors(tmp_path, ABOUT).search(queries, 20)
    assert before == exact
    found = await store.search(queries, 20)
    shares = [len({*dict(one)} & {*dict(other)}) / 20 for one, other in zip(found, exact, strict=True)]
    assert recall == pytest.approx(sum(shares[:7]) / 7)
    assert 0 < recall <= 1
    scores = dict(hit for hits in exact for hit in hits)
    assert all(scores.get(each, score) == pytest.approx(score) for hits in found[:1] for each, score in hits)


# --- tables that cannot be used ---


def flip(path: Path, needle: bytes) -> None:
    data = bytearray(path.read_bytes())
    place = data.index(needle)
    data[place] ^= 1
    path.write_bytes(data)


def cut(path: Path, needle: bytes) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribble(path: Path, needle: bytes) -> None:
    path.write_bytes(b"no table")


@pytest.mark.parametrize(
    ("file", "damage", "why"),
    [
        ("data/*.lance", flip, "the checksum of the vector of 'a' does not fit"),
        ("data/*.lance", cut, "LanceDB says: lance error"),
        ("_versions/*.manifest", scribble, "its manifest is damaged"),
    ],
    ids=["one bit", "half a file", "no table"],
)
async def test_a_damaged_table_is_named(
    tmp_path: Path, file: str, damage: Callable[[Path, bytes], None], why: str
) -> None:
    vector = half([0.3, 0.4, 0.5])
    store = LanceVectors(tmp_path, ABOUT)
    await store.add(["a"], [vector])
    for path in store.path.glob(file):
        path.chmod(0o644)
        damage(path, vector.astype("<f4").tobytes())

    with pytest.raises(StoreError, match="build the index again") as raised:
        await LanceVectors(tmp_path, ABOUT).search([vector], 1)
    assert why in str(raised.value)
    assert str(store.path) in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert [why in each for each in LanceVectors(tmp_path, ABOUT).verify()] == [True]


FIELDS = [
    pyarrow.field("id", pyarrow.string(), nullable=False),
    pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), 2)),
    pyarrow.field("sum", pyarrow.uint32(), nullable=False),
]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (pyarrow.schema(FIELDS), "it is no table of an index"),
        (pyarrow.schema(FIELDS, metadata={"askance": "{}"}), "its vectors are another encoder's"),
        (pyarrow.schema(FIELDS, metadata={"askance": "{}", "embedding_functions": "[]"}), "it is no table of an index"),
        (pyarrow.schema(FIELDS[:2], metadata={"askance": "{}"}), "it is no table of an index"),
    ],
    ids=["no metadata", "another encoder", "code", "no checksum"],
)
async def test_a_foreign_table_is_named(tmp_path: Path, schema: Any, why: str) -> None:
    store = LanceVectors(tmp_path, ABOUT)
    connect(tmp_path).create_table(store.name, schema=schema)

    with pytest.raises(StoreError, match=why):
        await store.add(["a"], [half([1.0, 0.0])])


async def test_a_table_reads_no_files_of_another_place(tmp_path: Path) -> None:
    elsewhere, store = LanceVectors(tmp_path / "elsewhere", ABOUT), LanceVectors(tmp_path / "here", ABOUT)
    await elsewhere.add(["a"], [half([1.0, 0.0])])
    connect(store.folder).clone_table(store.name, str(elsewhere.path), is_shallow=True)

    with pytest.raises(StoreError, match="it names files outside of its folder"):
        await store.search([half([1.0, 0.0])], 1)


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b"\xff" * 40, b"\x04\0\0\0\x92\x01\x7f\x04" + b"\0" * 16])
async def test_a_manifest_of_anything_is_no_table(content: bytes, tmp_path: Path) -> None:
    store = LanceVectors(tmp_path, ABOUT)
    await store.add(["a"], [half([1.0, 0.0])])
    for manifest in store.path.rglob("*.manifest"):
        manifest.write_bytes(content)

    with pytest.raises(StoreError, match="cannot be used"):
        await LanceVectors(tmp_path, ABOUT).count()


async def test_a_table_of_other_columns_is_named(tmp_path: Path) -> None:
    store = LanceVectors(tmp_path, ABOUT)
    fields = [FIELDS[0], pyarrow.field("vector", pyarrow.list_(pyarrow.float64(), 2)), FIELDS[2]]
    schema = pyarrow.schema(fields, metadata={"askance": store.about})
    connect(tmp_path).create_table(store.name, schema=schema)

    with pytest.raises(StoreError, match="its columns are not those of an index"):
        await store.lacking(["a"])


async def test_an_id_that_stands_twice_is_named(tmp_path: Path) -> None:
    store = LanceVectors(tmp_path, ABOUT)
    await store.add(["a", "b"], [half([1.0, 0.0]), half([0.0, 1.0])])
    table = connect(tmp_path).open_table(store.name)
    table.add(table.to_arrow().slice(0, 1))

    assert list(LanceVectors(tmp_path, ABOUT).verify()) == [
        f"The table of vectors {str(store.path)!r} has two vectors of the id 'a'."
    ]
