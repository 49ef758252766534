from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from askance.replay import leases
from askance.replay.leases import FILE, StoreLeases
from tests.conftest import SERIAL
from tests.processes import begin

KEY, OTHER = "ab" * 32, "cd" * 32

HOLDS = """
import asyncio, sys
from pathlib import Path
from askance.replay.leases import StoreLeases

async def main():
    async with StoreLeases(Path(sys.argv[1])).lease(sys.argv[2], lambda: False):
        print("held", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def never() -> bool:
    return False


def many(count: int) -> list[str]:
    return [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lease of `KEY`."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path), KEY], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[], StoreLeases]]:
    """Runs on the same records, as many as are asked for."""
    begun: list[StoreLeases] = []

    def run() -> StoreLeases:
        begun.append(StoreLeases(tmp_path))
        return begun[-1]

    yield run
    for own in begun:
        own.close()


@contextmanager
def table(folder: Path) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as file:
        yield file


def left(folder: Path) -> list[str]:
    """The files of processes."""
    return [path.name for path in folder.glob("*.alive")]


async def holds(own: StoreLeases, key: str = KEY, done: Callable[[], bool] = never) -> None:
    async with own.lease(key, done):
        pass


Run = Callable[[], StoreLeases]


async def test_a_lease_is_held_by_one(run: Run, tmp_path: Path) -> None:
    one, two, inside = run(), run(), 0

    async def call(own: StoreLeases) -> None:
        nonlocal inside
        async with own.lease(KEY, never):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.wait_for(asyncio.gather(*(call(own) for own in (one, two, one, two))), 10)
    one.close()
    two.close()
    with table(tmp_path) as file:
        assert file.execute("SELECT (SELECT count(*) FROM lease), (SELECT count(*) FROM worker)").fetchone() == (0, 0)
    assert left(tmp_path) == []


def test_what_was_closed_is_not_begun_again_to_release(run: Run, tmp_path: Path) -> None:
    own = run()
    assert own.take(KEY)
    own.close()
    own.release(KEY)
    assert left(tmp_path) == []


async def test_different_keys_wait_for_nobody(run: Run) -> None:
    async with asyncio.timeout(5), run().lease(KEY, never), run().lease(OTHER, never):
        pass


async def test_a_live_holder_is_waited_for(run: Run, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(holds(run()), 0.5)


async def test_the_wait_ends_with_the_answer(run: Run, holder: subprocess.Popen[str]) -> None:
    own, looks = run(), iter([False, False, True])
    async with asyncio.timeout(5), own.lease(KEY, lambda: next(looks)):
        assert holder.poll() is None
    assert not own.is_free(KEY), "it is still the other one's"


async def test_a_killed_holder_blocks_nobody(run: Run, holder: subprocess.Popen[str], tmp_path: Path) -> None:
    own, start = run(), time.monotonic()
    assert not own.take(KEY)
    holder.kill()
    holder.wait()
    await asyncio.wait_for(holds(own), 5)
    assert time.monotonic() - start < 2
    assert len(left(tmp_path)) == 1


async def test_a_stopped_holder_counts_for_nothing_after_a_while(
    run: Run, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "EXPIRY", 0.3)
    os.kill(holder.pid, signal.SIGSTOP)
    start = time.monotonic()
    await asyncio.wait_for(holds(run()), 5)
    assert time.monotonic() - start > 0.3


async def test_a_holder_that_gives_signs_of_life_is_not_robbed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "EXPIRY", 0.4)
    monkeypatch.setattr(leases, "HEARTBEAT", 0.05)
    monkeypatch.setattr(time, "time", lambda: 0.0)  # whatever the wall's clock says
    async with run().lease(KEY, never):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(holds(run()), 1.5)


def test_what_was_taken_over_is_not_released_by_whoever_had_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = run(), run()
    assert (one.take(KEY), two.take(KEY)) == (True, False)
    monkeypatch.setattr(leases, "EXPIRY", 0.0)
    assert two.take(KEY)
    one.release(KEY)

    assert (one.owns(KEY), two.owns(KEY)) == (False, True)


async def test_many_that_wait_for_a_dead_holder_follow_each_other(run: Run, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    inside = most = 0

    async def call(own: StoreLeases) -> None:
        nonlocal inside, most
        async with own.lease(KEY, never):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.005)
            inside -= 1

    await asyncio.wait_for(asyncio.gather(*(call(run()) for _ in range(8))), 20)
    assert most == 1


def race(folder: str, won: str, start: str) -> None:
    own = StoreLeases(Path(folder))
    Path(f"{won}.ready").touch()
    keys, mine = many(200), list[str]()
    random.Random(Path(won).name).shuffle(keys)  # else the first to begin stays ahead of all
    wait(Path(start).exists)
    for key in keys:
        if own.take(key):
            mine.append(key)
        time.sleep(0.0005)
    Path(won).write_text("\n".join([*mine, "."]), encoding="ascii")
    wait(lambda: not Path(start).exists())


def wait(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not done() and time.monotonic() < deadline:
        time.sleep(0.001)


@SERIAL
def test_of_several_processes_each_lease_is_won_once(tmp_path: Path) -> None:
    start, files = tmp_path / "start", [tmp_path / f"{number}.won" for number in range(4)]
    processes = [begin(race, str(tmp_path), str(file), str(start)) for file in files]
    wait(lambda: len(list(tmp_path.glob("*.ready"))) == 4)
    start.touch()
    wait(lambda: all(file.exists() and file.read_text("ascii").endswith(".") for file in files))
    won = [file.read_text("ascii").split()[:-1] for file in files]
    start.unlink()
    for process in processes:
        process.join(10)

    assert sorted(itertools.chain(*won)) == sorted(many(200))
    assert sum(map(bool, won)) > 1, "they did race"


async def test_a_batch_holds_its_keys_without_a_process(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    first = run()
    assert first.assign_to_batch("batch-1", [KEY, OTHER])
    first.close()
    own = run()
    await asyncio.wait_for(holds(own, "ef" * 32), 5)
    with caplog.at_level(logging.WARNING), pytest.raises(TimeoutError):
        await asyncio.wait_for(holds(own), 0.3)
    assert caplog.messages == ["Some calls wait for the batch batch-1, which has asked for them already."]
    run().release_batch("batch-1")
    await asyncio.wait_for(holds(own), 5)


AGES = {"an hour short of it": (25.0, True), "an hour past it": (27.0, False), "to come": (-27.0, False)}


@pytest.mark.parametrize(("hours", "held"), AGES.values(), ids=AGES)
def test_a_batch_that_nobody_comes_back_for_holds_its_leases_for_a_day(
    run: Run, hours: float, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, now = run(), time.time()
    with monkeypatch.context() as then:
        then.setattr(time, "time", lambda: now - hours * 3600)
        own.assign_to_batch("batch-1", [KEY])

    assert (own.is_free(KEY), own.take(KEY)) == (not held, not held)
    assert run().is_free(OTHER)


def test_a_batch_whose_state_is_gone_holds_nothing(run: Run, tmp_path: Path) -> None:
    own, kept = run(), tmp_path / "calls"
    kept.touch()
    own.assign_to_batch("batch-1", [KEY], file=kept)

    assert (own.take(KEY), own.take(KEY, of="batch-1")) == (False, True)
    own.assign_to_batch("batch-1", [KEY], file=kept)
    kept.unlink()
    assert own.take(KEY)


def test_what_is_held_for_nothing_is_cleared_away(run: Run, holder: subprocess.Popen[str], tmp_path: Path) -> None:
    kept = tmp_path / "calls"
    run().assign_to_batch("batch-1", [OTHER], file=kept)
    holder.kill()
    holder.wait()
    assert run().is_free("ef" * 32)

    with table(tmp_path) as file:
        assert file.execute("SELECT count(*) FROM lease").fetchone() == (0,)
    assert len(left(tmp_path)) == 2


def test_a_lease_without_a_wait(run: Run, holder: subprocess.Popen[str]) -> None:
    own = run()
    assert [own.take(KEY), own.take(OTHER), own.take(OTHER)] == [False, True, False]
    assert [own.owns(KEY), own.owns(OTHER), own.is_free(KEY)] == [False, True, False]
    own.release(KEY)
    own.release(OTHER)
    assert [own.is_free(KEY), own.is_free(OTHER)] == [False, True]
    holder.kill()
    holder.wait()
    assert own.is_free(KEY)
    assert own.take(KEY)


async def test_a_handover_to_a_batch_leaves_no_gap(run: Run) -> None:
    """Who waits for a lease does not get it in the moment in which it passes to the batch."""
    one, two = run(), run()
    assert one.take(KEY)
    waiting = asyncio.ensure_future(holds(two))
    await asyncio.sleep(0.1)
    assert one.assign_to_batch("batch-1", [KEY])
    one.release(KEY)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waiting, 0.5)


def test_a_handover_is_whole_or_not_at_all(run: Run) -> None:
    one, two = run(), run()
    assert (one.take(KEY), two.take(OTHER)) == (True, True)

    assert not one.assign_to_batch("batch-1", [KEY, OTHER, "ef" * 32])
    assert (one.owns(KEY), two.owns(OTHER), one.is_free("ef" * 32)) == (True, True, True)


async def test_whoever_changes_the_table_for_long_holds_up_no_event_loop(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT", 60.0)
    own, two = run(), run()
    assert (own.take(OTHER), two.is_free(OTHER)) == (True, False)
    with table(tmp_path) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting, longest, last = asyncio.ensure_future(holds(two)), 0.0, time.monotonic()
        for _ in range(40):
            await asyncio.sleep(0.005)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        own.release(OTHER)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 5)
    assert longest < 0.1
    await asyncio.wait_for(holds(two, OTHER), 5)  # it was released as soon as the table could be changed


async def test_a_table_that_nobody_gives_free_holds_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as one whose process was stopped amid a change."""
    own = run()
    assert own.is_free(KEY)
    monkeypatch.setattr(leases, "EXPIRY", 0.3)
    with table(tmp_path) as other:
        other.execute("BEGIN IMMEDIATE")
        await asyncio.wait_for(holds(own), 5)
        assert own.take(KEY)
        with pytest.raises(OSError, match=r"^Another process does not give the table free$"):
            own.assign_to_batch("batch-1", [KEY])
    (said,) = [message.getMessage() for message in caplog.records]
    assert said == (
        f"Another process has held the file {str(tmp_path / leases.FILE)!r} for 0.3 s: calls are made without leases, "
        "and another run may make the same ones. End that process (on most systems `fuser FILE` names it)."
    )


async def test_a_table_that_was_kept_for_a_moment_long_ago_is_waited_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "EXPIRY", 0.3)
    own = run()
    assert own.take(KEY)
    with table(tmp_path) as other:
        other.execute("BEGIN IMMEDIATE")
        own.release(KEY)
    await asyncio.wait_for(holds(run()), 5)
    await asyncio.sleep(0.4)
    with table(tmp_path) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(holds(own))
        await asyncio.sleep(0.1)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 5)


def test_a_fork_holds_nothing_of_its_parent(run: Run, tmp_path: Path) -> None:
    own = run()
    assert own.take(KEY)
    child = multiprocessing.get_context("fork").Process(target=_child, args=(own, tmp_path))
    child.start()
    child.join(20)

    assert child.exitcode == 0
    assert own.owns(KEY)
    assert own.take(OTHER)


def _child(own: StoreLeases, folder: Path) -> None:
    assert (own.owns(KEY), own.take(KEY), own.take(OTHER)) == (False, False, True)
    own.close()
    assert len(left(folder)) == 1


def test_a_child_that_lives_on_frees_what_its_dead_parent_held(run: Run, tmp_path: Path) -> None:
    script = (
        "import os, sys, time\nfrom pathlib import Path\nfrom askance.replay.leases import StoreLeases\n"
        "own = StoreLeases(Path(sys.argv[1]))\nassert own.take(sys.argv[2])\n"
        "if not os.fork():\n    print(os.getpid(), flush=True)\n    time.sleep(60)\nos._exit(0)\n"
    )
    done = subprocess.Popen([sys.executable, "-c", script, str(tmp_path), KEY], stdout=subprocess.PIPE, text=True)
    assert done.stdout is not None
    child = int(done.stdout.readline())  # it says so itself, once the fork has let go of what it inherited
    done.wait(20)
    done.stdout.close()
    try:
        assert run().take(KEY)
    finally:
        os.kill(child, signal.SIGKILL)


def garbage(file: Path) -> None:
    file.write_bytes(b"no table " * 1000)


def foreign(file: Path) -> None:
    with table(file.parent) as other:
        other.execute("CREATE TABLE lease (key TEXT)")


def triggered(file: Path) -> None:
    StoreLeases(file.parent).take(OTHER)
    with table(file.parent) as other:
        other.execute("CREATE TRIGGER t AFTER INSERT ON lease BEGIN DELETE FROM lease; END")


def linked(file: Path) -> None:
    (file.parent / "elsewhere").touch()
    file.symlink_to(file.parent / "elsewhere")


def linked_journal(file: Path) -> None:
    StoreLeases(file.parent / "sound").take(OTHER)
    file.write_bytes((file.parent / "sound" / FILE).read_bytes())
    linked(file.with_name(f"{FILE}-wal"))


STRANGE: dict[str, Callable[[Path], None]] = {
    "no table": garbage,
    "another table": foreign,
    "a trigger": triggered,
    "a link": linked,
    "a journal that is a link": linked_journal,
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
}


@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
async def test_what_is_no_table_of_leases_is_set_aside(
    run: Run, tmp_path: Path, make: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path / FILE)
    with caplog.at_level(logging.WARNING):
        one, two = run(), run()
        await asyncio.wait_for(holds(one), 5)
        assert (one.take(KEY), two.take(KEY)) == (True, False)

    aside = tmp_path / f"{FILE}.damaged"
    said = f"The file of leases is damaged and was replaced; the damaged one is {str(aside)!r}."
    assert (caplog.messages, aside.is_symlink() or aside.exists()) == ([said], True)
    assert not (tmp_path / "elsewhere").exists() or (tmp_path / "elsewhere").stat().st_size == 0


def test_a_table_that_is_damaged_meanwhile_is_set_aside_for_all(run: Run, tmp_path: Path) -> None:
    one, two, three = run(), run(), run()
    assert (one.take(KEY), two.take(OTHER), three.is_free(KEY)) == (True, True, False)
    with table(tmp_path) as other:
        other.execute("DROP TABLE lease")

    assert one.take(KEY)
    assert [own.take(KEY) for own in (two, three)] == [False, False]
    for own in (one, two, three):
        own.close()
    assert left(tmp_path) == []


def test_a_table_that_is_moved_away_is_left_by_all(run: Run, tmp_path: Path) -> None:
    one, two = run(), run()
    assert one.take(KEY)
    (tmp_path / FILE).rename(tmp_path / "elsewhere")
    for end in ("-wal", "-shm"):
        (tmp_path / f"{FILE}{end}").unlink()

    assert (two.take(OTHER), one.take(OTHER)) == (True, False)


ROWS = {
    "words for a moment": "UPDATE batch SET at = 'now'",
    "bytes for a name": "UPDATE batch SET name = x'00'",
    "a number for a file": "UPDATE batch SET kept = 1",
    "nobody": "DELETE FROM batch",
    "words for a holder": "UPDATE lease SET owner = '../../x'",
}


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_a_row_that_nobody_wrote_holds_nothing(run: Run, tmp_path: Path, change: str) -> None:
    own = run()
    own.assign_to_batch("batch-1", [KEY])
    with table(tmp_path) as other:
        other.execute("PRAGMA writable_schema = ON")
        other.execute("UPDATE sqlite_master SET sql = replace(sql, ' STRICT', '')")
        other.execute("UPDATE sqlite_master SET sql = replace(sql, ', WITHOUT', 'WITHOUT')")
    with table(tmp_path) as other:
        other.execute(change)

    assert own.take(KEY)


@pytest.mark.parametrize("place", ["store", "/proc"])
async def test_a_folder_that_cannot_be_used_holds_nothing(tmp_path: Path, place: str) -> None:
    """In the place of one there is a file; and nobody may write there."""
    (tmp_path / "store").write_text("in the way")
    own = StoreLeases(tmp_path / place)
    await asyncio.wait_for(asyncio.gather(*(holds(own) for _ in range(3))), 5)
    assert (own.take(KEY), own.is_free(KEY), own.owns(KEY)) == (True, True, False)
    with pytest.raises(OSError, match=r"store|/proc"):
        own.assign_to_batch("batch-1", [KEY])


async def test_a_disk_that_is_full_holds_nothing(run: Run) -> None:
    own = run()
    assert own.is_free(KEY)
    worker = own._worker  # pyright: ignore[reportPrivateUsage]
    assert worker is not None
    (pages,) = worker.table.execute("PRAGMA page_count").fetchone()
    worker.table.execute(f"PRAGMA max_page_count = {pages}")

    assert all(own.take(key) for key in many(500))
    with pytest.raises(OSError, match="full"):
        own.assign_to_batch("batch-1", many(500))
    assert own.is_free(many(501)[-1])
    await asyncio.wait_for(holds(own), 5)
