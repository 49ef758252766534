"""`askance newyorker`: the leaderboard's file, and tasks of your own; `askance eval run --fold`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.evals import Run
from askance.evals.newyorker import LEADERBOARD
from tests.cli.command import Command
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.raw_files import raw_contests
from tests.evals.newyorker.recorded import IDS
from tests.evals.newyorker.test_submission import CHOSEN, made, samples_of


@pytest.mark.parametrize("fold", ["0", "all"])
def test_a_fold_is_the_option_of_the_task(
    fold: str, askance: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cartoons.lines(Path("data"), tasks=("matching",))
    rows = [row for each in cartoons.FOLDS for row in cartoons.hub_rows("matching", each, "test")]
    Path("replies.json").write_text(json.dumps({row["instance_id"]: "Answer: A" for row in rows}), encoding="utf-8")
    words = ("eval", "run", "newyorker/matching", "--data", "data", "-T", "answers=replies.json")
    for number, given in enumerate([("--fold", fold), ("-T", f"fold={fold}"), ("--fold", fold, "-T", f"fold={fold}")]):
        done = askance(*words, *given, "--out", str(number))
        assert done.code == 0, done.err
    runs = [Run.open(Path(str(number))) for number in range(3)]

    asked = cartoons.hub_rows("matching", 0, "test") if fold == "0" else rows
    assert {answer.sample.id for answer in runs[0].answers} == {row["instance_id"] for row in asked}
    assert runs[0].options["fold"] == (0 if fold == "0" else "all")
    assert runs[0].options == runs[1].options == runs[2].options


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


# --- build ---


def raw_files(folder: Path) -> list[str]:
    """The options that name made-up raw files: 50 contests with finalists, 6 of them rated."""
    raw_contests(folder, official=range(1, 51), rated_ones=range(45, 51))
    return ["--captions", str(folder / "captions"), "--annotations", str(folder / "annotations.json")]


def test_build_says_what_was_made_and_what_was_left_out(askance: Command, tmp_path: Path) -> None:
    given, out = raw_files(tmp_path), str(tmp_path / "mine")
    done = askance("newyorker", "build", *given, "--seed", "4", "-o", out)

    assert done.code == 0
    assert done.out.splitlines()[0] == f"{out}: 50 of 50 contests; 18 crowd winners, 150 official winners."
    table = [line.split() for line in done.out.splitlines()]
    assert ["matching", "100.8", "33.6", "33.6"] in table
    assert ["ranking", "21.6", "7.2", "7.2"] in table
    assert ["matching", "20.0%"] in [line[:2] for line in table]
    assert ["ranking", "50.0%"] in [line[:2] for line in table]
    assert "1 contest left out: captions without annotations" in done.err
    assert "44 contests without items of ranking: no captions" in done.err
    assert "only equal ones: no --embedder is named" in done.err
    assert not list(tmp_path.rglob(".askance"))
    assert json.loads((tmp_path / "mine" / "manifest.json").read_text("utf-8"))["seed"] == 4

    again = askance("newyorker", "build", *given, "-o", out)
    assert (again.code, again.out) == (2, "")
    assert "is no empty folder" in again.err


def test_build_prints_json_and_looks_for_what_wording_gives_away(askance: Command, tmp_path: Path) -> None:
    (tmp_path / "cartoons").mkdir()
    done = askance(
        "newyorker",
        "build",
        *raw_files(tmp_path),
        "--images",
        str(tmp_path / "cartoons"),
        "--wording",
        "--json",
        "-o",
        str(tmp_path / "mine"),
    )
    said = json.loads(done.out)

    assert done.code == 0
    assert said["pictures_missing"] == 50
    assert said["wording"]["matching"]["right"] == pytest.approx(0.2, abs=0.1)
    assert said["wording"]["matching"]["tells"]


@pytest.mark.parametrize("lacking", ["captions", "annotations.json"])
def test_build_names_what_is_not_there(lacking: str, askance: Command, tmp_path: Path) -> None:
    given = raw_files(tmp_path)
    (tmp_path / lacking).rename(tmp_path / "elsewhere")
    done = askance("newyorker", "build", *given, "-o", str(tmp_path / "mine"))

    assert done.code == 2
    assert lacking in done.err
    assert not (tmp_path / "mine").exists()
