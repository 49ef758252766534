"""Runs whose solver withholds answers or says how sure it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from askance.agents import Choice
from askance.chains import Reading, end_to_end
from askance.errors import Refused
from askance.evals import (
    ChainSolver,
    Evaluation,
    Prediction,
    Run,
    Sample,
    Score,
    Scorer,
    Task,
    compare,
    evaluate,
    right_or_wrong,
)
from askance.evals.analysis.rescore import rescored
from askance.evals.scorer import figure_names
from askance.evals.solver import SolverLike
from askance.nodes import Result
from tests.evals.numbers import always_odd, run_of, samples
from tests.evals.odd import chooser


class Numbers(Task):
    """Whether each of six numbers is odd."""

    name = "tests/abstention"
    solves: Any = Field(exclude=True)

    def samples(self) -> list[Sample]:
        return samples(6)

    def solver(self) -> SolverLike:
        return self.solves

    def scorer(self) -> Scorer:
        return right_or_wrong()


CONFIDENCES = (0.9, 0.8, 0.7, 0.6, 0.3)


def careful(sample: Sample) -> Prediction:
    """Says odd of everything: of 0 to 4 with a confidence, withholds that of 4, and declines 5."""
    number: int = sample.inputs["number"]
    if number == 5:
        raise Refused("no")
    return Prediction(outcome="answered", value=True, confidence=CONFIDENCES[number], abstained=number == 4)


def bold(sample: Sample) -> Prediction:
    return Prediction(outcome="answered", value=True, confidence=1.0 if sample.target else 0.0)


def test_an_abstention_counts_as_wrong_and_what_it_withholds_is_kept() -> None:
    run = run_of(lambda sample: Prediction(outcome="answered", value=True, abstained=sample.id == "01"), count=4)

    assert run.figure("accuracy").value == 0.25  # 03; 01 would be right, too
    withheld = run.answers[1]
    assert withheld.prediction.abstained
    assert withheld.score is not None
    assert (withheld.score.values, withheld.score.withheld) == ({"accuracy": 0.0}, {"accuracy": 1.0})
    assert [each.metric for each in run.figures] == ["accuracy", "coverage", "accuracy among answered"]


def test_the_figures_of_abstention_are_those_of_their_definitions() -> None:
    run = run_of(careful)
    figures = {each.metric: each for each in run.figures}

    assert figures.keys() == figure_names(right_or_wrong())
    assert figures["accuracy"].value == pytest.approx(2 / 6)
    assert figures["coverage"].value == pytest.approx(4 / 6)
    assert figures["accuracy among answered"].value == pytest.approx(2 / 4)
    # By confidence: 0 is wrong, 1 right, 2 wrong, 3 right, then the one that is withheld and the one without an answer.
    assert figures["risk-coverage area"].value == pytest.approx((1 + 1 / 2 + 2 / 3 + 2 / 4 + 3 / 5 + 4 / 6) / 6)
    assert figures["calibration error"].value == pytest.approx((0.9 + 0.2 + 0.7 + 0.4 + 0.3) / 5)
    assert figures["Brier score"].value == pytest.approx((0.81 + 0.04 + 0.49 + 0.16 + 0.09) / 5)
    assert all(each.interval is not None and each.value in each.interval for each in run.figures if each.value)


def test_confidences_that_tell_right_from_wrong_have_an_area_of_their_own() -> None:
    figures = {each.metric: each.value for each in run_of(bold).figures}

    assert figures["risk-coverage area"] == pytest.approx((1 / 4 + 2 / 5 + 3 / 6) / 6)
    assert (figures["calibration error"], figures["Brier score"]) == (0.0, 0.0)


def test_a_run_without_confidences_has_the_figures_and_the_lines_of_before() -> None:
    run = run_of()

    assert [each.metric for each in run.figures] == ["accuracy"]
    line = Path("run/samples.jsonl").read_text("utf-8").splitlines()[0]
    assert "abstained" not in line
    assert "confidence" not in line


async def test_a_run_that_is_opened_and_scored_again_has_the_same_figures() -> None:
    made = evaluate(Numbers(solves=careful), out="run")
    opened = Run.open(made.path)

    assert opened.answers[4].prediction.abstained
    assert opened.answers[4].prediction.confidence == 0.3
    assert opened.figures == made.figures
    assert (await rescored(opened, Numbers))[1] == made.figures


def test_an_abstention_counts_as_wrong_where_runs_are_compared() -> None:
    def withholds(sample: Sample) -> Prediction:
        return Prediction(outcome="answered", value=True, abstained=sample.id == "01")

    (comparison,) = compare(
        evaluate(Numbers(solves=always_odd), out="one"), evaluate(Numbers(solves=withholds), out="two")
    )

    assert comparison.by_sample == (1, 0, 5)


def test_a_solver_may_abstain_without_an_answer() -> None:
    run = run_of(lambda sample: Prediction(outcome="answered", abstained=True))

    assert run.figure("coverage").value == 0.0
    assert run.figure("accuracy among answered").value is None


def test_a_confidence_in_percent_is_refused_and_stops_no_other_sample() -> None:
    run = run_of(lambda sample: Prediction(outcome="answered", value=True, confidence=80), count=1)

    assert run.answers[0].prediction.outcome == "failed"
    assert run.answers[0].prediction.reason == "A confidence of 80 is not between 0 and 1. Give a share, such as 0.8."


def test_answers_that_are_partly_right_have_an_area_and_no_calibration() -> None:
    def score(sample: Sample, value: Any) -> Score:
        return Score(values={"accuracy": 0.5})

    half = replace(right_or_wrong(), score=score)
    run = evaluate(Evaluation(samples=samples(4), solver=bold, name="halves", scorer=half), out="half")

    assert run.figures[-1].metric == "risk-coverage area"
    assert run.figures[-1].value == 0.5


@pytest.mark.parametrize(("abstains", "enough"), [(True, False), (True, True), (False, False)])
def test_what_the_trace_of_a_chain_s_target_says_becomes_the_prediction_s(abstains: bool, enough: bool) -> None:
    chain = end_to_end(chooser(1))
    result = Result(outcome="answered", value=Choice(numbers=(1,)), trace={"confidence": 80, "enough": enough})
    reading = Reading(name="x", options=("a", "b"), links={"answers": result})

    prediction = ChainSolver(chain, abstains=abstains).prediction(reading, Sample(id="x"))

    assert (prediction.value, prediction.confidence) == ([1], 0.8)
    assert prediction.abstained is (abstains and not enough)
