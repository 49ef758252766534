"""Who may ask for the calls of a part: what is lost to another run while this one seemed to be gone is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from askance.models.batch.batch_job import BatchJob, BatchPart
from askance.models.batch.reservations import JobLeases
from askance.models.recorder import Recorder
from askance.replay import Leases, open_records
from askance.replay import leases as table
from askance.replay.leases import StoreLeases

KEYS = ["ab" * 32, "cd" * 32]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[BatchJob]:
    with BatchJob(tmp_path / "batches") as job:
        yield job


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(lambda: open_records(tmp_path / "store"), mode="auto", retry=frozenset())
    yield recorder
    recorder.flush()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Leases]:
    """Another run on the same records."""
    leases = StoreLeases(tmp_path / "store")
    yield leases
    leases.close()


@pytest.fixture
def part(job: BatchJob) -> BatchPart:
    part = BatchPart("0" * 32, "m", 2, 0)
    job.calls_file(part.id).write_text("".join(json.dumps({"key": key}) + "\n" for key in KEYS))
    return part


def spooled(job: BatchJob, recorder: Recorder, part: BatchPart) -> JobLeases:
    leases = JobLeases(job, recorder)
    assert all(leases.take(key) for key in KEYS)
    leases.spooled(part.id)
    return leases


def test_a_part_goes_from_the_process_to_its_batch_and_back(
    job: BatchJob, recorder: Recorder, other: Leases, part: BatchPart
) -> None:
    leases, free = spooled(job, recorder, part), list[bool]()
    for step in (leases.secure, leases.assign_to_batch, leases.secure, leases.assign_to_batch):
        assert step(part)
        free += map(other.is_free, KEYS)
    leases.release_batch(part)

    assert (free, [other.is_free(key) for key in KEYS]) == ([False] * 8, [True] * 2)


@pytest.mark.parametrize("step", ["secure", "assign_to_batch"])
def test_what_was_taken_over_is_not_asked_for(
    job: BatchJob, recorder: Recorder, other: Leases, part: BatchPart, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    leases = spooled(job, recorder, part)
    assert not other.take(KEYS[1])
    with monkeypatch.context() as later:
        later.setattr(table, "EXPIRY", 0.0)  # as of a process that gave no sign of life
        assert other.take(KEYS[1])

    assert not getattr(leases, step)(part)
    leases.release_batch(part)
    assert [other.is_free(KEYS[0]), other.owns(KEYS[1])] == [True, True]


def test_a_part_that_an_earlier_process_left_is_claimed_whole_or_not_at_all(
    job: BatchJob, recorder: Recorder, other: Leases, part: BatchPart
) -> None:
    leases = JobLeases(job, recorder)
    assert other.take(KEYS[1])
    assert (leases.secure(part), other.is_free(KEYS[0])) == (False, True)
    other.release(KEYS[1])
    assert (leases.secure(part), other.is_free(KEYS[0])) == (True, False)


def test_a_call_whose_lease_a_batch_holds_is_left_to_it(job: BatchJob, recorder: Recorder, other: Leases) -> None:
    leases = JobLeases(job, recorder)
    other.assign_to_batch("another", KEYS[:1])

    assert [leases.take(key) for key in KEYS] == [False, True]
    assert [leases.available(key) for key in KEYS] == [False, False]
    other.release_batch("another")
    assert leases.available(KEYS[0])
