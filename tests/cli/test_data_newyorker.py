"""`askance data check newyorker`: what is said of a folder."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import Command
from tests.evals.newyorker import cartoons

TOLD = """\
data

Files
  repository   explanation  fold 0, 1, 2, 3, 4
  repository      matching  fold 0, 1, 2, 3, 4
  leaderboard     matching
  repository       ranking  fold 0, 1, 2, 3, 4
  leaderboard      ranking

Found
  cartoons      15  of 704 that are published
  described     15  of 704 that are published
  pictures      14  of 704 that are published
  explanations  15  of 651 that are published

Items of a fold, means over the folds
  matching, train          27  of 1,600
  matching, validation      9  of 538
  matching, test            9  of 538
  ranking, train           25  of 1,600
  ranking, validation       8  of 523
  ranking, test             8  of 523
  explanation, train        9  of 391
  explanation, validation   3  of 130
  explanation, test         3  of 130

Items that fold 0 tests
  matching     9  of 528
  ranking      9  of 513
  explanation  3  of 131

Items of the leaderboard
  matching  4  of 830
  ranking   4  of 664

Captions of matching, in each split of each fold
  right once, wrong four times  225  of 225

To know
  A finalist of contest 592 is NaN, and left out.
  The files of the repository have no ids: those of items are made up from task, contest and
  captions, and no file for the official scorer can be written.

To mend
  1 cartoon has no picture: contest 5.
"""


def test_a_folder_is_told_for_a_person(askance: Command, own_place: Path) -> None:
    folder = cartoons.leaderboard(cartoons.repository(own_place / "data"))
    (folder / "all_contest_images" / "5.jpeg").unlink()

    done = askance("data", "check", "newyorker", "data")

    assert (done.code, done.out, done.err) == (1, TOLD, "")


def test_a_folder_is_told_as_json(askance: Command, own_place: Path) -> None:
    cartoons.parquet(own_place / "data", tasks=["matching"], folds=[1])

    done = askance("data", "check", "newyorker", "data", "--json")
    told = json.loads(done.out)

    assert done.code == 0
    assert (told["sound"], told["problems"]) == (True, [])
    assert told["sources"] == [{"task": "matching", "fold": 1, "kind": "parquet", "home": "data/matching_1"}]
    assert told["items"]["matching"]["test"] == {"found": 9, "published": 538}
    assert told["notes"] == ["Of matching there are the folds 1; published figures are means over five."]


def test_descriptions_alone_say_what_makes_tasks(askance: Command, own_place: Path) -> None:
    cartoons.raw(own_place / "data")

    done = askance("data", "check", "newyorker", "data")

    assert done.code == 0
    assert "`askance newyorker build` makes" in done.out
