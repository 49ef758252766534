"""Tasks over cartoons: contexts, folds, examples, orders, encoders, recorded replies and the leaderboard."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest, ImagePart
from askance.errors import UsageError
from askance.evals import Run, aevaluate, evaluate
from askance.evals.analysis.rescore import rescore
from askance.evals.newyorker import CartoonMatching, CartoonRanking, JokeExplanation
from askance.evals.run_plan import plan_run
from askance.evals.runner import SampleEpoch
from askance.evals.suite.context import NOTHING
from askance.images import Image
from askance.models import Model
from askance.replay import MemoryStore
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.cartoons import ANIMALS, CONTESTS
from tests.scripted import model_of, name_of, scripted

FIELDS = ("location", "scene_description", "unusual", "entities")
"""What the VLM is asked for in the context `socratic`."""


class Asked(list[ChatRequest]):
    """A model that knows which animal a cartoon shows, and what it was asked."""

    def __init__(self, records: MemoryStore | None = None) -> None:
        super().__init__()
        self.model: Model = model_of(
            scripted(
                location=self.saying(location="a bar"),
                scene_description=self.saying(description="An animal talks."),
                unusual=self.saying(unusual="It talks."),
                entities=self.saying(entities=["Duck"]),
                match_caption=self.choice,
                match_caption_from_picture=self.choice,
                rank_captions=self.choice,
                rank_captions_from_picture=self.choice,
                explain_joke=self.saying(explanation="It is a pun."),
                explain_joke_from_picture=self.saying(explanation="It is a pun."),
            ),
            records,
        )

    def saying(self, **answer: Any) -> Callable[[ChatRequest], Any]:
        def said(request: ChatRequest) -> Any:
            self.append(request)
            return answer

        return said

    def choice(self, request: ChatRequest) -> Any:
        """The letter of the first caption that names an animal of the description; else A."""
        text = request.messages[-1].text
        options = dict(re.findall(r"^([A-E])[:)] (.*)$", text, re.MULTILINE))
        before = text.partition(f"A) {options['A']}")[0].partition(f"A: {options['A']}")[0]
        found = [letter for letter, option in options.items() for each in ANIMALS if each in option and each in before]
        self.append(request)
        return {"answer": found[0] if found else "A"}

    def names(self) -> Counter[str]:
        return Counter(map(name_of, self))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return cartoons.lines(tmp_path / "data")


@pytest.fixture
def asked() -> Asked:
    return Asked()


def figures(run: Run) -> dict[str, float | None]:
    return {each.metric: each.value for each in run.figures}


async def test_a_model_that_knows_the_cartoon_is_right_in_every_fold(data: Path, asked: Asked, tmp_path: Path) -> None:
    task = CartoonMatching(data=data, llm=asked.model, context="description")
    run = await aevaluate(task, out=tmp_path / "run")
    found = figures(run)

    assert found["accuracy"] == found["accuracy, pooled"] == 1
    assert [found[f"accuracy: fold {fold}"] for fold in range(5)] == [1] * 5
    assert len(run.answers) == 3 * len(CONTESTS) == asked.names()["match_caption"]
    assert {answer.sample.group for answer in run.answers} == {f"contest {contest}" for contest in CONTESTS}
    assert (await rescore(Run.open(run.path), CartoonMatching, reread=True)).run.figures == run.figures


@pytest.mark.parametrize(("context", "count"), [("description", 4), ("description-1", 1), ("description-3", 3)])
def test_a_context_shows_the_first_fields_of_what_people_wrote(
    data: Path, asked: Asked, context: str, count: int
) -> None:
    evaluate(CartoonMatching(data=data, llm=asked.model, context=context, ids=[str(CONTESTS[0])]))
    text = asked[0].messages[-1].text
    there = ["a bar" in text or "a castle" in text, "talks to a man" in text, "cannot talk" in text, "Entities" in text]

    assert there == [True] * count + [False] * (4 - count)


def test_without_the_cartoon_nothing_is_told_of_it(data: Path, asked: Asked) -> None:
    evaluate(CartoonMatching(data=data, llm=asked.model, context="caption-only", limit=10))

    assert all(NOTHING in request.messages[-1].text for request in asked)
    assert not any("talks to a man" in request.messages[-1].text for request in asked)


async def test_four_questions_a_cartoon_serve_all_items_and_tasks(data: Path) -> None:
    records = MemoryStore()
    asked = Asked(records)
    task = CartoonMatching(data=data, vlm=asked.model, context="socratic")
    plan = await plan_run(task, [SampleEpoch(sample=each, epoch=0) for each in task.samples()], asked.model.engine)
    await aevaluate(task)
    first = asked.names()
    again = Asked(records)
    for task in (CartoonRanking, JokeExplanation):
        await aevaluate(task(data=data, vlm=again.model, context="socratic"))

    assert first == {**dict.fromkeys(FIELDS, len(CONTESTS)), "match_caption": 3 * len(CONTESTS)}
    assert sum(link.known + link.dependent for link in plan.links) == first.total()
    assert not again.names().keys() & {*FIELDS}
    assert "An animal talks." in again[0].messages[-1].text


def test_from_pixels_the_cartoon_is_shown(data: Path, asked: Asked) -> None:
    evaluate(CartoonRanking(data=data, vlm=asked.model, limit=3))
    drawn = {Image.from_bytes(cartoons.picture(contest)).sha256 for contest in CONTESTS}

    for request in asked:
        (picture,) = [part for message in request.messages for part in message.parts if isinstance(part, ImagePart)]
        assert picture.image.sha256 in drawn


def test_a_reference_that_is_weighed_is_shown_to_no_judge(data: Path, asked: Asked) -> None:
    plain, weighing = (
        JokeExplanation(data=data, llm=asked.model, context="description", perplexity=on) for on in (False, True)
    )

    assert [weighing.question_of(each) for each in weighing.samples()] == [
        plain.question_of(each) for each in plain.samples()
    ]
    assert weighing.samples()[0].inputs["reference"] == weighing.samples()[0].target["references"][0]


def test_recorded_replies_have_no_perplexity(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no perplexity"):
        JokeExplanation(data=data, answers=tmp_path / "replies.jsonl", perplexity=True)


def test_perplexity_goes_with_examples(data: Path, asked: Asked, tmp_path: Path) -> None:
    run = evaluate(
        JokeExplanation(data=data, llm=asked.model, context="description", perplexity=True, shots=1, limit=3),
        out=tmp_path / "run",
    )

    assert run.figure("BLEU-4").samples == 3
    assert run.figure("perplexity").value is None  # this model weighs nothing
