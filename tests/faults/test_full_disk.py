"""A disk that is full: the run goes on, and the store stays readable."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from askance.replay import Store
from tests.faults.run import CALLS, Run, answer, asked_twice, outcomes
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


async def test_a_full_disk_loses_no_answer_and_leaves_the_store_readable(
    small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = small / "store"
    with FakeEndpoint(lambda seen: answer(seen.json)) as endpoint, caplog.at_level(logging.WARNING, logger="askance"):
        lines = await Run(url=endpoint.url, store=store, pictures=30).lines()
        assert outcomes(lines) == ["answered"] * 30
        assert "database or disk is full" in caplog.text
        assert caplog.text.count("Answers are not recorded") == 1
        with Store.open(store, read_only=True) as records:
            kept = sum(1 for _ in records.of_kind("chat"))
        assert 0 < kept < 30 * CALLS
        made = len(endpoint.requests)
        again = await Run(url=endpoint.url, store=store, pictures=30).lines()
    assert outcomes(again) == ["answered"] * 30
    assert len(endpoint.requests) - made == asked_twice(endpoint) <= 30 * CALLS - kept
