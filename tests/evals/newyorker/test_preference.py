"""Explanations before judges: what they are told of a cartoon that they do not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.evals import evaluate
from askance.evals.judges import answer_pairs, judge_preferences
from askance.evals.newyorker import JokeExplanation
from askance.models import run_sync
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.test_tasks import Asked
from tests.judges import tasteful
from tests.scripted import model_of


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return cartoons.lines(tmp_path / "data")


def test_judges_are_told_the_caption_and_the_description(data: Path, tmp_path: Path) -> None:
    from askance.agents import judge_preference

    task = JokeExplanation(data=data, llm=Asked().model, context="description", fold=0)
    script = tasteful("pun.")

    found = answer_pairs(evaluate(task, out=tmp_path / "run"))
    made = run_sync(judge_preferences([judge_preference(model_of(script))], found))

    pair = found.pairs[0]
    assert pair.question.text == "Why is the caption funny under its cartoon?"
    assert [line.partition(":")[0] for line in pair.question.about.splitlines()][-1] == "caption"
    assert "unusual: " in pair.question.about
    assert pair.question.about in script.requests[0].messages[-1].text
    assert pair.group.startswith("contest ")
    assert made.majority.counts["a"] == len(found.pairs)


def test_judges_are_told_neither_the_reference_nor_that_there_is_no_description(data: Path, tmp_path: Path) -> None:
    task = JokeExplanation(data=data, llm=Asked().model, context="caption-only", fold=0)
    sample = next(sample for sample in task.samples() if sample.target["references"])
    weighed = {**sample.inputs, "reference": sample.target["references"][0]}

    for inputs in (sample.inputs, weighed):
        asked = task.question_of(type(sample)(id=sample.id, inputs=inputs))
        assert asked.about == f"caption: {sample.inputs['caption']}"
