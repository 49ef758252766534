"""Batches beside other runs on the same records: whoever asks, and whoever is killed, each request is made once."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.replay.leases import EXPIRY, StoreLeases
from tests.batch_client import JsonObject, Run, draw
from tests.batch_server import BatchServer, Serve, Step, When
from tests.conftest import SERIAL
from tests.scripted import ANSWERS


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    return draw(tmp_path, 3)


def asked(server: BatchServer) -> Counter[str]:
    """How often each request was made, in a batch or online."""
    files = [made.form["input_file_id"] for made in server.batches.values()]
    bodies = [*(line["body"] for file in files for line in server.lines(file)), *server.chats]
    own = [body for body in bodies if body["response_format"].get("json_schema", {}).get("name") in ANSWERS]
    return Counter(json.dumps(body, sort_keys=True) for body in own)


def ended(*processes: multiprocessing.Process) -> list[int | None]:
    """How the processes ended."""
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], bool]:
    """Waits until runs of this process have been refused the leases of so many calls; whether they have."""
    keys, told, tried = set[str](), threading.Condition(), StoreLeases._try_take  # pyright: ignore[reportPrivateUsage]

    def watched(self: StoreLeases, worker: Any, key: str, *more: Any) -> bool:
        taken = tried(self, worker, key, *more)
        if not taken:
            with told:
                keys.add(key)
                told.notify_all()
        return taken

    def wait(count: int) -> bool:
        with told:
            return told.wait_for(lambda: len(keys) >= count, 60)

    monkeypatch.setattr(StoreLeases, "_try_take", watched)
    return wait


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


class Beside:
    """Begins something else at the first request of a kind, which takes until that has to wait for it."""

    def __init__(self, step: Step, begin: Callable[[], Future[list[JsonObject]]], wait: Callable[[], bool]) -> None:
        self._step: Step | None = step
        self._begin, self._wait = begin, wait
        self._begun: Future[list[JsonObject]] | None = None
        self._waits = False

    def __call__(self, step: Step, when: When) -> None:
        if (step, when) == (self._step, "before"):
            self._step = None
            self._begun = self._begin()
            self._waits = self._wait()

    @property
    def lines(self) -> list[JsonObject]:
        """What came out of it."""
        assert self._begun is not None
        assert self._waits
        return self._begun.result(60)


@pytest.mark.parametrize("step", ["upload", "create", "poll"])
def test_two_jobs_ask_for_nothing_twice(
    serve: Serve,
    tmp_path: Path,
    pictures: list[str],
    step: Step,
    pool: ThreadPoolExecutor,
    refused: Callable[[int], bool],
) -> None:
    with serve() as server:
        one = Run(server.url, tmp_path, pictures[:2])
        two = replace(one, pictures=pictures[1:], folder="others")
        # Of the picture that both have, four calls are asked first.
        server.fault = beside = Beside(step, lambda: pool.submit(two.in_batches), lambda: refused(4))

        lines = (one.in_batches(), beside.lines)
        assert (len(asked(server)), set(asked(server).values())) == (21, {1})
        assert lines == (one.online(), two.online())


def test_two_jobs_that_begin_together_ask_for_nothing_twice(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve() as server:
        runs = [Run(server.url, tmp_path, pictures, folder=name) for name in ("one", "two", "three")]

        assert ended(*[run.alone() for run in runs]) == [0, 0, 0]
        assert (len(asked(server)), set(asked(server).values())) == (21, {1})
        assert runs[0].lines == runs[1].lines == runs[2].lines == runs[0].online()


@pytest.mark.parametrize("step", ["upload", "create"])
def test_an_online_run_beside_a_job_asks_for_nothing_twice(
    serve: Serve,
    tmp_path: Path,
    pictures: list[str],
    step: Step,
    pool: ThreadPoolExecutor,
    refused: Callable[[int], bool],
) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures)
        server.fault = beside = Beside(step, lambda: pool.submit(run.online, "store"), lambda: refused(12))

        assert run.in_batches() == beside.lines
        assert (len(asked(server)), set(asked(server).values())) == (21, {1})


def test_parts_that_wait_for_room_are_nobody_elses(
    serve: Serve,
    tmp_path: Path,
    pictures: list[str],
    pool: ThreadPoolExecutor,
    refused: Callable[[int], bool],
) -> None:
    with serve(room=4) as server:
        run = Run(server.url, tmp_path, pictures, policy=replace(Run.policy, most_calls=4))
        server.fault = beside = Beside("content", lambda: pool.submit(run.online, "store"), lambda: refused(4))

        assert run.in_batches() == beside.lines
        reached = sum((Counter(made.done) for made in server.batches.values()), Counter[str]())
        assert set(reached.values()) == {1}
        assert (
            len(reached)
            + sum(body["response_format"].get("json_schema", {}).get("name") in ANSWERS for body in server.chats)
            == 21
        )


KILLED = {
    "while it is queued": (2, "before"),
    "when it is queued": (2, "after"),
    "in the upload": (3, "after"),
    "after the upload": (4, "after"),
    "before the batch is asked for": (5, "after"),
}
"""The line of the journal at which the process dies: begun, spooled, uploading, uploaded, creating."""


@SERIAL
@pytest.mark.parametrize("kill", KILLED.values(), ids=KILLED)
def test_a_job_that_was_killed_before_its_batch_was_made_blocks_nobody(
    serve: Serve, tmp_path: Path, pictures: list[str], kill: tuple[int, str]
) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures)
        assert ended(run.killed_at(*kill).alone()) == [-signal.SIGKILL]
        start = time.monotonic()
        lines = run.online("store")

        assert time.monotonic() - start < EXPIRY
        assert (run.in_batches(), server.batches) == (lines, {})
        assert (len(asked(server)), set(asked(server).values())) == (21, {1})


def test_a_job_whose_folder_was_removed_blocks_nobody(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures[:1])
        assert ended(run.killed_at(6, "after").alone()) == [-signal.SIGKILL]
        shutil.rmtree(tmp_path / "batches")

        assert run.in_batches() == run.online()
        assert len(server.batches) == 4
