"""A suite may bring contexts of its own: what describes the picture, and what its samples bring, is the suite's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from askance.agents import explain_joke
from askance.chains import CAPTION, cartoon_steps, joke_question
from askance.chat import ChatRequest
from askance.cli.blame import blame_parts
from askance.cli.columns import text_of
from askance.errors import UsageError
from askance.evals import Run, Sample, Scorer, Task, aevaluate, evaluate
from askance.evals.analysis.blame import ablame
from askance.evals.part import Question
from askance.evals.report import build_report, report_page
from askance.evals.report.samples import detail_of
from askance.evals.scorer import right_or_wrong
from askance.evals.suite import InContext, SuiteContext
from askance.evals.suite.context import NOTHING, VERBALIZED
from askance.images import Image
from askance.models import Model, ScriptedModel
from askance.replay import open_records
from tests.scripted import PICTURE, model_of, name_of, scripted

DESCRIBED = re.compile(r"<<description (\w+)\n(.*?)\n\1>>", re.DOTALL)
FIELDS: Mapping[str, Any] = {
    "location": "a bar",
    "narration": "A lizard sits at a bar.",
    "unusual": "Lizards do not drink.",
    "entities": ["Godzilla"],
}


SEEN: dict[str, Any] = {
    "location": {"location": "a bar"},
    "scene_description": {"description": "A lizard sits at a bar."},
    "unusual": {"unusual": "Lizards do not drink."},
    "entities": {"entities": ["Godzilla"]},
    "explain_joke_from_picture": {"explanation": "a pun"},
}


def described(fields: int) -> SuiteContext:
    return SuiteContext(steps=lambda _: cartoon_steps(None, fields=fields))


OWN: Mapping[str, SuiteContext] = {
    "socratic": SuiteContext(steps=lambda model: cartoon_steps(model.see), looks=True),
    "description": described(4),
    "description-1": described(1),
    "caption-only": SuiteContext(),
}


class Cartoons(Task):
    """Two captions of one cartoon."""

    name = "tests/cartoons"

    model: InContext = InContext(contexts=("I", *OWN, *VERBALIZED), own_contexts=OWN)

    def samples(self) -> Sequence[Sample]:
        fields = {"description": FIELDS, "description-1": {"location": FIELDS["location"]}}.get(self.model.context)
        given = fields or ({"description": NOTHING} if self.model.context == "caption-only" else {})
        given = {**given, "caption": "Next!"}
        image = Image.load(PICTURE) if self.model.parsed_context.looks else None
        return [Sample(id=name, image=image, inputs=given, target="a pun", group="7") for name in ("7-1", "7-2")]

    def question(self) -> Question:
        asks = partial(joke_question, sees=self.model.parsed_context.picture)
        return Question(name="explain", agent=explain_joke, asks=asks, needs=(CAPTION,))

    def scorer(self) -> Scorer:
        return right_or_wrong()


def models() -> tuple[Model, ScriptedModel, Model, ScriptedModel]:
    seen = scripted(**SEEN)
    read = scripted(explain_joke={"explanation": "a pun"})
    return model_of(seen), seen, model_of(read), read


def asked_in(context: str, folder: Path) -> tuple[Counter[str], list[str]]:
    """How often the VLM is asked what, and what the LLM reads of the picture."""
    vlm, seen, llm, read = models()
    run = evaluate(Cartoons(vlm=vlm, llm=llm, context=context), out=folder)
    assert [answer.prediction.outcome for answer in run.answers] == ["answered"] * 2
    fenced = [DESCRIBED.search(request.messages[-1].text) for request in read.requests]
    return Counter(map(name_of, seen.requests)), [found[2] for found in fenced if found]


LAID_OUT = (
    "Place: a bar\nDescription: A lizard sits at a bar.\nWhat is unusual: Lizards do not drink.\nEntities: Godzilla"
)


def test_a_cartoon_is_asked_about_once_for_all_items(tmp_path: Path) -> None:
    asked, read = asked_in("socratic", tmp_path / "run")

    assert asked == dict.fromkeys(("location", "scene_description", "unusual", "entities"), 1)
    assert read == [LAID_OUT]  # both items ask the same


@pytest.mark.parametrize(
    ("context", "text"),
    [("description", LAID_OUT), ("description-1", "Place: a bar"), ("caption-only", NOTHING)],
)
def test_what_samples_bring_is_not_asked(context: str, text: str, tmp_path: Path) -> None:
    asked, read = asked_in(context, tmp_path / "run")

    assert (asked, read) == (Counter(), [text])


def test_contexts_of_all_suites_stay_beside_them(tmp_path: Path) -> None:
    vlm, seen, *_ = models()

    evaluate(Cartoons(vlm=vlm), out=tmp_path / "run")

    assert [*map(name_of, seen.requests)] == ["explain_joke_from_picture"]


def test_a_context_that_looks_needs_a_model_that_sees() -> None:
    _, _, llm, _ = models()

    with pytest.raises(UsageError, match=r"The context 'socratic' looks at the picture\. Give a `vlm`\."):
        Cartoons(llm=llm, context="socratic").solver()
    task = Cartoons(llm=llm, context="description")
    solver = task.model.solver(task.question())
    assert solver.by_chain is not None
    assert solver.by_chain.chain.steps


def test_a_context_of_a_suite_is_known_to_its_tasks_alone() -> None:
    class Others(Cartoons):
        model: InContext = InContext(contexts=("I",), own_contexts=OWN)

    with pytest.raises(UsageError, match="has no context 'socratic'"):
        Others(context="socratic")


async def test_blame_and_reports_know_the_links_of_a_cartoon(tmp_path: Path) -> None:
    def misled(request: ChatRequest) -> dict[str, str]:
        return {"explanation": "a typo" if "do not drink" in request.messages[-1].text else "a pun"}

    store = open_records(tmp_path / "store")
    vlm, llm = model_of(scripted(**SEEN), store), model_of(scripted(explain_joke=misled), store)
    run = await aevaluate(Cartoons(vlm=vlm, llm=llm, context="socratic"), out=tmp_path / "run")

    found = await ablame(run, Cartoons, engine=vlm.engine, models={"vlm": vlm, "llm": llm})
    detail = detail_of(Run.open(run.path).answers[0])

    blamed = [each.link for each in found.sums]
    assert blamed == ["narration", "unusual", "location", "entities", "description", "caption", "none"]
    assert {trial.link for trial in found.trials if trial.flips} == {"unusual"}
    assert "\n7-1: UH\n7-2: UH" in text_of(blame_parts(found))
    assert detail["verbalization"]["location"] == "a bar"
    assert detail["verbalization"]["entities"] == ["Godzilla"]
    assert "entities" in report_page(build_report([run]))
