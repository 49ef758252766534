"""A VLM that rates what was written about regions, and its card: how far it agrees with people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import BadData, UsageError
from askance.evals import Run, evaluate
from askance.evals.analysis.rescore import rescore
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.sherlock import InferenceComparison, InferenceWriting
from askance.models import Capabilities, Engine, Model, ScriptedModel, get_model, run_sync
from askance.replay import MemoryStore, Records
from tests.evals.sherlock import corpus
from tests.scripted import name_of


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.write(tmp_path_factory.mktemp("sherlock"))


def replying(request: ChatRequest) -> str:
    """Writes that the sea is near, rates by whether the sea is spoken of, and judges all as false."""
    text = request.messages[-1].text
    told: Mapping[str, Any] = {
        "infer_from_picture": {"inference": corpus.SEA},
        "rate_inference_from_picture": {"rating": 3 if "sea" in text else 1},
        "judge_equivalence": {"common": "-", "different": "-", "reason": "-", "verdict": "false"},
    }
    return json.dumps(told[name_of(request)])


def model_of(records: Records, asked: list[ChatRequest] | None = None, **engine: Any) -> Model:
    def reply(request: ChatRequest) -> str:
        if asked is not None:
            asked.append(request)
        return replying(request)

    script = ScriptedModel(reply, identity="eye", capabilities=Capabilities(schema="enforced"))
    return get_model(script, engine=Engine(records=records, **engine))


def task(data: Path, model: Model, **options: Any) -> InferenceWriting:
    return InferenceWriting(data=data, vlm=model, judge=model, rater=model, limit=3, **options)


def figures(run: Run) -> Mapping[str, float | None]:
    return {figure.metric: figure.value for figure in run.figures}


def card_of(data: Path, model: Model, out: Path, **options: Any) -> Run:
    return evaluate(InferenceComparison(data=data, vlm=model, **{"by": "rating", "top": 0, **options}), out=out)


def test_what_is_written_is_rated_by_the_highlighted_region(data: Path, tmp_path: Path) -> None:
    asked: list[ChatRequest] = []

    run = evaluate(task(data, model_of(MemoryStore(), asked), region="hide"), out=tmp_path / "run")

    known = figures(run)
    assert (known["judged"], known["plausible"], known["rating"]) == (0.0, 1.0, 3.0)
    assert known["plausible: likely"] == 1.0
    shown = {(name_of(each), each.images[0].shown.view.show) for each in asked if each.images}
    assert shown == {("infer_from_picture", "hide"), ("rate_inference_from_picture", "highlight")}
    assert any("which has no card" in note for note in run.notes)


def test_a_rated_run_is_planned_and_scored_again_without_models(data: Path, tmp_path: Path) -> None:
    records, asked = MemoryStore(), list[ChatRequest]()
    model = model_of(records, asked)
    own = task(data, model)

    plan = run_sync(run_job(own, [SampleEpoch(sample=each, epoch=0) for each in own.samples()], model.engine).plan())
    run = evaluate(own, out=tmp_path / "run")

    assert {line.link: line.calls for line in plan.links} == {"reply": 3, "rating": 3, "judge": 3}
    assert len(asked) == plan.calls - 1  # two regions have one inference, so that they are judged by one call
    again = run_sync(rescore(run, InferenceWriting, reread=True))
    assert (again.changed, figures(Run.open(run.path))) == ((), figures(run))


def test_the_card_is_how_far_the_rater_agrees_with_people(data: Path, tmp_path: Path) -> None:
    model = model_of(MemoryStore())
    rated = card_of(data, model, tmp_path / "card")

    run = evaluate(task(data, model, rater_card=rated.path), out=tmp_path / "run")

    pairs = [
        (rating >= 2, "sea" in text)
        for answer in rated.answers
        for person in answer.sample.target["ratings"]
        for rating, text in zip(person, answer.sample.inputs["inferences"], strict=True)
    ]
    right, plausible = sum(one == other for one, other in pairs) / len(pairs), sum(one for one, _ in pairs) / len(pairs)
    (note,) = (note for note in run.notes if note.startswith("Rated by"))
    told = f"on {len(pairs)} ratings of people its accuracy is {right:.3f} beside a base rate of {plausible:.3f}"
    assert told in note
    run_sync(rescore(run, InferenceWriting))
    assert note in Run.open(run.path).notes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"by": "yes-no", "top": 20}, "is no card of eye"), ({"split": "test"}, "has no ratings of people")],
)
def test_what_is_no_card_is_refused(options: Mapping[str, Any], sentence: str, data: Path, tmp_path: Path) -> None:
    model = model_of(MemoryStore())
    other = card_of(data, model, tmp_path / "card", **options)

    with pytest.raises(BadData, match=sentence) as caught:
        evaluate(task(data, model, rater_card=other.path), out=tmp_path / "run")
    assert caught.value.hint in {
        "Make one: askance eval run sherlock/comparison --data DIR --vlm eye -T by=rating -T top=0",
        "Those of the split `test` are hidden.",
    }


def test_a_card_needs_a_rater(data: Path) -> None:
    with pytest.raises(UsageError, match="A card of a rater is given, and no rater"):
        InferenceWriting(data=data, vlm="openai:m", judge="openai:m", rater_card=data)
