"""What a report counts, from the folders of runs alone."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.errors import UsageError
from askance.evals import Run, Sample
from askance.evals.negatives import generate, read_statements
from askance.evals.pittads import statements_in
from askance.evals.report import build_report
from askance.evals.report.run_part import SampleRow, Share, Spent, about_of, natural, title_of
from tests.evals.pittads.worlds import REFUSAL, world, writer
from tests.evals.report.runs import chain_run, plain_run

SPENT = Spent(calls=1, input=10, output=2, seconds=0.5, cost=0.01)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return plain_run(tmp_path / "plain")


def test_a_row_says_how_an_answer_ended(run: Run) -> None:
    rows = build_report([run]).runs[0].rows

    right = SampleRow(
        id="s0000",
        epoch=0,
        outcome="answered",
        result="right",
        worth=1.0,
        said="yes",
        marks=("half: first", "label: yes"),
        spent=SPENT,
    )
    assert rows[0] == right
    assert rows[2] == replace(right, id="s0002", result="wrong", worth=0.0, said="no", kinds=("said no",))
    assert rows[4] == replace(
        right, id="s0004", outcome="refused", result="no answer", worth=None, said="It would rather not."
    )


def test_counts_are_those_of_the_rows(run: Run) -> None:
    part = build_report([run]).runs[0]

    assert part.outcomes == {"answered": 10, "refused": 2}
    assert part.results == {"right": 6, "wrong": 4, "no answer": 2}
    assert part.kinds == {"said no": 4}
    assert part.spent == Spent(calls=12, input=120, output=24, seconds=6.0, cost=0.12)


def test_a_breakdown_counts_non_answers_as_the_run_does(run: Run) -> None:
    (breakdown,) = build_report([run]).runs[0].breakdowns

    shares = [replace(share, interval=None) for share in breakdown.shares]
    assert shares == [
        Share(name="first", value=0.5, interval=None, samples=6, answered=5),
        Share(name="last", value=0.5, interval=None, samples=6, answered=5),
    ]
    assert all(share.interval is not None for share in breakdown.shares)
    assert breakdown.note == "mean of accuracy; samples without an answer count as 0"


def test_values_of_a_tag_go_by_their_numbers_and_none_is_lost(tmp_path: Path) -> None:
    run = plain_run(tmp_path / "run", 100, tags=lambda number: {"fold": f"fold {number % 50}", "url": f"u{number}"})
    assert natural(["fold 10", "fold 9", "0.5", "0.25"]) == ["0.25", "0.5", "fold 9", "fold 10"]
    part = build_report([run]).runs[0]

    folds = next(each for each in part.breakdowns if each.name == "fold")
    assert [share.name for share in folds.shares] == [f"fold {number}" for number in range(50)]
    assert part.left_out == {"url": 100}
    assert {mark.partition(":")[0] for row in part.rows for mark in row.marks} == {"half", "fold", "label"}


@pytest.mark.parametrize(
    ("name", "inputs", "title"),
    [
        ("0f3a" * 16, {"question": "What  is\nodd?", "caption": "A cat."}, "What is odd?"),
        ("0f3a" * 4 + "-2", {"caption": "A cat."}, "A cat."),
        ("0f3a" * 4, {"options": ["a", "b"]}, ""),
        ("cafe", {"question": "What is odd?"}, ""),
        ("000000391895", {"question": "What is odd?"}, ""),
    ],
    ids=["hash", "hash and number", "nothing said", "name", "number"],
)
def test_a_sample_whose_id_is_a_hash_has_a_title(name: str, inputs: dict[str, Any], title: str) -> None:
    assert title_of(Sample(id=name, inputs=inputs)) == title


@pytest.mark.parametrize(("name", "about"), [("cup.jpg#2", "What is odd?"), ("0f3a" * 16, "")])
def test_a_sample_whose_id_is_a_name_says_what_is_asked_beside_it(name: str, about: str) -> None:
    assert about_of(Sample(id=name, inputs={"question": "What  is\nodd?"})) == about


def test_options_of_a_chain_are_shown_by_their_words(tmp_path: Path) -> None:
    run = chain_run(tmp_path / "run", world(tmp_path / "data"))
    part = build_report([run]).runs[0]

    assert (part.column, part.share) == ("mean of five", True)
    assert {row.result for row in part.rows} == {"right"}
    assert "is right · I should buy" in part.rows[0].said


def test_a_run_stands_beside_what_was_published_of_the_same_question(tmp_path: Path) -> None:
    data = world(tmp_path / "data")
    generate(read_statements(statements_in(data)), writer(), out=data / "hard")
    easy, run = chain_run(tmp_path / "easy", data), chain_run(tmp_path / "hard", data, negatives="hard")
    (beside,) = build_report([run]).runs[0].beside

    assert build_report([easy]).runs[0].beside == ()  # the published options are hard

    assert beside.heads == ("Vicuna, T_V + ŝ_IN", "GPT-4, T_V + ŝ_IN")
    assert dict(beside.rows)["p@1"] == pytest.approx((0.6832, 0.9554))
    assert beside.title == "Table 3: Multi-option action-reason retrieval"


def test_tasks_of_ones_own_stand_beside_nothing(run: Run) -> None:
    assert build_report([run]).runs[0].beside == ()


def test_only_the_folder_is_needed(run: Run, tmp_path: Path) -> None:
    there = build_report([run]).form()
    copy = tmp_path / "elsewhere" / "plain"
    shutil.copytree(run.path, copy)
    shutil.rmtree(run.path)

    assert build_report([Run.open(copy)]).form() == there


def test_the_form_is_json(run: Run) -> None:
    form = json.loads(json.dumps(build_report([run], title="Mine").form()))

    (part,) = form["runs"]
    assert (form["title"], part["folder"], part["samples"][0]["id"]) == ("Mine", "plain", "s0000")
    assert [share["name"] for share in part["breakdowns"][0]["shares"]] == ["first", "last"]


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    runs = [plain_run(tmp_path / name, shift=shift) for name, shift in (("a", 0), ("b", 1))]

    assert [part.name for part in build_report(runs).runs] == ["plain (a)", "plain (b)"]


def test_a_run_that_is_not_finished_shows_what_is_there(run: Run) -> None:
    file = run.path / "run.json"
    form = json.loads(file.read_text(encoding="utf-8"))
    begun = {name: form[name] for name in ("format", "hash", "readers", "configuration")}
    file.write_text(json.dumps(begun), encoding="utf-8")
    (run.path / "scores.jsonl").unlink()

    part = build_report([Run.open(run.path)]).runs[0]

    assert part.results == {"unscored": 10, "no answer": 2}
    assert (part.run.figures, part.breakdowns) == ((), ())


def test_no_run_is_no_report() -> None:
    with pytest.raises(UsageError, match=r"^A report is of at least one run\."):
        build_report([])


def test_refusals_on_the_way_are_no_answers(tmp_path: Path) -> None:
    run = chain_run(tmp_path / "run", world(tmp_path / "data"), choose_action_reasons=REFUSAL)

    assert build_report([run]).runs[0].outcomes == {"refused": 3}
