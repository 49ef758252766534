from __future__ import annotations

import sqlite3
from contextlib import closing

from askance.replay import MemoryStore, Problem, Record, Store, verify
from tests.replay.samples import record, request


def test_a_sound_store_has_no_problems() -> None:
    with Store.open() as store:
        for number in range(3):
            store.put(record(f"question {number}"))
        assert list(verify(store)) == []


def test_each_damaged_row_is_a_problem() -> None:
    made = sorted((record(f"question {number}") for number in range(3)), key=lambda one: one.key)
    with Store.open() as store:
        for one in made:
            store.put(one)
        with closing(sqlite3.connect(store.folder / "cache.db", isolation_level=None)) as connection:
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
    assert list(verify(MemoryStore([odd]))) == [Problem(odd.key, "response: 'text' is a required property")]
