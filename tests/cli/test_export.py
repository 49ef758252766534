"""`askance export`: a file beside the run, or where it is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.evals.numbers import run_of


def test_a_run_is_written_and_where_is_said(askance: Command, own_place: Path) -> None:
    run_of(count=3, out="runs/one")

    done = askance("export", "runs/one", "--to", "csv")
    there = askance("export", "runs/one", "--to", "jsonl", "-o", "x")

    assert (done.code, done.out, there.out) == (0, "one.csv: 3 answers\n", "x: 3 answers\n")
    assert len(Path("one.csv").read_text(encoding="utf-8").splitlines()) == 4
    assert len(Path("x").read_text(encoding="utf-8").splitlines()) == 3


def test_an_unknown_form_is_refused(askance: Command, own_place: Path) -> None:
    run_of(count=3, out="run")

    assert askance("export", "run", "--to", "xls").code == 2


def test_a_run_over_pictures_is_written_a_row_a_picture(askance: Command, vlm: str, ads: list[str]) -> None:
    askance("run", "verbalize", *ads, "--vlm", vlm, "--out", "seen")

    done = [askance("export", "seen", "--to", form) for form in ("csv", "xlsx", "parquet")]

    assert [(each.code, each.out) for each in done] == [
        (0, f"seen.{form}: 3 pictures\n") for form in ("csv", "xlsx", "parquet")
    ]
    head, *rows = Path("seen.csv").read_text(encoding="utf-8").splitlines()
    assert head.startswith("image,outcome,reason,objects,scene_text,narration,unusual,description,")
    assert [row.partition(",")[0] for row in rows] == sorted(ads)


TASKS: dict[str, list[str]] = {
    "blame": ["blame", "seen"],
    "score": ["eval", "score", "seen"],
    "pack": ["pack", "seen", "-o", "seen.pack"],
}


@pytest.mark.parametrize("command", TASKS.values(), ids=TASKS)
def test_what_takes_a_task_says_that_pictures_have_none(
    askance: Command, vlm: str, ads: list[str], command: list[str]
) -> None:
    askance("run", "verbalize", ads[0], "--vlm", vlm, "--out", "seen")

    done = askance(*command)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("askance: The run 'seen' is of pictures that nobody scores")
    assert "\n  → " in done.err
