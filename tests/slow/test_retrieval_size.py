"""An index of 200,000 statements by the command: killed, gone on with, and searched; what that takes is measured."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.slow.commands import ENDS_WITHIN, Place
from tests.slow.environments import checked
from tests.slow.many_statements import many_ads

pytestmark = pytest.mark.slow(group="retrieval")

COUNT = 200_000
SIZE = 384
"""Numbers of a vector."""
ROW = 32 + 4 + 2 * SIZE
"""Bytes of a vector in the file: its key, its checksum, and 16 bits for each number."""
BLOCK = 1024
"""Texts that are embedded before their vectors are written: those that a kill may cost."""
KILLED_AT = (1, 0.6 * COUNT)
"""Vectors in the file when the build is killed; the first time with the first of them."""
MOST_MEMORY = 1.5e9
"""Bytes that a build may hold, everything included."""
MOST_SECONDS = 0.1
"""That a search may take."""
MOST_BUSY = 1.0
"""Seconds that it may take where other tests keep the machine busy."""
QUERIES = 21
"""Searches of each way; the first one loads the index."""


@dataclass(kw_only=True)
class Built:
    """An index that was killed while it was built, and what came of it."""

    place: Place
    python: Path
    words: tuple[str, ...]
    """The command that builds it."""
    texts: list[str]
    planned: list[int] = field(default_factory=list[int])
    """Vectors that a plan says are to be made: at first, after each kill, and at the end."""
    written: list[int] = field(default_factory=list[int])
    """Vectors in the file at the same times."""
    peaks: list[float] = field(default_factory=list[float])
    """Bytes that each build held at most."""
    seconds: list[float] = field(default_factory=list[float])
    """That each build took."""

    @property
    def folder(self) -> Path:
        return self.place.folder / "big.index"

    def rows(self) -> int:
        """Vectors in the file."""
        for path in self.folder.glob("vectors/*.rows"):
            with path.open("rb") as file:
                return (path.stat().st_size - len(file.readline())) // ROW
        return 0

    def look(self) -> None:
        """Notes what is there, and what a plan says of it."""
        plan = self.place.run_by(self.python, [*self.words, "--plan", "--json"], {})
        assert plan.code == 0, plan.err
        self.planned.append(plan.lines[0]["vectors"])
        self.written.append(self.rows())

    def build(self, *, until: float | None = None) -> int:
        """Builds it, and kills the build as soon as so many vectors are written; the exit code."""
        started = time.monotonic()
        process = self.place.begin_by(self.python, self.words, {"OMP_NUM_THREADS": "1"}, terminal=subprocess.DEVNULL)
        while until is not None and self.rows() < until:
            assert process.poll() is None, "The build ended before it could be killed."
            assert time.monotonic() < started + ENDS_WITHIN
            time.sleep(0.01)
        if until is not None:
            process.send_signal(signal.SIGKILL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.peaks.append(used.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
        self.seconds.append(time.monotonic() - started)
        return process.returncode


@pytest.fixture(scope="module")
def built(retrieval_python: Path, static: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """An index that was killed in two places and built to the end."""
    place = Place(folder=tmp_path_factory.mktemp("size"))
    texts = many_ads(place.folder / "ads", COUNT)
    words = ("index", "build", "big.index", "--data", "ads", "--embedder", f"st:{static}")
    built = Built(place=place, python=retrieval_python, words=words, texts=texts)
    built.look()
    for until in KILLED_AT:
        assert built.build(until=until) == -signal.SIGKILL
        built.look()
    assert built.build() == 0
    built.look()
    sys.stdout.write(
        f"\n{COUNT:,} statements: vectors after each kill {built.written}, "
        f"peaks {[round(peak / 1e6) for peak in built.peaks]} MB, {[round(each) for each in built.seconds]} s\n"
    )
    return built


def test_a_build_that_is_killed_embeds_each_text_once_but_those_in_flight(built: Built) -> None:
    first, *killed, last = built.written

    assert (first, last) == (0, COUNT)
    assert built.planned == [COUNT - written for written in built.written]
    for until, written in zip(KILLED_AT, killed, strict=True):
        assert until <= written <= until + 4 * BLOCK  # a kill takes a moment, in which more may be written
    (file,) = built.folder.glob("vectors/*.rows")
    with file.open("rb") as opened:
        assert file.stat().st_size == len(opened.readline()) + COUNT * ROW  # no vector stands there twice


def test_no_build_holds_more_memory_than_it_may(built: Built) -> None:
    assert max(built.peaks) <= MOST_MEMORY


def test_the_index_has_every_statement_and_is_sound(built: Built) -> None:
    stats = built.place.run_by(built.python, ["index", "stats", "big.index", "--json"], {})

    assert stats.code == 0, stats.err
    assert stats.lines[0]["entries"] == COUNT
    lines = (built.folder / "statements.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["text"] for line in lines} == {*built.texts}


SEARCHES = """\
import asyncio, json, sys, time
from askance.models import Engine
from askance.replay import open_records
from askance.retrieval import retriever
folder, encoder, asked = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

async def main():
    found = {}
    with open_records("records") as records:
        for how, queries in asked.items():
            find = retriever(folder, how=how, k=100, embedder=encoder, engine=Engine(records=records))
            hits, seconds, cpu = [], [], []
            for query in queries:
                start, spent = time.perf_counter(), time.process_time()
                some = await find.search(query)
                seconds.append(time.perf_counter() - start)
                cpu.append(time.process_time() - spent)
                hits.append([hit.text for hit in some])
            found[how] = {"hits": hits, "seconds": seconds[1:], "cpu": cpu[1:]}
    print(json.dumps(found))

asyncio.run(main())
"""


def test_a_search_is_quick_and_finds_the_statement_itself(built: Built, static: Path, tmp_path: Path) -> None:
    asked = {how: built.texts[first :: COUNT // QUERIES] for first, how in enumerate(("dense", "bm25", "hybrid"))}
    command = [str(built.python), "-c", SEARCHES, str(built.folder), f"st:{static}", json.dumps(asked)]
    found: dict[str, Any] = json.loads(checked(command, folder=tmp_path).splitlines()[-1])
    for how, each in found.items():
        seconds, cpu = (1000 * median(each[name]) for name in ("seconds", "cpu"))
        sys.stdout.write(f"\n{how}: {seconds:.0f} ms a search of {COUNT:,}, {cpu:.0f} ms of CPU\n")

    for how, each in found.items():
        assert all(query in hits and len(hits) == 100 for query, hits in zip(asked[how], each["hits"], strict=True))
        assert min(each["cpu"]) <= MOST_SECONDS
        assert median(each["seconds"]) <= MOST_BUSY
    assert [hits[0] for hits in found["dense"]["hits"]] == asked["dense"]
