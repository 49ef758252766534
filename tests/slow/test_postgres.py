"""Records that a team shares, in a real PostgreSQL server: what every store does, and what becomes of dead workers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pickle  # what is read here is written here
import random
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from socket import gethostname

import pytest

from askance.chat import ChatResponse, ModelId
from askance.errors import DamagedRecord, OverBudget, StoreError
from askance.models.learnt_pace import LearntPace
from askance.replay import Balance, Budget, Cost, Record, Records, copy, export_cassette, import_cassette, open_records
from askance.replay import postgres_database as database
from askance.replay.leases import EXPIRY
from askance.testing import Check, RecordsFactory, ask, record_checks
from tests.faults.run import CALLS, Run, alone, answer, asked_twice, digest, stable
from tests.processes import kill
from tests.servers import FakeEndpoint, JsonObject
from tests.slow.postgres_server import PASSWORD, PostgresServer, serving

pytestmark = pytest.mark.slow(group="workers")

AT_ONCE = 4
MODEL = ModelId("openai", "fake-model")


@pytest.fixture(scope="module")
def shared_server() -> Iterator[PostgresServer]:
    with serving() as server:
        yield server


@pytest.fixture
def server(shared_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PostgresServer:
    """The server without any records, for this user."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for (schema,) in shared_server.run("SELECT nspname FROM pg_namespace WHERE nspname ~ '^(askance|check)'"):
        shared_server.run(f'DROP SCHEMA "{schema}" CASCADE')
    return shared_server


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(lambda seen: answer(seen.json), delay=0.2) as endpoint:
        yield endpoint


class InSchemas:
    """Records in schemas of one database, each with a folder in front of it."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._server = server
        self._folder = folder

    def open(self, name: str, /, *, read_only: bool = False) -> Records:
        schema = self._schema(name)
        return open_records(self._server.address(schema=schema, front=str(self._folder / schema)), read_only=read_only)

    def damage(self, name: str, key: str, /) -> None:
        self._server.run(f"UPDATE {self._schema(name)}.record SET body = '{{}}' WHERE key = %s", (bytes.fromhex(key),))
        shutil.rmtree(self._folder / self._schema(name))  # what this machine has read is sound

    def _schema(self, name: str) -> str:
        return f"check_{name.replace('-', '_')}"


@pytest.mark.parametrize("check", record_checks(), ids=str)
async def test_a_database_does_what_every_store_does(
    check: Check[RecordsFactory], server: PostgresServer, tmp_path: Path
) -> None:
    await check(InSchemas(server, tmp_path))


# ---- workers ---------------------------------------------------------------------------------------------------------


def lines_in(out: Path) -> list[JsonObject]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_ten_processes_pay_for_nothing_twice(server: PostgresServer, endpoint: FakeEndpoint, tmp_path: Path) -> None:
    """Five runs over the same pictures, and five over more or fewer of them."""
    runs = [
        Run(url=endpoint.url, store=server.address(), pictures=count, concurrency=AT_ONCE)
        for count in (6, 6, 6, 6, 6, 2, 4, 8, 9, 10)
    ]
    begun = [(run, alone(run, tmp_path / f"{number}.jsonl")) for number, run in enumerate(runs)]
    for _, process in begun:
        process.join(120)

    assert [process.exitcode for _, process in begun] == [0] * 10
    assert asked_twice(endpoint) == 0
    assert len(endpoint.requests) == 10 * CALLS + 1, "and once what the endpoint can do"
    (longest,) = (stable(lines_in(tmp_path / f"{number}.jsonl")) for number in (9,))
    for number, run in enumerate(runs):
        assert stable(lines_in(tmp_path / f"{number}.jsonl")) == longest[: run.pictures]


def test_workers_that_die_stop_or_lose_the_database(
    server: PostgresServer, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    """Of four workers one is killed, one is stopped for longer than its leases last; the database is started again."""
    run = Run(url=endpoint.url, store=server.address(), pictures=16, concurrency=AT_ONCE, timeout=120.0)
    workers = [alone(run, tmp_path / f"{number}.jsonl") for number in range(4)]
    endpoint.wait(20)
    kill(workers[0])
    endpoint.wait(30)
    stopped = workers[1].pid or 0
    os.kill(stopped, signal.SIGSTOP)
    stopped_at = time.monotonic()
    server.stop("immediate")
    server.start()
    for process in workers[2:]:
        process.join(180)
    time.sleep(max(0.0, EXPIRY + 2 - (time.monotonic() - stopped_at)))
    os.kill(stopped, signal.SIGCONT)
    workers[1].join(120)

    assert [process.exitcode for process in workers[1:]] == [0, 0, 0]
    one, two, three = (stable(lines_in(tmp_path / f"{number}.jsonl")) for number in (1, 2, 3))
    assert one == two == three
    assert {line["outcome"] for line in one} == {"answered"}
    assert len({*map(digest, endpoint.bodies)}) == 16 * CALLS + 1, "and what the endpoint can do"
    assert asked_twice(endpoint) <= 2 * AT_ONCE, "no more than the dead and the stopped worker had under way"

    alone_run = replace(run, store=tmp_path / "alone")
    assert stable(asyncio.run(alone_run.lines())) == one, "the run of one process on a store of its own"


def test_a_lease_of_a_dead_worker_is_free_by_the_clock_of_the_server(server: PostgresServer) -> None:
    key = record(1).key
    with open_records(server.address()) as records:
        dead, other = records.leases(), records.leases()
        assert dead is not None
        assert other is not None
        assert (dead.take(key), other.take(key)) == (True, False)
        server.run("UPDATE askance.lease SET until = now() - interval '1 s'")
        assert (dead.owns(key), other.is_free(key), other.take(key)) == (False, True, True)
        dead.release(key)
        assert other.owns(key), "it is another's by now"
        dead.close()
        other.close()


def test_the_batch_that_calls_wait_for_is_said_once(server: PostgresServer, caplog: pytest.LogCaptureFixture) -> None:
    with open_records(server.address()) as records:
        one, other = records.leases(), records.leases()
        assert one is not None
        assert other is not None
        assert one.assign_to_batch("batch-1", [record(1).key])
        assert not other.take(record(1).key)
        assert not other.take(record(1).key)
        words = f"Some calls wait for the batch batch-1 of {gethostname()}, which has asked for them already."
        assert caplog.messages == [words]
        one.release_batch("batch-1")
        assert other.take(record(1).key)
        one.close()
        other.close()


def test_a_lease_ends_with_the_commit_of_its_record(server: PostgresServer) -> None:
    with open_records(server.address()) as records:
        leases = records.leases()
        assert leases is not None
        assert leases.take(record(1).key)
        records.put(record(1))
        assert server.run("SELECT count(*) FROM askance.lease") == [(0,)]
        leases.close()


def test_a_budget_outlives_a_worker(server: PostgresServer) -> None:
    with open_records(server.address()) as records:
        dead, other = (records.ledger("ads", Budget(calls=3)) for _ in range(2))
        assert dead.reserve(Cost(calls=2)) is not None
        assert other.reserve(Cost(calls=2)) is None
        server.run("UPDATE askance.reserved SET until = now() - interval '1 s'")
        with pytest.raises(OverBudget, match=r"2 calls spent, and the next call may take 2 calls"):
            other.reserve(Cost(calls=2))
        assert other.balance().lost == Cost(calls=2)
        other.close()


def test_calls_of_an_allowance_need_no_database(server: PostgresServer) -> None:
    with open_records(server.address()) as records:
        own, other = (records.ledger("ads", Budget(calls=10_000)) for _ in range(2))
        first = own.reserve(Cost(calls=1))
        assert first is not None
        (drawn,) = server.run("SELECT calls FROM askance.reserved")[0]
        assert 40 < drawn <= 101, "a hundredth of what is left, and no more than 50 calls ahead"
        for _ in range(40):
            reservation = own.reserve(Cost(calls=1))
            assert reservation is not None
            own.settle(reservation, Cost(calls=1))
        assert server.run("SELECT calls FROM askance.reserved") == [(drawn,)]
        assert server.run("SELECT calls FROM askance.budget") == [(0,)]
        own.settle(first, Cost(calls=1))
        assert own.balance() == Balance(spent=Cost(calls=41), lost=Cost(), reserved=Cost())
        assert other.balance().spent == Cost(calls=41)
        own.close()
        other.close()


@pytest.mark.parametrize("limit", [30, 2_000])
def test_a_budget_is_never_passed(server: PostgresServer, limit: int) -> None:
    """Four workers spend all of it, and nothing beyond."""
    spent = list[int]()

    def work(number: int) -> None:
        chance, ledger = random.Random(number), records.ledger("ads", Budget(calls=limit))
        try:
            while True:
                reservation = ledger.reserve(Cost(calls=2))
                if reservation is None:
                    time.sleep(0.02)
                    continue
                actual = chance.randint(0, 2)
                ledger.settle(reservation, Cost(calls=actual))
                spent.append(actual)
        except OverBudget:
            ledger.close()

    with open_records(server.address()) as records:
        with ThreadPoolExecutor(4) as threads:
            for _ in threads.map(work, range(4)):
                pass
        last = records.ledger("ads", Budget(calls=limit))
        assert last.balance() == Balance(spent=Cost(calls=sum(spent)), lost=Cost(), reserved=Cost())
        assert limit - 1 <= sum(spent) <= limit
        last.close()
        assert server.run("SELECT count(*) FROM askance.reserved") == [(0,)]


async def test_the_pace_of_all_workers_is_that_of_one(server: PostgresServer) -> None:
    """Three workers with a limit of 20 calls a second together, and a pause that one of them is asked for."""
    started: list[float] = []

    async def work(records: Records, ends: float) -> None:
        pace = records.pace(MODEL, LearntPace(rpm=1200.0), rpm=1200.0, tpm=None)
        while (now := time.monotonic()) < ends:
            if (wait := pace.wait(now)) > 0:
                await asyncio.sleep(min(wait, 0.05))
                continue
            pace.started(now)
            started.append(now)

    with open_records(server.address()) as records:
        ends = time.monotonic() + 4.0
        await asyncio.gather(*(work(records, ends) for _ in range(3)))
        spans = [later - sooner for sooner, later in zip(started, started[20:], strict=False)]
        assert min(spans) > 0.9, "no second has many more than 20"
        assert len(started) > 50, "the limit is used"

        told, tells = (records.pace(MODEL, LearntPace(), rpm=None, tpm=None) for _ in range(2))
        for pace in (told, tells):
            pace.wait(time.monotonic())
        now = time.monotonic()
        tells.started(now)
        tells.rejected(now, now, 30.0)
        for _ in range(100):
            if told.wait(time.monotonic()) > 20:
                break
            await asyncio.sleep(0.05)
        assert told.wait(time.monotonic()) > 20
        assert "asked a worker to slow down" in told.reason(time.monotonic())


# ---- what is wrong with a database -----------------------------------------------------------------------------------


def record(number: int, text: str = "a cup") -> Record:
    request = ask(f"What is number {number}?").canonical()
    return Record.make("chat", request, ChatResponse(text=text).canonical(), at="2026-01-31T12:00:00Z")


def refused(address: str, **how: bool) -> str:
    with pytest.raises(StoreError) as caught:
        open_records(address, **how)
    return str(caught.value)


def test_what_cannot_be_used_is_named(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    address = server.address()
    with open_records(address, read_only=True) as records:
        assert (len(records), records.get(record(1).key)) == (0, None), "nothing was made for a reader"
    open_records(address).close()

    server.run("UPDATE askance.meta SET version = 99")
    assert "are of version 99, and this is askance for version 1" in refused(address)
    server.run("UPDATE askance.meta SET version = 1")

    server.run("ALTER ROLE askance SET synchronous_commit = off")
    assert "`synchronous_commit` is off" in refused(address)
    server.run("ALTER ROLE askance RESET synchronous_commit")

    server.run(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    guest = address.replace("askance@", "guest@")
    assert "permission denied" in refused(guest)
    server.run("GRANT USAGE ON SCHEMA askance TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA askance TO guest")
    with open_records(address) as records:
        records.put(record(1))
    with open_records(guest) as records:
        assert (records.writable, records.leases(), records.get(record(1).key)) == (False, None, record(1))
        with pytest.raises(StoreError, match=r"may not be changed by this user\. Replay what they hold"):
            records.put(record(2))

    monkeypatch.setenv("PGPASSWORD", "a wrong secret")
    wrong = refused(address)
    assert "password authentication failed" in wrong
    assert "a wrong secret" not in wrong
    nobody = refused(f"postgres://askance:another%20secret@127.0.0.1:{server.port}/nowhere")
    assert "another secret" not in nobody
    assert "another%20secret" not in nobody


def test_a_password_in_the_address_is_neither_shown_nor_pickled(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    address = server.address().replace("askance@", f"askance:{PASSWORD.replace(' ', '%20')}@")
    monkeypatch.setenv("ASKANCE_STORE", address)
    with open_records() as records:
        records.put(record(1))
        pickled = pickle.dumps(records)
        assert not any("secret" in text for text in (records.name, repr(records), str(pickled)))
        with pickle.loads(pickled) as again:
            assert again.get(record(1).key) == record(1), "the environment of the worker has it"


def test_tables_are_brought_up_to_date(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_records(server.address()) as records:
        records.put(record(1))
    later = (*database.MIGRATIONS, "ALTER TABLE record ADD COLUMN note text")
    monkeypatch.setattr(database, "MIGRATIONS", later)
    monkeypatch.setattr(database, "VERSION", len(later))

    assert "Open them for writing once" in refused(server.address(), read_only=True)
    with open_records(server.address()) as records:
        assert records.get(record(1).key) == record(1)
    assert server.run("SELECT version FROM askance.meta") == [(2,)]


def test_answers_wait_for_a_database_that_has_gone(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.5)
    with open_records(server.address()) as records:
        records.put(record(1))
        server.stop("immediate")
        try:
            with caplog.at_level(logging.WARNING, "askance"):
                records.put_all([record(2), record(3, "ours")])
                records.put(record(4))
        finally:
            server.start()
        assert sum("is kept in" in line.message for line in caplog.records) == 1
        assert records.get(record(2).key) == record(2), "from this machine"
    with open_records(server.address(front="/tmp/elsewhere")) as records:
        assert len(records) == 1
        records.put(record(3, "theirs"))
    with open_records(server.address()) as records:
        assert len(records) == 4
        assert records.get(record(3).key) == record(3, "theirs"), "the first on record stays"


def test_what_another_machine_replaces_is_seen(server: PostgresServer, tmp_path: Path) -> None:
    here, there = (server.address(front=str(tmp_path / name)) for name in ("here", "there"))
    with open_records(here) as records:
        records.put_all([record(1), record(2)])
        assert len(records.get_all([record(1).key, record(2).key])) == 2
    with open_records(there) as records:
        records.put(record(1, "another"))
        records.remove([record(2).key])
    with open_records(here) as records:
        assert records.get_all([record(1).key, record(2).key]) == {record(1).key: record(1, "another")}


# ---- copies ----------------------------------------------------------------------------------------------------------


def copied(count: int, server: PostgresServer, folder: Path) -> None:
    """A store on disk, to the database, to a cassette, to a store on disk; each is what the one before was."""
    with open_records(folder / "first") as first:
        for start in range(0, count, 1000):
            first.put_all(record(number) for number in range(start, min(start + 1000, count)))
        with open_records(server.address()) as middle:
            there = copy(first, middle)
            export_cassette(middle, folder / "all.jsonl")
            with open_records(folder / "last") as last:
                import_cassette(folder / "all.jsonl", last)
                back = copy(middle, last)
    assert (there.counts.new, back.counts.same) == (count, count)
    assert there.digest == there.source_digest == back.digest == back.source_digest


def test_records_go_both_ways(server: PostgresServer, tmp_path: Path) -> None:
    copied(2000, server, tmp_path)


@pytest.mark.soak
def test_a_hundred_thousand_records_go_both_ways(server: PostgresServer, tmp_path: Path) -> None:
    copied(100_000, server, tmp_path)


def test_a_poisoned_row_is_refused(server: PostgresServer, tmp_path: Path) -> None:
    with open_records(server.address()) as records:
        records.put_all([record(number) for number in range(3)])
        poisoned = record(1, "an answer of somebody else's").to_json().replace("number 1", "number 7")
        server.run("UPDATE askance.record SET body = %s WHERE key = %s", (poisoned, bytes.fromhex(record(1).key)))
        with open_records(tmp_path / "store") as target:
            with pytest.raises(DamagedRecord, match=r"the key .* is not that of the request|is damaged"):
                copy(records, target)
            assert len(target) == 0
