"""A disk that is full: what cannot be written is named, nothing half is left, and what was there stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.evals import evaluate
from tests.cli.command import Command
from tests.evals.odd import Odd, chooser, write_pictures
from tests.faults.run import room


@pytest.fixture(autouse=True)
def runs(own_place: Path) -> None:
    pictures = write_pictures(own_place / "pictures")
    for name, right in (("a", 1), ("b", 2)):
        evaluate(Odd(data=pictures, vlm=chooser(right)), out=name)


WRITTEN = {
    "report": (["report", "a"], "report.html"),
    "pictures beside it": (["report", "a", "--images", "pictures", "--beside", "-o", "b.html"], "b.html"),
    "comparison": (["compare", "a", "b", "--html", "c.html"], "c.html"),
    "csv": (["export", "a", "--to", "csv"], "a.csv"),
    "jsonl": (["export", "a", "--to", "jsonl"], "a.jsonl"),
    "inspect": (["export", "a", "--to", "inspect"], "a.eval"),
    "scores": (["eval", "score", "a"], "a/scores.jsonl"),
    "pack": (["pack", "a"], "runs.pack"),
}


@pytest.mark.parametrize(("arguments", "name"), WRITTEN.values(), ids=WRITTEN)
def test_what_cannot_be_written_is_named(arguments: list[str], name: str, askance: Command) -> None:
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    with room(300):
        done = askance(*arguments)

    assert (done.code, done.out) == (3, "")
    assert f"{name!r} cannot be written: File too large.\n  → Make room on the disk, " in done.err
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_a_run_that_finds_no_room_goes_on_later(askance: Command) -> None:
    """What was answered is on the disk, and the same command makes the rest."""
    Path("own.py").write_text(
        "from askance.evals import Sample, Task, right_or_wrong\n"
        "class Long(Task):\n"
        "    name = 'own/long'\n"
        "    def samples(self):\n"
        "        return [Sample(id=str(each), target=True) for each in range(20)]\n"
        "    def solver(self):\n"
        "        return lambda sample: 'x' * 200\n"
        "    def scorer(self):\n"
        "        return right_or_wrong()\n",
        encoding="utf-8",
    )
    with room(3000):
        broken = askance("eval", "run", "own.py", "--out", "long")
    whole = askance("eval", "run", "own.py", "--out", "long")

    assert broken.code == 3
    assert broken.err == (
        "askance: 'long/samples.jsonl' cannot be written: File too large.\n  → Make room on the disk, or check the "
        "rights to the folder; then run the same command again.\n"
    )
    assert (whole.code, "20 samples: 20 answered." in whole.out) == (0, True)
