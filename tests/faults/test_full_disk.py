"""A disk that is full: the run goes on, and the store stays readable."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from askance.replay import open_records
from tests.faults.run import CALLS, Run, answer, asked_twice, ended_well, room
from tests.servers import FakeEndpoint


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 kB."""
    place = tmp_path / "small"
    place.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes an administrator")
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no small file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


async def loses_nothing(
    store: Path, full: AbstractContextManager[None], caplog: pytest.LogCaptureFixture, *, mended: bool
) -> None:
    """Checks a run whose records have no room after a while, and the same run once more, with room or without."""
    with FakeEndpoint(lambda seen: answer(seen.json)) as endpoint, caplog.at_level(logging.WARNING, logger="askance"):
        run = Run(url=endpoint.url, store=store, pictures=30)
        with full:
            lines = await run.lines()
        await ended_well(run, endpoint, lines, twice=0, kept=False)
        assert caplog.text.count("Answers are not recorded") == 1
        with open_records(store, read_only=True) as records:
            kept = sum(1 for _ in records.of_kind("chat"))
        assert 0 < kept < 30 * CALLS
        made = len(endpoint.requests)
        again = await run.lines()
    assert len(endpoint.requests) - made == asked_twice(endpoint)
    await ended_well(run, endpoint, again, twice=30 * CALLS - kept, kept=mended)


async def test_a_full_disk_loses_no_answer_and_leaves_the_store_readable(
    small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await loses_nothing(small / "store", nullcontext(), caplog, mended=False)
    assert "database or disk is full" in caplog.text


async def test_a_file_that_may_not_grow_is_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await loses_nothing(tmp_path / "store", room(300_000), caplog, mended=True)
    assert "disk I/O error" in caplog.text
