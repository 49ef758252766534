from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from askance.models import holders, leases
from askance.models.leases import FOLDER, Leases

KEY = "ab" * 32

HOLDS = """
import asyncio, sys
from pathlib import Path
from askance.models.leases import Leases

async def main():
    async with Leases(Path(sys.argv[1])).lease(sys.argv[2], lambda: False):
        print("held", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def never() -> bool:
    return False


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


async def holds(own: Leases, key: str = KEY, done: Callable[[], bool] = never) -> None:
    async with own.lease(key, done):
        pass


async def test_a_lease_is_held_by_one(tmp_path: Path) -> None:
    one, two, inside = Leases(tmp_path), Leases(tmp_path), 0

    async def call(own: Leases) -> None:
        nonlocal inside
        async with own.lease(KEY, never):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.wait_for(asyncio.gather(*(call(own) for own in (one, two, one, two))), 10)
    one.close()
    two.close()
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == []


async def test_different_keys_wait_for_nobody(tmp_path: Path) -> None:
    one, two = Leases(tmp_path), Leases(tmp_path)
    async with one.lease("a", never), two.lease("b", never):
        pass
    one.close()
    two.close()


async def test_a_live_holder_is_waited_for(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    own = Leases(tmp_path)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(holds(own), 0.5)
    own.close()


async def test_the_wait_ends_with_the_answer(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    own, looks = Leases(tmp_path), iter([False, False, True])
    async with asyncio.timeout(5), own.lease(KEY, lambda: next(looks)):
        assert holder.poll() is None
    assert (tmp_path / FOLDER / KEY).exists(), "it is still the other one's"
    own.close()


async def test_a_killed_holder_blocks_nobody(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    own, start = Leases(tmp_path), time.monotonic()
    await asyncio.wait_for(holds(own), 5)
    assert time.monotonic() - start < 1
    own.close()


async def test_a_stopped_holder_counts_for_nothing_after_a_while(
    tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "EXPIRY", 0.3)
    os.kill(holder.pid, signal.SIGSTOP)
    own, start = Leases(tmp_path), time.monotonic()
    await asyncio.wait_for(holds(own), 5)
    assert time.monotonic() - start > 0.3
    own.close()


async def test_a_holder_that_gives_signs_of_life_is_not_robbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "EXPIRY", 0.4)
    monkeypatch.setattr(holders, "BEAT", 0.05)
    monkeypatch.setattr(time, "time", lambda: 0.0)  # whatever the wall's clock says
    one, two = Leases(tmp_path), Leases(tmp_path)
    async with one.lease(KEY, never):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(holds(two), 1.5)
    one.close()
    two.close()


async def test_many_that_wait_for_a_dead_holder_follow_each_other(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    holder.kill()
    holder.wait()
    inside = most = 0

    async def call(own: Leases) -> None:
        nonlocal inside, most
        async with own.lease(KEY, never):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.005)
            inside -= 1

    crowd = [Leases(tmp_path) for _ in range(8)]
    await asyncio.wait_for(asyncio.gather(*(call(own) for own in crowd)), 20)
    for own in crowd:
        own.close()
    assert most == 1


async def test_a_batch_holds_its_keys_without_a_process(tmp_path: Path) -> None:
    Leases(tmp_path).entrust("batch-1", [KEY, "cd" * 32])
    own = Leases(tmp_path)
    await asyncio.wait_for(holds(own, "ef" * 32), 5)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(holds(own), 0.3)
    Leases(tmp_path).let_go("batch-1")
    await asyncio.wait_for(holds(own), 5)
    own.close()


AGES = {"an hour short of it": (25.0, True), "an hour past it": (27.0, False)}


@pytest.mark.parametrize(("hours", "held"), AGES.values(), ids=AGES)
def test_a_batch_that_nobody_comes_back_for_holds_its_leases_for_a_day(
    tmp_path: Path, hours: float, held: bool
) -> None:
    own, then = Leases(tmp_path), time.time() - hours * 3600
    own.entrust("batch-1", [KEY])
    os.utime(tmp_path / FOLDER / "batches" / "batch-1", (then, then))

    assert (own.free(KEY), own.take(KEY)) == (not held, not held)
    own.close()


def test_a_batch_whose_state_is_gone_holds_nothing(tmp_path: Path) -> None:
    own, kept = Leases(tmp_path), tmp_path / "calls"
    kept.touch()
    own.entrust("batch-1", [KEY], kept=kept)

    assert (own.take(KEY), own.take(KEY, of="batch-1")) == (False, True)
    own.release(KEY)
    kept.unlink()
    assert own.take(KEY)
    own.close()


def test_a_lease_without_a_wait(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    own, other = Leases(tmp_path), "cd" * 32
    assert [own.take(KEY), own.take(other), own.take(other)] == [False, True, False]
    assert [own.owns(KEY), own.owns(other), own.free(KEY)] == [False, True, False]
    assert [own.release(KEY), own.release(other), own.free(other)] == [False, True, True]
    holder.kill()
    holder.wait()
    assert own.free(KEY)
    assert own.take(KEY)
    own.close()


async def test_a_handover_to_a_batch_leaves_no_gap(tmp_path: Path) -> None:
    """Who waits for a lease does not get it in the moment in which it passes to the batch."""
    one, two = Leases(tmp_path), Leases(tmp_path)
    assert one.take(KEY)
    waiting = asyncio.ensure_future(holds(two))
    await asyncio.sleep(0.1)
    one.entrust("batch-1", [KEY])
    one.release(KEY)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waiting, 0.5)
    one.close()
    two.close()


def test_more_leases_than_a_file_has_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def few(source: str, target: str) -> None:
        if Path(source).stat().st_nlink > 3:
            raise OSError(errno.EMLINK, "Too many links")
        link(source, target)

    monkeypatch.setattr(os, "link", few)
    own, keys = Leases(tmp_path), [f"{number:064x}" for number in range(10)]

    assert all(own.take(key) for key in keys)
    assert all(own.owns(key) for key in keys)
    assert not any(Leases(tmp_path).take(key) for key in keys)
    own.close()
    assert all(Leases(tmp_path).free(key) for key in keys)


async def test_a_folder_that_cannot_be_used_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    await asyncio.wait_for(asyncio.gather(*(holds(Leases(tmp_path)) for _ in range(3))), 5)


async def test_what_dead_holders_left_is_cleared_away(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    own = Leases(tmp_path)
    async with own.lease("other", never):
        assert len(list((tmp_path / FOLDER).glob("*.holder"))) == 1
    own.close()
