"""Risk by coverage of runs side by side, by confidence, by agreement of draws, by log-probability."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import Field
from typing_extensions import override

from askance.chat import ChatRequest, ChatResponse, Message, TextPart
from askance.errors import UsageError
from askance.evals import Prediction, Run, Sample, Scorer, Solver, Task, evaluate, right_or_wrong
from askance.evals.analysis.risk import compare_risks
from askance.evals.solver import SolverLike
from askance.models import Capabilities, Engine, Model, ScriptedModel, get_model
from askance.models.call_scope import current_scope
from askance.replay import MemoryStore
from tests.evals.numbers import always_odd, samples
from tests.golden.commands import askance


class Numbers(Task):
    """Whether each of twenty numbers is odd."""

    name = "tests/risk"
    solves: Any = Field(exclude=True)
    which: str

    def samples(self) -> list[Sample]:
        return samples(20)

    def solver(self) -> SolverLike:
        return self.solves

    def scorer(self) -> Scorer:
        return right_or_wrong()

    def label(self) -> str:
        return self.which


def run(solves: Any, name: str, **options: Any) -> Run:
    return evaluate(Numbers(solves=solves, which=name), out=name, **options)


def knows(sample: Sample) -> Prediction:
    """Says odd, and is sure where it is right."""
    return Prediction(outcome="answered", value=True, confidence=0.9 if sample.target else 0.2)


def misled(sample: Sample) -> Prediction:
    """Says odd, and is sure where it is wrong."""
    return Prediction(outcome="answered", value=True, confidence=0.2 if sample.target else 0.9)


class Wavering(Solver):
    """Says odd of odd numbers in every draw, and of even ones in three of five."""

    @override
    async def answer(self, sample: Sample) -> bool:
        return sample.target or current_scope().draw < 3


class Likely(Solver):
    """Asks a model, which says odd; its reply has a probability of 0.9 for odd numbers and 0.2 for others."""

    def __init__(self) -> None:
        scripted = ScriptedModel(self._reply, identity="likely", capabilities=Capabilities())
        self.model = get_model(scripted, engine=Engine(records=MemoryStore()))

    @staticmethod
    def _reply(request: ChatRequest) -> ChatResponse:
        share = 0.9 if int(request.messages[-1].text) % 2 else 0.2
        half = math.log(share) / 2
        return ChatResponse(text="odd", logprobs=({"token": "o", "logprob": half}, {"token": "dd", "logprob": half}))

    @property
    @override
    def models(self) -> list[Model]:
        return [self.model]

    @override
    async def answer(self, sample: Sample) -> bool:
        await self.model.generate(self.model.request([Message("user", (TextPart(str(sample.inputs["number"])),))]))
        return True


AREA_OF_HALF = sum(max(0, k - 10) / k for k in range(1, 21)) / 20
"""Ten right answers are the surest of twenty."""


def test_one_run_is_better_where_its_confidences_tell_right_from_wrong() -> None:
    risks = compare_risks(run(knows, "knows"), run(misled, "misled"))

    one, other = risks.runs
    assert (one.by, one.area.value) == ("confidence", pytest.approx(AREA_OF_HALF))
    assert other.area.value == pytest.approx(sum(min(k, 10) / k for k in range(1, 21)) / 20)
    assert [(point.coverage, point.risk) for point in one.curve] == [(0.5, 0.0), (1.0, 0.5)]
    (comparison,) = risks.comparisons
    assert comparison.verdict == "better"
    assert risks.sentences[0].startswith("knows is better than misled on risk-coverage area: 0.")


def test_runs_that_rank_alike_are_tied() -> None:
    risks = compare_risks(run(knows, "one"), run(knows, "two"))

    assert [each.verdict for each in risks.comparisons] == ["tied"]
    assert "tied on risk-coverage area at this size" in risks.sentences[0]


def test_the_share_of_draws_that_agree_ranks_the_most_frequent_answer() -> None:
    (risk,) = compare_risks(run(Wavering(), "wavering", epochs=5)).runs

    assert risk.by == "agreement"
    assert {each.confidence for each in risk.samples} == {0.6, 1.0}
    assert risk.area.value == pytest.approx(AREA_OF_HALF)


def test_the_probability_of_the_reply_ranks_where_it_is_on_record() -> None:
    (risk,) = compare_risks(run(Likely(), "likely")).runs

    assert risk.by == "logprob"
    assert {round(each.confidence or 0, 3) for each in risk.samples} == {0.2, 0.9}
    assert risk.area.value == pytest.approx(AREA_OF_HALF)


def test_a_run_that_says_nothing_of_how_sure_it_is_is_refused_with_the_ways_out() -> None:
    plain = run(always_odd, "plain")

    with pytest.raises(UsageError, match="Nothing says how sure the answers of the run 'plain' are") as caught:
        compare_risks(plain)
    assert "--epochs 5" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="by 'agreement': each sample has a single draw"):
        compare_risks(plain, by="agreement")


def test_the_command_prints_a_table_and_verdicts_or_one_object() -> None:
    run(knows, "knows")
    run(Wavering(), "wavering", epochs=5)

    done = askance("eval", "risk", "knows", "wavering")
    form: Any = json.loads(askance("eval", "risk", "knows", "wavering", "--json").out)

    assert done.code == 0
    head, first, second = done.out.splitlines()[:3]
    assert head.split()[:4] == ["run", "ranked", "by", "samples"]
    assert first.split()[:3] == ["knows", "confidence", "20"]
    assert second.split()[:3] == ["wavering", "agreement", "20"]
    assert "knows and wavering are tied on risk-coverage area" in done.out
    assert [each["by"] for each in form["runs"]] == ["confidence", "agreement"]
    assert form["comparisons"][0]["verdict"] == "tied"
