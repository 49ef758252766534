from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from askance.errors import OverBudget, StoreError
from askance.replay import Balance, Budget, Cost, SqliteLedger, database

NOTHING = Cost()


def tokens(count: int) -> Cost:
    return Cost(tokens=count)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    book = SqliteLedger(tmp_path / "budgets" / "run.db", Budget(tokens=100))
    yield book
    book.close()


def reserved(ledger: SqliteLedger, amount: Cost) -> int:
    reservation = ledger.reserve(amount)
    assert reservation is not None
    return reservation


# --- batches ---


def test_what_a_batch_holds_outlives_its_process(ledger: SqliteLedger) -> None:
    own = SqliteLedger(ledger.path, Budget(tokens=100))
    assert own.hold("here:job:a", tokens(30))
    assert own.hold("here:job:a", tokens(40))
    own.trim("here:job:a", tokens(60))
    own.close()

    assert ledger.balance() == Balance(spent=NOTHING, lost=NOTHING, reserved=tokens(60))
    assert (ledger.held("here"), ledger.held("there")) == (["here:job:a"], [])
    for _ in range(2):
        ledger.settle_batch("here:job:a", tokens(10))
    assert ledger.balance() == Balance(spent=tokens(10), lost=NOTHING, reserved=NOTHING)


def test_nobody_online_waits_for_a_batch(ledger: SqliteLedger) -> None:
    ledger.hold("here:job:a", tokens(60))

    with pytest.raises(OverBudget) as refused:
        ledger.reserve(tokens(50))
    assert refused.value.message == (
        "The budget of 100 tokens is used up: 0 tokens spent, 60 tokens set aside for batches under way, and the next "
        "call may take 50 tokens."
    )
    assert ledger.reserve(tokens(40)) is not None


def test_a_batch_waits_for_those_of_its_own_place_and_for_calls(ledger: SqliteLedger) -> None:
    ledger.hold("here:job:a", tokens(60))
    assert not ledger.hold("here:job:b", tokens(50))
    with pytest.raises(OverBudget):
        ledger.hold("there:job:b", tokens(50))
    ledger.settle_batch("here:job:a", NOTHING)
    call = reserved(ledger, tokens(60))
    assert not ledger.hold("here:job:b", tokens(50))
    ledger.settle(call, NOTHING)
    assert ledger.hold("here:job:b", tokens(50))


def test_a_batch_that_nobody_comes_back_for_is_lost(ledger: SqliteLedger) -> None:
    ledger.hold("here:job:a", tokens(60))
    ledger.settle_batch("here:job:a", None)
    assert ledger.balance() == Balance(spent=tokens(60), lost=tokens(60), reserved=NOTHING)


# --- one process ---


def test_a_worst_case_is_set_aside_and_settled(ledger: SqliteLedger) -> None:
    first = reserved(ledger, tokens(60))
    before = ledger.balance()
    ledger.settle(first, tokens(10))
    ledger.settle(first, tokens(10))

    assert before == Balance(spent=NOTHING, lost=NOTHING, reserved=tokens(60))
    assert ledger.balance() == Balance(spent=tokens(10), lost=NOTHING, reserved=NOTHING)


def test_what_only_calls_under_way_stand_in_the_way_of_has_to_wait(ledger: SqliteLedger) -> None:
    first = reserved(ledger, tokens(60))

    assert ledger.reserve(tokens(60)) is None
    ledger.settle(first, tokens(40))
    assert ledger.reserve(tokens(60)) is not None


def test_what_never_fits_is_refused(ledger: SqliteLedger) -> None:
    ledger.settle(reserved(ledger, tokens(60)), tokens(60))

    with pytest.raises(OverBudget) as refused:
        ledger.reserve(tokens(41), what="the next call of 'm'")

    assert refused.value.message == (
        "The budget of 100 tokens is used up: 60 tokens spent, and the next call of 'm' may take 41 tokens."
    )
    assert refused.value.outcome == "skipped"


def test_a_larger_budget_goes_on_where_a_smaller_one_stopped(ledger: SqliteLedger) -> None:
    ledger.settle(reserved(ledger, tokens(100)), tokens(100))
    more = SqliteLedger(ledger.path, Budget(tokens=150))

    assert more.reserve(tokens(50)) is not None
    more.close()


def test_closing_writes_off_what_is_not_settled(ledger: SqliteLedger) -> None:
    reserved(ledger, tokens(30))
    ledger.close()

    assert ledger.balance() == Balance(spent=tokens(30), lost=tokens(30), reserved=NOTHING)
    ledger.close()
    assert sorted(file.name for file in ledger.path.parent.iterdir()) == ["run.db"]


def test_threads_share_a_ledger(ledger: SqliteLedger) -> None:
    def work() -> None:
        for _ in range(10):
            ledger.settle(reserved(ledger, tokens(1)), tokens(1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ledger.balance().spent == tokens(40)


def test_those_who_open_and_close_a_ledger_at_once_wait_for_each_other(tmp_path: Path) -> None:
    troubles: list[Exception] = []

    def come_and_go(path: Path) -> None:
        try:
            for _ in range(10):
                book = SqliteLedger(path, Budget(tokens=1000))
                book.settle(reserved(book, tokens(1)), tokens(1))
                book.close()
        except Exception as error:  # noqa: BLE001  # whatever goes wrong in a thread is shown below
            troubles.append(error)

    for round_ in range(10):
        threads = [threading.Thread(target=come_and_go, args=(tmp_path / f"{round_}.db",)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert troubles == []


def test_a_ledger_that_cannot_be_written_stops_spending(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match=r"^The budget's ledger '.*run\.db' cannot be written: "):
        SqliteLedger(tmp_path / "file" / "run.db", Budget(calls=1)).reserve(Cost(calls=1))


@pytest.mark.parametrize("spoil", ["text", "version"])
def test_a_file_that_is_no_ledger_of_ours_is_left_alone(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "run.db"
    if spoil == "text":
        path.write_text("no database at all, but long enough to be taken for one " * 20)
    else:
        with sqlite3.connect(path) as other:
            other.execute("PRAGMA user_version = 9")
        other.close()
    before = path.read_bytes()

    with pytest.raises(StoreError):
        SqliteLedger(path, Budget(calls=1)).reserve(Cost(calls=1))

    assert path.read_bytes() == before


def test_a_ledger_that_another_process_holds_is_waited_for_once(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call would wait as long, one after the other, and a run would not end."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT", 0.1)
    reserved(ledger, tokens(1))
    seconds = list[float]()
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(20):
            began = time.monotonic()
            with pytest.raises(StoreError) as caught:
                ledger.reserve(tokens(1))
            seconds.append(time.monotonic() - began)
            assert str(caught.value) == (
                f"The budget's ledger {str(ledger.path)!r} cannot be written: another process has held the file "
                f"{str(ledger.path)!r} for 0.1 s. No call is made without it. End that process (on most systems `fuser "
                "FILE` names it), or run without a budget."
            )
        other.execute("ROLLBACK")
        reserved(ledger, tokens(1))

    assert sum(seconds[1:]) < 5 * max(seconds[0], 0.1), "19 waits of 0.1 s"
