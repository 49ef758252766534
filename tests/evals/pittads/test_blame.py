"""Blame over the ads: statements that were detected wrongly, against those that annotators saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.chat import ChatRequest
from askance.evals import Run, evaluate
from askance.evals.analysis.blame import ablame
from askance.evals.analysis.trial import from_run
from askance.evals.pittads.arr import ArrSingle
from askance.models import Model
from tests.evals.pittads.worlds import choosing, is_wrong, model, world


def chooses(request: ChatRequest) -> object:
    """Right where a statement with the true relation is told, or none at all."""
    text = request.messages[-1].text
    told = " composed of numerous" not in text and " visibly located within" not in text
    return choosing(is_wrong if told else is_right, count=1)(request)


def is_right(text: str) -> bool:
    return not is_wrong(text)


@pytest.fixture
def scripted() -> Model:
    """Detects the second statement of the list, which has a wrong relation."""
    return model(detect_statement={"statement": 2}, choose_action_reasons=chooses)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return world(tmp_path / "data", true=(2, 2))


def run_of(data: Path, scripted: Model, context: str) -> Run:
    return evaluate(ArrSingle(data=data, vlm=scripted, context=context), out=data.parent / context)


@pytest.mark.parametrize("context", ["T_V+s_IN", "T_V+s_TV", "IN+s_IN"])
async def test_a_statement_that_was_detected_wrongly_is_to_blame(data: Path, scripted: Model, context: str) -> None:
    run = run_of(data, scripted, context)

    blame = await ablame(run, ArrSingle, engine=scripted.engine, models={"vlm": scripted})

    assert [blame.guilty(answer) for answer in blame.wrong] == [("statement",)] * 2


async def test_the_statements_that_annotators_saw_come_from_a_run_that_was_given_them(
    data: Path, scripted: Model
) -> None:
    run, true = run_of(data, scripted, "T_V+s_IN"), run_of(data, scripted, "T_V+s_true")

    blame = await ablame(run, ArrSingle, engine=scripted.engine, models={"vlm": scripted}, replacement=from_run(true))

    assert blame.links == ("statement",)
    assert [blame.guilty(answer) for answer in blame.wrong] == [("statement",)] * 2
    assert [trial.put for trial in blame.trials] == [answer.sample.inputs["statement"] for answer in true.answers]


async def test_a_given_statement_can_be_blamed_as_well(data: Path, scripted: Model) -> None:
    run = run_of(data, scripted, "T_V+s_wrong")

    blame = await ablame(run, ArrSingle, engine=scripted.engine, models={"vlm": scripted})

    assert {blame.guilty(answer) for answer in blame.wrong} <= {("statement",)}
    assert all("statement" in trials for trials in blame.by_answer.values())
