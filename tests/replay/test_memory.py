from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import StoreError
from askance.replay import MemoryStore, Record, Records, Store, export_cassette
from tests.replay.samples import record


def test_both_stores_are_holders_of_records() -> None:
    assert isinstance(MemoryStore(), Records)
    assert isinstance(Store.open(), Records)


def test_what_is_put_is_got() -> None:
    store = MemoryStore()
    store.put(record())
    store.put(Record.make("score", {}, {}, at=""))
    assert store.get(record().key) == record()
    assert store.get("0" * 64) is None
    assert list(store.of_kind("chat")) == [record()]
    assert [one.key for one in store] == list(store.keys()) == sorted(store.keys())
    assert len(store) == 2


def test_a_cassette_is_played_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "cassette.jsonl"
    export_cassette([record()], path)
    store = MemoryStore.from_cassette(path)
    assert (list(store), store.writable, store.name) == ([record()], False, str(path))
    with pytest.raises(StoreError) as caught:
        store.put(record("another"))
    assert str(caught.value) == (
        f"The records of {str(path)!r} are open for reading only."
        " Import the cassette into a store, or replay what it holds."
    )


def test_a_cassette_may_be_written_in_memory(tmp_path: Path) -> None:
    export_cassette([record()], tmp_path / "cassette.jsonl")
    store = MemoryStore.from_cassette(tmp_path / "cassette.jsonl", check=False, writable=True)
    store.put(record("another"))
    assert len(store) == 2


def test_a_record_under_a_false_key_is_not_kept() -> None:
    with pytest.raises(StoreError, match=r"^The key '000000000000' is not that of the request beside it"):
        MemoryStore().put(Record(kind="chat", key="0" * 64, request={}, response={}))
