"""`askance export`: a file beside the run, or where it is wanted."""

from __future__ import annotations

from pathlib import Path

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
