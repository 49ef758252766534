from __future__ import annotations

import errno
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from askance.errors import StoreError, UsageError
from askance.models.encoders.vectors import cosine_of, half
from askance.retrieval import ExactVectors, VectorStore

if TYPE_CHECKING:
    from askance.models.encoders.vectors import Half

ABOUT = {"model": {"name": "made up"}}


def ids(count: int) -> list[str]:
    """Ids in an order that is not theirs."""
    return [sha256(str(number).encode()).hexdigest()[:16] for number in range(count)]


async def stored(folder: Path, vectors: list[Half]) -> ExactVectors:
    store = ExactVectors(folder, ABOUT)
    await store.add(ids(len(vectors)), vectors)
    return store


def reference(vectors: list[Half], query: Half, k: int, among: set[str] | None = None) -> list[tuple[str, float]]:
    """The definition: each vector by itself."""
    scored = [(name, cosine_of(vector, query)) for name, vector in zip(ids(len(vectors)), vectors, strict=True)]
    kept = [each for each in scored if among is None or each[0] in among]
    return sorted(kept, key=lambda each: (-each[1], each[0]))[:k]


def rows(count: int, size: int, *, seed: int = 7) -> list[Half]:
    return [half(row) for row in np.random.default_rng(seed).normal(size=(count, size))]


def close_ones(count: int, size: int) -> list[Half]:
    """Vectors that differ in one number by the least step that there is: 32 bits cannot tell their products apart."""
    base, found = rows(1, size)[0], list[Any]()
    for number in range(count):
        vector = base.copy()
        vector[number % size] = np.nextafter(vector[number % size], np.float16(9 if number % 2 else -9))
        found.append(vector)
    return found


@pytest.mark.parametrize("size", [3, 64, 384])
@pytest.mark.parametrize("kind", ["any", "alike", "equal", "without length"])
async def test_the_nearest_are_those_of_the_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, kind: str
) -> None:
    monkeypatch.setattr("askance.retrieval.vector_store.QUERIES", 3)
    monkeypatch.setattr("askance.retrieval.vector_store.BLOCK", 50)
    zero = np.zeros(size, dtype=np.float16)
    vectors: list[Any] = {
        "any": rows(300, size),
        "alike": close_ones(300, size),
        "equal": [rows(1, size)[0]] * 300,
        "without length": [*rows(10, size), *[zero] * 290],
    }[kind]
    queries = [*rows(4, size, seed=8), vectors[0], zero]
    store = await stored(tmp_path, vectors)
    few, many = set(ids(300)[::30]), set(ids(300)[:200])

    for k in (1, 7, 100, 300, 1000):
        assert await store.search(queries, k) == [reference(vectors, query, k) for query in queries]
    for among in (few, many, {"0" * 16}, set[str]()):
        found = await store.search(queries, 7, {*among, "f" * 16})
        assert found == [reference(vectors, query, 7, among) for query in queries]


async def test_a_store_holds_what_was_added_once(tmp_path: Path) -> None:
    store, vectors = ExactVectors(tmp_path, ABOUT), rows(5, 3)
    names = ids(5)

    assert isinstance(store, VectorStore)
    assert (await store.count(), await store.lacking(names)) == (0, names)
    assert await store.search(vectors[:2], 3) == [[], []]
    await store.add(names[:3], vectors[:3])
    assert await store.lacking(names) == names[3:]
    assert await store.search(vectors[3:4], 9) == [reference(vectors[:3], vectors[3], 9)]
    await store.add(names[2:], [vectors[0], *vectors[3:]])  # what is there stays

    assert await store.count() == 5
    assert await store.search(vectors, 2) == [reference(vectors, vector, 2) for vector in vectors]
    assert await ExactVectors(tmp_path, ABOUT).search(vectors, 2) == await store.search(vectors, 2)
    assert list(store.verify()) == []
    assert await ExactVectors(tmp_path, {"model": {"name": "another"}}).count() == 0


async def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    store = await stored(tmp_path, rows(5, 3))

    with pytest.raises(UsageError, match=r"^Vectors of 4 and of 3 numbers cannot be compared"):
        await store.search(rows(1, 4), 1)
    with pytest.raises(UsageError, match=r"^The 0 best of some candidates are none"):
        await store.search(rows(1, 3), 0)
    with pytest.raises(StoreError, match=r"its rows have 3 numbers, and now they are 4"):
        await store.add(["a" * 16], rows(1, 4))


async def test_a_changed_row_gives_no_result(tmp_path: Path) -> None:
    store = await stored(tmp_path, rows(5, 3))
    data = bytearray(store.file.path.read_bytes())
    data[-1] ^= 1
    store.file.path.write_bytes(data)

    changed = ExactVectors(tmp_path, ABOUT)
    assert [message for message in changed.verify() if "row 4" in message]
    with pytest.raises(StoreError, match=r"the checksum of row 4 does not fit\. Delete it"):
        await changed.search(rows(1, 3), 1)


async def test_a_row_that_holds_no_numbers_gives_no_result(tmp_path: Path) -> None:
    endless = np.array([1, np.inf, 0], dtype=np.float16)
    store = await stored(tmp_path, [*rows(3, 3), endless])

    with pytest.raises(StoreError, match=r"row 3 holds something that is no number\. Delete it"):
        await store.search(rows(1, 3), 1)


async def test_a_full_disk_is_an_error_and_not_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match=r"cannot be written to '.*': No space left on device\. Make room"):
        await stored(tmp_path, rows(2, 3))


async def test_pairs_are_those_of_the_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors: list[Any] = [*rows(60, 4), *close_ones(20, 4), np.zeros(4, dtype=np.float16)]
    store = await stored(tmp_path, vectors)
    names = ids(len(vectors))
    cosines = {
        frozenset((names[i], names[j])): cosine_of(vectors[i], vectors[j])
        for i in range(len(vectors))
        for j in range(i)
    }

    for block in (1, 7, 50, 500):
        monkeypatch.setattr("askance.retrieval.vector_store.BLOCK", block)
        for least in (0.5, 0.95, sorted(cosines.values())[-30]):
            found = list(store.pairs_above(least))
            assert len(found) == len({frozenset(pair) for pair in found})
            assert {frozenset(pair) for pair in found} == {pair for pair, cosine in cosines.items() if cosine > least}
