"""What a page is told of a sample: the first hits of a ranking, scores of regions, what a call cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.chat import ChatResponse, Usage
from askance.evals import Evaluation, Matrix, Prediction, Ranking, Run, Sample, SampleResult, Score, evaluate
from askance.evals.analysis.compare import common_samples
from askance.evals.report import Thumbnails
from askance.evals.report.comparison_page import _comparable, _numbered  # pyright: ignore[reportPrivateUsage]
from askance.evals.report.run_part import part_of, said_by
from askance.evals.report.samples import HITS_SHOWN, SampleBrowser, call_of, detail_of
from askance.evals.suite.retrieval_metrics import retrieval_scorer
from askance.replay import Record
from tests.evals.report.runs import HOSTILE

TRUE = {"true": ["e7", "e0", "gone"], "texts": ["seven", HOSTILE[0], HOSTILE[1]]}


def hits(count: int, *, score: float = 1.0) -> list[dict[str, Any]]:
    texts: Sequence[str] = HOSTILE[:2]
    return [{"id": f"e{n}", "text": texts[n % 2] + str(n), "score": score / (n + 1)} for n in range(count)]


def result(value: Any, *, notes: Any = None, target: Any = TRUE) -> SampleResult:
    score = None if notes is None else Score(values={"recall@10": 0.5}, notes=notes)
    prediction = Prediction(outcome="answered", value=value)
    return SampleResult(sample=Sample(id="a", target=target), epoch=0, prediction=prediction, score=score)


def test_the_first_hits_are_told_with_what_is_known_of_them() -> None:
    notes = {"ranks": {"e7": 8, "e0": 1, "gone": None}, "verdicts": {"e1": "true", "e2": "unscored"}}
    ranking = Ranking([f"e{n}" for n in range(500)], [0.0] * 500)
    answer = result(hits(100), notes=notes)

    form = detail_of(replace(answer, prediction=replace(answer.prediction, ranking=ranking)))

    assert (len(form["hits"]), form["ranked"]) == (HITS_SHOWN, 500)
    assert form["hits"][:3] == [
        {"text": HOSTILE[0] + "0", "true": True},
        {"text": HOSTILE[1] + "1", "true": False, "verdict": "true"},
        {"text": HOSTILE[0] + "2", "true": False, "verdict": "unscored"},
    ]
    assert form["truths"] == [{"text": HOSTILE[0], "rank": 1}, {"text": "seven", "rank": 8}, {"text": HOSTILE[1]}]
    assert not {"value", "target"} & form.keys()
    assert said_by(answer, []).startswith(f"{HOSTILE[0]}0 · {HOSTILE[1]}1")


@pytest.mark.parametrize("target", [None, ["e0"], {"true": {"e0": 1}}, {"true": 7, "texts": "no"}, "e0"])
@pytest.mark.parametrize("notes", [None, {}, {"ranks": [1], "verdicts": "no"}, {"ranks": {"e0": {"a": 1}}}])
def test_notes_and_targets_that_somebody_wrote_are_no_fault(target: Any, notes: Any) -> None:
    form = detail_of(result(hits(3), notes=notes, target=target))

    assert [hit["text"][-1] for hit in form["hits"]] == ["0", "1", "2"]
    assert not any("rank" in truth for truth in form.get("truths", ()))


@pytest.mark.parametrize("value", [None, [], ["e0"], [{"id": "e0"}], [{"id": "e0", "text": 1}], {"id": "e0"}, [1, {}]])
def test_any_other_answer_is_shown_as_it_was(value: Any) -> None:
    form = detail_of(result(value))

    assert "hits" not in form
    assert form["target"] == TRUE
    assert form.get("value") == (value or None)


def scores(array: Any, target: Any, *, regions: int = 1) -> SampleResult:
    texts = [*HOSTILE[:3]]
    sample = Sample(id="a", inputs={"regions": [[[0, 0, 1, 1]]] * regions, "inferences": texts}, target=target)
    matrix = Matrix(np.array(array, dtype=float))
    value = (matrix.array.argmax(axis=1) + 1).tolist()
    return SampleResult(sample=sample, epoch=0, prediction=Prediction(outcome="answered", value=value, matrix=matrix))


def test_a_call_has_its_dollars_where_its_model_has_a_price() -> None:
    answer = ChatResponse(text="red", usage=Usage(input=1000, output=100))
    browser = SampleBrowser(pictures=Thumbnails())
    calls = [
        call_of(Record.make("chat", {"model": {"provider": "openai", "model": name}}, answer.canonical()), browser)
        for name in ("gpt-4o", "smollm2-135m")
    ]

    assert calls[0]["dollars"] == pytest.approx(0.0035)
    assert "dollars" not in calls[1]


def test_scores_of_a_region_are_a_table_with_what_people_say() -> None:
    answer = scores([[0.5, 2.25, 1.0]], {"ratings": [[1, 3, 2], [1, 2, 2]]})

    form = detail_of(answer)

    assert form["table"] == {
        "columns": ["score", "rater 1", "rater 2"],
        "rows": [
            {"text": HOSTILE[1], "numbers": [2.25, 3, 2]},
            {"text": HOSTILE[2], "numbers": [1.0, 2, 2]},
            {"text": HOSTILE[0], "numbers": [0.5, 1, 1]},
        ],
    }
    assert not {"value", "target"} & form.keys()
    assert said_by(answer, []) == " ".join(HOSTILE[1].split())


def test_scores_of_several_regions_are_a_table_in_which_the_true_ones_are_marked() -> None:
    form = detail_of(scores(np.arange(9).reshape(3, 3), {"ids": ["x", "y", "z"]}, regions=3))

    assert form["table"]["columns"] == ["region 1", "region 2", "region 3"]
    assert [(row["numbers"], row["true"]) for row in form["table"]["rows"]] == [
        ([0.0, 3.0, 6.0], [0]),
        ([1.0, 4.0, 7.0], [1]),
        ([2.0, 5.0, 8.0], [2]),
    ]
    assert not {"value", "target"} & form.keys()


@pytest.mark.parametrize("target", [None, {"ratings": [[1, 2]]}, {"ratings": {"a": 1}}, {"ratings": [["x", 1, 2]]}])
def test_ratings_that_somebody_wrote_are_left_out(target: Any) -> None:
    assert detail_of(scores([[1, 2, 3]], target))["table"]["columns"] == ["score"]


@pytest.mark.parametrize("shape", [(2, 3), (1, 2)])
def test_another_matrix_is_no_table(shape: tuple[int, int]) -> None:
    assert "table" not in detail_of(scores(np.zeros(shape), TRUE))


def ranked(factor: float, *, last_first: bool = False) -> Callable[[Sample], Prediction]:
    def solve(_: Sample) -> Prediction:
        value = hits(30, score=factor)[:: -1 if last_first else 1]
        return Prediction(
            outcome="answered",
            value=value,
            ranking=Ranking([hit["id"] for hit in value], [hit["score"] for hit in value]),
        )

    return solve


def run_of(folder: Path, solver: Callable[[Sample], Prediction]) -> Run:
    samples = [Sample(id=name, target=TRUE) for name in ("a", "b")]
    task = Evaluation(name="tests/hits", samples=samples, solver=solver, scorer=retrieval_scorer())
    return evaluate(task, out=folder)


def test_two_rankings_in_one_order_are_one_answer(own_place: Path) -> None:
    runs = [
        run_of(own_place / "one", ranked(1)),
        run_of(own_place / "two", ranked(2)),
        run_of(own_place / "other", ranked(1, last_first=True)),
    ]

    rows = common_samples(runs).rows

    assert [_numbered(map(_comparable, row)) for row in rows] == [(0, 0, 1)] * 2


def test_a_report_shows_how_much_of_the_truth_was_found(own_place: Path) -> None:
    run = run_of(own_place / "one", ranked(1))

    part = part_of(run, name="one")

    assert part.column == "recall@10"
    assert [row.result for row in part.rows] == ["partly"] * 2
