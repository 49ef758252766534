from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatResponse, Usage
from askance.errors import StoreError, UsageError
from askance.replay import (
    ImportCounts,
    MemoryStore,
    PruneCounts,
    Record,
    RecordDifference,
    RecordProblem,
    Savings,
    Stats,
    ValidRecords,
    copy,
    diff,
    export_cassette,
    find_address,
    import_cassette,
    merge,
    open_records,
    prune,
    savings,
    select,
    stats,
    verify,
)
from askance.replay.store import Store
from tests.replay.samples import AT, record, request

OLD = record("old", model="llava-1.5", at="2025-12-31T23:59:59Z")
NEW = record("new", at="2026-01-01T00:00:00Z")
UNDATED = Record.make("score", {"model": "clip"}, {"value": 1}, at="")
ALL = [OLD, NEW, UNDATED]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ALL),
        ({"kind": "score"}, [UNDATED]),
        ({"model": "LLaVA"}, [OLD]),
        ({"model": "openai:*"}, [OLD, NEW]),
        ({"model": "gpt-4?"}, []),
        ({"model": "*gpt-4?"}, [NEW]),
        ({"model": "[ln]"}, []),
        ({"since": "2026-01-01"}, [NEW]),
        ({"since": "2026-01-01T02:00:00+02:00"}, [NEW]),
        ({"since": "2025-12-31T23:59:59"}, [OLD, NEW]),
        ({"keys": {OLD.key, "0" * 64}}, [OLD]),
        ({"keys": {OLD.key}, "kind": "score"}, []),
    ],
    ids=["all", "kind", "part", "glob", "whole", "mark", "bracket", "day", "zone", "second", "keys", "both"],
)
def test_filters_pick_records(filters: dict[str, Any], expected: list[Record]) -> None:
    assert list(select(ALL, **filters)) == expected
    assert sorted(one.key for one in select(MemoryStore(ALL), **filters)) == sorted(one.key for one in expected)


def test_a_date_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        select(ALL, since="last week")
    assert str(caught.value) == "'last week' is no date. Write it as 2026-01-31 or 2026-01-31T12:00."


def test_stats_count_each_way() -> None:
    cut = Record.make("chat", request("cut"), ChatResponse(finish="length").canonical(), at=NEW.at)
    assert stats([*ALL, cut]) == Stats(
        records=4,
        size=sum(len(one.to_json()) for one in [*ALL, cut]),
        kinds={"chat": 3, "score": 1},
        models={"openai:gpt-4o": 2, "openai:llava-1.5": 1, "clip": 1},
        outcomes={"answered": 2, "truncated": 1},
        days={"": 1, "2025-12-31": 1, "2026-01-01": 2},
    )


def test_a_sound_store_has_no_problems() -> None:
    with open_records() as store:
        for number in range(3):
            store.put(record(f"question {number}"))
        assert list(verify(store)) == []


def test_each_damaged_row_is_a_problem() -> None:
    made = sorted((record(f"question {number}") for number in range(3)), key=lambda one: one.key)
    with open_records() as store:
        for one in made:
            store.put(one)
        with closing(sqlite3.connect(store.beside("cache.db"), isolation_level=None)) as connection:
            connection.execute("UPDATE Cache SET mode = 4 WHERE key = ?", (made[0].key,))
            forged = made[1].to_json().replace("question", "answer")
            connection.execute("UPDATE Cache SET value = ? WHERE key = ?", (forged, made[1].key))
        problems = list(verify(store))
    assert [problem.key for problem in problems] == [made[0].key, made[1].key]
    assert problems[0].message == (
        f"The row {made[0].key[:12]!r} of the store is damaged: It does not hold JSON text (mode 4); it was not read."
    )
    assert problems[1].message.startswith(f"The key {made[1].key[:12]!r} is not that of the request beside it")


def test_a_form_that_does_not_fit_is_a_problem() -> None:
    odd = Record.make("chat", request(), {"answer": 42})
    assert list(verify(MemoryStore([odd]))) == [RecordProblem(odd.key, "response: 'text' is a required property")]


def test_an_answer_with_impossible_counts_of_tokens_is_kept_and_named(tmp_path: Path) -> None:
    """A server's arithmetic takes no paid answer away: the counts are unknown, the answer goes everywhere."""
    answer = {"text": "a cup", "finish": "stop", "usage": {"input": -1000, "output": 7}}
    counted = Record.make("chat", request(), answer, at=AT)
    with open_records() as store:
        store.put(counted)
        problems, pruned = list(verify(store)), prune(store, damaged=True)
        written = export_cassette(ValidRecords(store, check=True), tmp_path / "all.jsonl")
        kept = store.get(counted.key)
    taken = MemoryStore()

    assert problems == [
        RecordProblem(
            counted.key, "It counts tokens that no call can take (input -1000); they are read as unknown.", usable=True
        )
    ]
    assert (pruned.records, kept, written) == (0, counted, 1)
    assert import_cassette(tmp_path / "all.jsonl", taken) == ImportCounts(new=1)
    assert taken.get(counted.key) == counted
    assert ChatResponse.from_canonical(counted.response).usage == Usage(output=7)


LONG_AGO, YESTERDAY = ((datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ") for days in (40, 1))
ENDPOINT = Record.make("endpoint", {"model": {"name": "m"}}, {"schema": "enforced"}, at=LONG_AGO)
RECORDS = [
    record("one", at=LONG_AGO),
    record("two", at=YESTERDAY),
    record("three", model="llava", at=LONG_AGO),
    record("undated", at=""),
    ENDPOINT,
]


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(Path(find_address())) as store:
        for each in RECORDS:
            store.put(each)
        yield store


def test_a_difference_is_who_has_what() -> None:
    both = record("both")
    first = MemoryStore([both, record("only first"), record("asked twice", "a cup")])
    second = MemoryStore([both, record("only second"), record("asked twice", "a mug")])

    found = {change.where: change for change in diff(first, second)}

    assert found == {
        "first": RecordDifference(record("only first").key, record("only first"), None),
        "second": RecordDifference(record("only second").key, None, record("only second")),
        "both": RecordDifference(
            record("asked twice").key, record("asked twice", "a cup"), record("asked twice", "a mug")
        ),
    }
    assert [change.key for change in diff(first, second)] == sorted(change.key for change in found.values())


def test_equal_stores_do_not_differ(store: Store) -> None:
    assert list(diff(store, MemoryStore(RECORDS))) == []
    assert [change.where for change in diff(MemoryStore(), MemoryStore(RECORDS[:2]))] == ["second", "second"]


@pytest.mark.parametrize(("overwrite", "answer"), [(False, "a cup"), (True, "a mug")], ids=["keep", "overwrite"])
def test_a_merge_takes_in_what_is_not_there(store: Store, overwrite: bool, answer: str) -> None:
    other = MemoryStore([record("one", "a mug"), record("two"), record("new")])

    counts = merge(other, store, overwrite=overwrite)

    assert counts == ImportCounts(new=1, same=1, conflicting=(record("one").key,), replaced=overwrite)
    kept = store.get(record("one").key)
    assert kept is not None
    assert (kept.response["text"], len(store)) == (answer, len(RECORDS) + 1)


def test_a_copy_is_read_back(store: Store) -> None:
    other = MemoryStore([record(f"number {number}") for number in range(600)])
    first = copy(other, store)
    again = copy(other, store)

    assert (first.counts.new, first.counts.same, again.counts.new, again.counts.same) == (600, 0, 0, 600)
    assert first.whole
    assert first.digest == again.digest
    one = next(iter(other))
    store.put(replace(one, response={**one.response, "text": "another"}))
    differs = copy(other, store)
    assert differs.counts.conflicting == (one.key,)
    assert not differs.whole
    assert store.get(one.key) != one, "what the target has stays"


def test_a_merge_with_a_broken_store_changes_nothing(store: Store) -> None:
    good = record("new")
    bad = Record(kind="chat", key=good.key, request=record("other").request, response=good.response)

    with pytest.raises(StoreError, match=r"^The record '.*' is damaged: The key '.*' is not that of"):
        merge(MemoryStore([record("also new"), bad]), store)

    assert len(store) == len(RECORDS)


@pytest.mark.parametrize(
    "odd", ["mode = 4, value = NULL, filename = '../x'", "value = '[]'"], ids=["pickle", "no record"]
)
def test_a_merge_takes_the_place_of_what_is_damaged(store: Store, odd: str) -> None:
    with closing(sqlite3.connect(store.beside("cache.db"), isolation_level=None)) as file:
        file.execute(f"UPDATE Cache SET {odd} WHERE key = ?", (RECORDS[0].key,))

    counts = merge(MemoryStore(RECORDS), store)

    assert counts == ImportCounts(same=len(RECORDS) - 1, mended=1)
    assert (list(verify(store)), store.get(RECORDS[0].key)) == ([], RECORDS[0])


@pytest.mark.parametrize(
    ("which", "left"),
    [
        ({"older_than": "30d"}, ["two"]),
        ({"older_than": "2w"}, ["two"]),
        ({"older_than": "480h"}, ["two"]),
        ({"older_than": "1999-12-31"}, ["one", "three", "two"]),
        ({"model": "llava"}, ["one", "two", "undated"]),
        ({"model": "*gpt*", "older_than": "30d"}, ["three", "two"]),
        ({"used": {record("one").key}}, ["one"]),
        ({"used": set[str]()}, []),
    ],
    ids=["days", "weeks", "hours", "date", "model", "both", "a run", "an empty run"],
)
def test_a_prune_takes_out_what_is_described(store: Store, which: dict[str, Any], left: list[str]) -> None:
    before = len(store)
    counted = prune(store, **which, try_only=True)
    assert len(store) == before

    assert prune(store, **which) == counted
    chats = [each for each in store if each.kind == "chat"]
    assert sorted(each.request["messages"][1]["parts"][0]["text"] for each in chats) == left
    assert counted.records == before - len(store)


def test_damaged_records_are_taken_out_by_themselves(store: Store) -> None:
    with closing(sqlite3.connect(store.beside("cache.db"), isolation_level=None)) as file:
        file.execute("UPDATE Cache SET value = '[]' WHERE key = ?", (RECORDS[0].key,))
        forged = RECORDS[1].to_json().replace("two", "another")
        file.execute("UPDATE Cache SET value = ? WHERE key = ?", (forged, RECORDS[1].key))

    assert prune(store, model="llava", try_only=True).records == 1
    assert prune(store, damaged=True, try_only=True) == PruneCounts(2, 0)
    assert prune(store, damaged=True) == PruneCounts(2, 0)
    assert (list(verify(store)), sorted(each.key for each in store)) == ([], sorted(each.key for each in RECORDS[2:]))


def test_what_endpoints_can_do_stays_with_a_run(store: Store) -> None:
    prune(store, used=set[str]())
    assert list(store) == [ENDPOINT]


def test_a_prune_gives_room_back(store: Store) -> None:
    for number in range(40):
        store.put(record(f"long {number}", "x" * 50_000, at=LONG_AGO))
    store.close()
    file = store.beside("cache.db")
    before = file.stat().st_size

    prune(store, older_than="30d")
    store.close()

    assert file.stat().st_size < before / 4
    assert list(store.damages()) == []


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ({}, "Nothing says which records to take out. Give an age, a model, or a run whose records are to stay."),
        ({"older_than": "soon"}, "'soon' is no date. Write it as 2026-01-31 or 2026-01-31T12:00."),
        ({"older_than": "d"}, "'d' is no date. Write it as 2026-01-31 or 2026-01-31T12:00."),
        (
            {"damaged": True, "model": "llava"},
            "A damaged record has no date, model or run to go by. Take the damaged ones out by themselves.",
        ),
    ],
    ids=["nothing", "no date", "no number", "damaged and more"],
)
def test_a_prune_without_a_description_is_refused(store: Store, which: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        prune(store, **which)
    assert str(caught.value) == message


def test_a_store_opened_for_reading_is_not_pruned(store: Store) -> None:
    with open_records(read_only=True) as sealed, pytest.raises(StoreError, match="is open for reading only"):
        prune(sealed, model="*")


def test_the_worth_of_a_store_names_what_has_no_price() -> None:
    records = MemoryStore(RECORDS)

    found = savings(records, lambda each: None if "llava" in each.model else 0.25)

    assert found == Savings(dollars=0.75, models={"openai:gpt-4o": 0.75}, unpriced={"openai:llava": 1})
