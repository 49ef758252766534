"""One index of 20,000 statements in three stores: a file, LanceDB, and a real Chroma server on the loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.slow.conftest import Switch
from tests.slow.environments import HERE, ROOT

pytestmark = pytest.mark.slow(group="retrieval")

COUNT = 20_000
STORES = ("file", "lance", "chroma")
ROUNDED = 1e-6
"""What a cosine of 384 numbers may be off by in 32 bits."""


@pytest.fixture(scope="module")
def steps(
    retrieval_python: Path, static: Path, chroma_switch: Switch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Any]]:
    """What `search_stores.py` says: with the server on, off, and on again."""
    folder = tmp_path_factory.mktemp("stores")
    words = [HERE / "search_stores.py", f"st:{static}", chroma_switch.on().url, COUNT]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "ANONYMIZED_TELEMETRY": "False"}
    with subprocess.Popen(
        [str(retrieval_python), *map(str, words)],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield list(_steps(process, chroma_switch))
        finally:
            process.kill()


def _steps(process: subprocess.Popen[str], server: Switch) -> Iterator[Any]:
    assert process.stdout is not None
    assert process.stdin is not None
    for after in (server.off, server.on, server.off):
        said = process.stdout.readline()
        assert said, "The script ended early."
        yield json.loads(said)
        after()
        process.stdin.write("go on\n")
        process.stdin.flush()


def test_three_stores_give_the_same_first_hundred(steps: list[Any]) -> None:
    said = steps[0]
    for name in STORES:
        seconds = median(hits["seconds"] for hits in said[name]["hits"])
        sys.stdout.write(f"\n{name}: built in {said[name]['build']:.0f} s, a search takes {1000 * seconds:.0f} ms\n")
    same = 0
    for exact, lance, chroma in zip(*(said[name]["hits"] for name in STORES), strict=True):
        assert (lance["ids"], lance["scores"]) == (exact["ids"], exact["scores"])
        cosines = dict(zip(exact["ids"], exact["scores"], strict=True))
        # Chroma compares in 32 bits: what it puts elsewhere has a cosine that these cannot tell from its neighbour's.
        assert [cosines.get(each, 0) for each in chroma["ids"][:100]] == pytest.approx(
            exact["scores"][:100], abs=ROUNDED
        )
        same += chroma["ids"][:100] == exact["ids"][:100]
    sys.stdout.write(f"Chroma has the very same order for {same} of {len(said['file']['hits'])} queries.\n")
    assert [said[name]["wrong"] for name in STORES] == [[], [], []]


def test_a_server_that_is_gone_is_one_message(steps: list[Any]) -> None:
    known, fresh = steps[1]
    assert known["ids"] == steps[0]["chroma"]["hits"][0]["ids"]  # on record
    assert fresh["error"] == "StoreError"
    assert fresh["message"].startswith("The vector store ChromaVectorStore failed: ")
    assert fresh["message"].endswith("what is on record is replayed without it.")
    assert len(fresh["message"].splitlines()) == 1


def test_a_server_that_is_back_is_searched_again(steps: list[Any]) -> None:
    known, fresh = steps[2]
    assert known["ids"] == steps[0]["chroma"]["hits"][0]["ids"]
    assert len(fresh["ids"]) == 120
