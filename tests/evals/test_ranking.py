"""Rankings: what a run keeps of them beside its lines, what is read back, and what a changed file is taken for.

What is alike for every attachment is tested with matrices.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.chat import canonical_json
from askance.errors import StoreError, UsageError
from askance.evals import (
    Prediction,
    Ranking,
    Run,
    RunFolder,
    Sample,
    Score,
    Scorer,
    Task,
    evaluate,
    export,
    mean,
)
from askance.evals.run_format import LONGEST_RANKED_ID, MOST_RANKED
from askance.models.call_scope import current_scope
from tests.evals.numbers import run_of

NAMES = tuple(f"entry {number}" for number in range(30))


def ranked(sample: Sample) -> Prediction:
    """All names, in an order that the sample and the epoch decide."""
    order = sorted(NAMES, key=lambda name: sha256(f"{sample.id} {current_scope().draw} {name}".encode()).hexdigest())
    return Prediction(outcome="answered", value=order[:2], ranking=Ranking(order, [1 / n for n in range(1, 31)]))


def place(sample: Sample, prediction: Prediction) -> Score:
    assert prediction.ranking is not None
    return Score(values={"reciprocal rank": 1 / (1 + prediction.ranking.ids.index(sample.target))})


SCORER = Scorer(
    score=place,
    metrics=(mean("reciprocal rank"),),
    if_wrong=lambda _: Score(values={"reciprocal rank": 0.0}),
    if_right=lambda _: Score(values={"reciprocal rank": 1.0}),
    takes="prediction",
)


class Places(Task):
    """Where in a ranking a name stands."""

    name = "tests/places"
    count: int = 4

    def samples(self) -> list[Sample]:
        return [Sample(id=f"{number:02}", target=NAMES[number]) for number in range(self.count)]

    def solver(self) -> Callable[[Sample], Prediction]:
        return ranked

    def scorer(self) -> Scorer:
        return SCORER


@pytest.fixture
def run(own_place: Path) -> Run:
    return evaluate(Places(), out=own_place / "run")


def lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]


def files(run: Run) -> list[Path]:
    return sorted((run.path / "rankings").iterdir())


def put(folder: Path, content: bytes, *, count: int = 2) -> Ranking:
    """The ranking of a line that names a file with this content by its true digest."""
    digest = sha256(content).hexdigest()
    (folder / "rankings").mkdir(exist_ok=True)
    (folder / "rankings" / f"{digest}.json").write_bytes(content)
    return Ranking.kept(folder, {"sha256": digest, "count": count})


# --- the value ---


@given(
    ids=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), unique=True, max_size=30),
    numbers=st.data(),
)
def test_a_ranking_is_read_as_it_was_written(
    ids: list[str], numbers: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    finite = st.floats(allow_nan=False, allow_infinity=False)
    scores = numbers.draw(st.lists(finite, min_size=len(ids), max_size=len(ids)))
    ranking = Ranking(ids, scores)

    read = put(tmp_path_factory.mktemp("run"), ranking.content, count=len(ids))

    assert (read.ids, read.scores) == (tuple(ids), tuple(scores))
    assert read == ranking
    assert read.whole
    assert read.count == len(ids)


def test_other_scores_are_another_ranking() -> None:
    one, two = Ranking(["a", "b"], [2, 1]), Ranking(["a", "b"], [2, 1.5])

    assert one == Ranking(["a", "b"], np.array([2, 1], dtype=np.float32))
    assert one != two
    assert {one, two, Ranking(("a", "b"), (2.0, 1.0))} == {one, two}


@pytest.mark.parametrize(
    ("ids", "scores", "message"),
    [
        (["a"], [], "1 ids and 0 scores"),
        (["a"] * (MOST_RANKED + 1), [0.0] * (MOST_RANKED + 1), "100,001 ids"),
        (["a", "a"], [1, 1], "'a' twice"),
        (["a", None], [1, 1], "the id 'None'"),
        (["a", 7], [1, 1], "the id '7'"),
        ([""], [1], "the id ''"),
        (["x" * (LONGEST_RANKED_ID + 1)], [1], "the id 'xxx"),
        (["\ud800"], [1], "the id"),
        (["a"], [math.nan], "the score 'nan'"),
        (["a"], [-math.inf], "the score '-inf'"),
        (["a"], ["1"], "the score '1'"),
        (["a"], [True], "the score 'True'"),
        (["a"], [None], "the score 'None'"),
        (["a"], [10**400], "the score '1000"),
    ],
)
def test_what_is_no_ranking_is_refused(ids: list[Any], scores: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as told:
        Ranking(ids, scores)

    assert told.value.hint


# --- in the folder of a run ---


def test_a_line_holds_the_digest_and_the_number_of_what_was_ranked(run: Run) -> None:
    found = lines(run)

    assert [line["ranking"]["count"] for line in found] == [30] * 4
    assert sorted(f"{line['ranking']['sha256']}.json" for line in found) == [file.name for file in files(run)]
    assert not any(NAMES[29] in json.dumps(line["ranking"]) for line in found)
    for answer in Run.open(run.path).answers:
        assert answer.prediction.ranking == ranked(answer.sample).ranking
        assert answer.prediction.ranking is not None
        assert answer.prediction.value == [*answer.prediction.ranking.ids[:2]]
    assert run.figure("reciprocal rank").value == pytest.approx(
        sum(1 / (1 + (ranked(each).ranking or Ranking([], [])).ids.index(each.target)) for each in Places().samples())
        / 4
    )


def test_a_run_without_rankings_is_what_it_was(own_place: Path) -> None:
    run = run_of(out=own_place / "run")

    assert not (run.path / "rankings").exists()
    assert not any("ranking" in line for line in lines(run))


def test_a_file_is_read_when_it_is_asked_for(run: Run) -> None:
    shutil.rmtree(run.path / "rankings")

    answers = Run.open(run.path).answers

    assert [answer.prediction.ranking and answer.prediction.ranking.count for answer in answers] == [30] * 4
    with pytest.raises(UsageError, match="is missing") as told:
        _ = answers[0].prediction.ranking and answers[0].prediction.ranking.ids
    assert "same command" in (told.value.hint or "")


TWO = {"ids": ["a", "b"], "scores": [1, 0.5]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no JSON"),
        (b"[" * 100_000, "levels"),
        (b"\xff\xfe", "UTF-8"),
        (b"[1]", "the lists"),
        (b'{"ids": {}, "scores": {}}', "the lists"),
        (b'{"ids": ["a"], "ids": ["b"], "scores": [1]}', "twice in one object"),
        (b'{"ids": ["a", "b"], "scores": [1, NaN]}', "NaN"),
        (b'{"ids": ["a", "b"], "scores": [1, 1e999]}', "too large"),
        (b'{"ids": ["a", "b"], "scores": [1, "2"]}', "the score '2'"),
        (b'{"ids": ["a", "a"], "scores": [1, 2]}', "twice"),
        (b'{"ids": ["a", 1], "scores": [1, 2]}', "the id '1'"),
        (b'{"ids": ["a"], "scores": [1]}', "has 1 ids, and its line says 2"),
        (b'{"ids": ["a", "b"], "scores": [1, ' + b"9" * 5000 + b"]}", "5,000 digits"),
    ],
)
def test_a_file_that_somebody_made_is_held_to_the_same_rules(content: bytes, message: str, tmp_path: Path) -> None:
    ranking = put(tmp_path, content)

    with pytest.raises(UsageError, match=message) as told:
        _ = ranking.ids
    assert told.value.hint
    assert "rankings" in told.value.message
    assert not ranking.whole


def test_a_file_without_end_is_not_read(tmp_path: Path) -> None:
    ranking = put(tmp_path, canonical_json(TWO).encode())
    with (tmp_path / ranking.place).open("wb") as large:
        large.truncate((64 << 20) + 1)

    with pytest.raises(UsageError, match="larger than 64 MB"):
        _ = ranking.ids


@pytest.mark.parametrize(
    "form",
    [
        {"sha256": "../../etc/passwd", "count": 1},
        {"sha256": "A" * 64, "count": 1},
        {"sha256": "a" * 64, "count": -1},
        {"sha256": "a" * 64, "count": True},
        {"sha256": "a" * 64},
        {"count": 1},
        "rankings",
    ],
)
def test_a_line_names_no_file_but_by_a_digest(form: Any, run: Run) -> None:
    first, *others = lines(run)
    texts = [json.dumps(line) for line in ({**first, "ranking": form}, *others)]
    (run.path / "samples.jsonl").write_text("\n".join([*texts, ""]), encoding="utf-8")

    with pytest.raises(UsageError, match=r"Line 1 of .*ranking"):
        _ = Run.open(run.path).answers
    again = evaluate(Places(), out=run.path)
    assert [answer.prediction.ranking for answer in again.answers] == [
        ranked(answer.sample).ranking for answer in again.answers
    ]


def test_a_kill_between_ranking_and_line_loses_nothing(run: Run) -> None:
    before, figures = lines(run), run.figures
    texts = (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run.path / "samples.jsonl").write_text("".join(texts[:2]) + texts[2][:40], encoding="utf-8")

    again = evaluate(Places(), out=run.path)

    assert [{**line, "meta": None} for line in lines(again)] == [{**line, "meta": None} for line in before]
    assert (len(files(again)), again.figures) == (4, figures)


def test_a_line_is_written_only_when_its_ranking_is(own_place: Path) -> None:
    folder = RunFolder(own_place / "run", {"task": "t"}, name=lambda line: line["id"])
    (own_place / "run" / "rankings").write_text("no folder", encoding="utf-8")
    ranking = Ranking(["a"], [1])

    with pytest.raises(StoreError, match="rankings"):
        folder.add({"id": "a", "outcome": "answered", "links": {}, "ranking": ranking.form()}, [ranking])
    folder.close()

    assert (own_place / "run" / "samples.jsonl").read_text(encoding="utf-8") == ""


def test_rankings_are_written_through_no_link(run: Run, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    shutil.rmtree(run.path / "rankings")
    (run.path / "rankings").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UsageError, match="symbolic link"):
        evaluate(Places(), out=run.path)
    assert not [*(tmp_path / "elsewhere").iterdir()]


# --- what is done with a run ---


def test_exports_carry_rankings(run: Run, tmp_path: Path) -> None:
    export(run, "jsonl", tmp_path / "run.jsonl")
    export(run, "csv", tmp_path / "run.csv")
    export(run, "inspect", tmp_path / "run.json")

    rows = [json.loads(text) for text in (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [tuple(row["ranking"]["ids"]) for row in rows] == [
        (answer.prediction.ranking or Ranking([], [])).ids for answer in run.answers
    ]
    with (tmp_path / "run.csv").open(encoding="utf-8", newline="") as file:
        assert [row["ranking.sha256"] for row in csv.DictReader(file)] == [
            (answer.prediction.ranking or Ranking([], [])).digest for answer in run.answers
        ]
    log = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert [sample["metadata"]["ranking"]["count"] for sample in log["samples"]] == [30] * 4


def test_a_solver_that_ranks_an_id_twice_has_no_answer(own_place: Path) -> None:
    def twice(_: Sample) -> Prediction:
        return Prediction(outcome="answered", ranking=Ranking(["a", "a"], [1, 1]))

    run = evaluate(replace(Places().evaluation(), solver=twice), out=own_place / "run")

    assert run.totals["outcomes"] == {"failed": 4}
    assert "'a' twice" in (run.answers[0].prediction.reason or "")
