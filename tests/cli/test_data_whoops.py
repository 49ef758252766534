"""`askance data check whoops`: what is said of a folder."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import Command
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS

TOLD = """\
data

Files
  csv  whoops_dataset.csv

Found
  images           5  of 500 that are published
  pictures         4  of 500 that are published
  captions        25  of 2,500 that are published
  explanations    25  of 2,500 that are published
  underspecified  25  of 2,500 that are published
  questions       10  of 3,362 that are published
  pairs            3  of 100 that are published

Commonsense categories
  Physical rules      2
  Nutrition mismatch  1
  Biological rules    1
  Art knowledge       1

To know
  5 images, and 500 are published.
  25 captions, and 2,500 are published.
  25 explanations, and 2,500 are published.
  25 underspecified, and 2,500 are published.
  10 questions, and 3,362 are published.

To mend
  1 picture is missing, 'w04-starry-cup'.
"""


def test_a_folder_is_told_for_a_person(askance: Command, own_place: Path) -> None:
    folder = files.first_release(own_place / "data")
    files.pairs(folder / "pairs")
    (folder / "whoops_images" / f"{IDS[4]}.png").unlink()

    done = askance("data", "check", "whoops", "data")

    assert (done.code, done.out, done.err) == (1, TOLD, "")


def test_a_folder_is_told_as_json(askance: Command, own_place: Path) -> None:
    files.parquet(own_place / "data")

    done = askance("data", "check", "whoops", "data", "--json")
    told = json.loads(done.out)

    assert done.code == 0
    assert (told["layout"], told["sound"], told["problems"]) == ("arrow", True, [])
    assert told["files"] == ["data/test-00000-of-00002.parquet", "data/test-00001-of-00002.parquet"]
    assert told["counts"]["questions"] == {"found": 10, "published": 3362}
    assert any("no pairs of weird and normal images" in text for text in told["notes"])
