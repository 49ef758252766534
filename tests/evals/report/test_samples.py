"""What a page is told of a ranking: its first hits, which of them are true, and where all the true ones stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.evals import Evaluation, Prediction, Ranking, Run, Sample, SampleResult, Score, evaluate
from askance.evals.analysis.compare import common_samples
from askance.evals.report.comparison_page import _comparable, _numbered  # pyright: ignore[reportPrivateUsage]
from askance.evals.report.run_part import part_of, said_by
from askance.evals.report.samples import HITS_SHOWN, detail_of
from askance.evals.suite.retrieval_metrics import retrieval_scorer
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
