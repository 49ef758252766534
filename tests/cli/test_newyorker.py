"""`askance newyorker`: the leaderboard's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.evals.newyorker import LEADERBOARD
from tests.cli.command import Command
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.recorded import IDS
from tests.evals.newyorker.test_submission import CHOSEN, made, samples_of


def test_submit_writes_a_letter_for_each_id(askance: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    done = askance("newyorker", "submit", "run")
    assert (done.code, done.out) == (0, "matching_predictions.json: 5 answers\n")
    assert json.loads(Path("matching_predictions.json").read_text(encoding="utf-8")) == dict(
        zip(IDS, "ABCDE", strict=True)
    )
    done = askance("newyorker", "submit", "run", "-o", "mine/all.json")
    assert (done.code, Path("mine/all.json").is_file()) == (0, True)


def test_submit_says_how_many_answers_a_rule_chose(askance: Command, tmp_path: Path) -> None:
    made(tmp_path / "run", answers={**CHOSEN, IDS[1]: None})
    run, out = str(tmp_path / "run"), str(tmp_path / "p.json")
    done = askance("newyorker", "submit", run, "-o", out)
    assert (done.code, done.out) == (2, "")
    assert "1 sample has no answer" in done.err
    assert "--missing random" in done.err
    assert not Path(out).exists()
    done = askance("newyorker", "submit", run, "-o", out, "--missing", "last")
    assert (done.code, done.out) == (0, f"{out}: 5 answers, 1 of them the last option\n")
    done = askance("newyorker", "submit", run, "-o", out, "--missing", "random", "--seed", "3")
    assert (done.code, done.out) == (0, f"{out}: 5 answers, 1 of them drawn at random\n")


def test_submit_holds_the_ids_against_the_data(askance: Command, tmp_path: Path) -> None:
    folder = cartoons.leaderboard(tmp_path / "data")
    samples = samples_of(folder, LEADERBOARD)
    made(tmp_path / "run", samples=samples, answers={each.id: [1] for each in samples})
    made(tmp_path / "short", samples=samples[1:], answers={each.id: [1] for each in samples})
    words = ("--data", str(folder), "-o", str(tmp_path / "p.json"))
    done = askance("newyorker", "submit", str(tmp_path / "short"), *words)
    assert (done.code, "lacks 1 of the 4 test items" in done.err) == (2, True)
    done = askance("newyorker", "submit", str(tmp_path / "run"), *words)
    assert (done.code, done.out) == (0, f"{tmp_path / 'p.json'}: 4 answers\n")


def test_what_is_no_run_is_refused(askance: Command, tmp_path: Path) -> None:
    done = askance("newyorker", "submit", str(tmp_path))
    assert done.code == 2
    assert "holds no run" in done.err
