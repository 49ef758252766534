from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from askance.chat import canonical_json
from askance.errors import StoreError
from askance.replay import MemoryStore, Record, Records, Sound, Store, export_cassette
from tests.replay.samples import record

HOLDERS: dict[str, Callable[[], Records]] = {"store": Store.open, "memory": MemoryStore}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_both_stores_are_holders_of_records(holder: Callable[[], Records]) -> None:
    one, two, false = record("one"), record("two"), replace(record("three"), key="0" * 64)
    records = holder()
    with pytest.raises(StoreError):
        records.put_all([one, false])
    assert len(records) == 0
    records.put_all([one, two])

    assert isinstance(records, Records)
    assert [records.answer(key, canonical_json(one.request)) for key in (one.key, false.key)] == [one.response, None]


def test_what_other_processes_see_has_leases_and_a_folder(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store, Store.open(tmp_path, read_only=True) as other:
        leases = store.leases()
        assert leases is not None
        assert (leases.take("ab" * 32), other.leases(), other.folder) == (True, None, tmp_path)
        leases.close()
    for records in (MemoryStore(), Sound(store)):
        assert (records.leases(), records.folder) == (None, None)


def test_of_sound_records_answers_are_read_and_nothing_is_put() -> None:
    records = Sound(MemoryStore([record()]))
    assert records.answer(record().key, canonical_json(record().request)) == record().response
    with pytest.raises(StoreError, match=r"cannot be put where only sound records are read\. Put it into the store"):
        records.put_all([record("another")])


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
