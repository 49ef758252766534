"""Inferences that a model writes about regions: what is asked, who judges, and what the control says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import UsageError
from askance.evals import Run, evaluate
from askance.evals.controls import SWAPPED_REGION_NOTE, controlled
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.sherlock import InferenceWriting, Sherlock
from askance.images import RegionView
from askance.models import Capabilities, Engine, ScriptedModel, get_model, run_sync
from askance.replay import MemoryStore, Records
from tests.evals.sherlock import corpus

Write = Callable[[ChatRequest], str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.write(tmp_path_factory.mktemp("sherlock"))


@pytest.fixture(scope="module")
def knowing(data: Path) -> Write:
    """Writes what people wrote, by the picture and the region that is shown."""
    known: dict[tuple[str, Any], str] = {}
    corpus_ = Sherlock.open(data)
    for each in corpus_.instances:
        image = corpus_.picture(each.url)
        assert image is not None
        known.setdefault((image.sha256, each.boxes), each.inference)

    def write(request: ChatRequest) -> str:
        (part,) = request.images
        return known[part.shown.image.sha256, part.shown.view.boxes]

    return write


def always(text: str) -> Write:
    return lambda _: text


def judging(request: ChatRequest) -> str:
    """Calls an answer true that is the same, word by word."""
    text = request.messages[-1].text
    true, judged = (text.partition(f"{name}:\n<<")[2].split("\n")[1] for name in ("A", "B"))
    verdict = "true" if true == judged else "false"
    return json.dumps({"common": "-", "different": "-", "reason": "-", "verdict": verdict})


def model(reply: Write, name: str, records: Records, **engine: Any) -> Any:
    script = ScriptedModel(reply, identity=name, capabilities=Capabilities(schema="enforced"))
    return get_model(script, engine=Engine(records=records, **engine))


def task(data: Path, write: Write, records: Records | None = None, **options: Any) -> InferenceWriting:
    records = MemoryStore() if records is None else records
    vlm = model(lambda request: json.dumps({"inference": write(request)}), "writer", records)
    return InferenceWriting(
        data=data, vlm=vlm, judge=get_model(model(judging, "judge", records), engine=vlm.engine), **options
    )


def figures(run: Run) -> Mapping[str, float | None]:
    return {figure.metric: figure.value for figure in run.figures}


def test_who_writes_what_people_wrote_is_right_about_every_region(data: Path, knowing: Write, tmp_path: Path) -> None:
    run = evaluate(task(data, knowing), out=tmp_path / "run")

    known = figures(run)
    assert (known["judged"], known["speaks of marks"]) == (1.0, 0.0)
    assert known["judged: VG"] == known["judged: VCR"] == known["judged: likely"] == 1.0
    assert len(run.answers) == len({(each.url, each.boxes) for each in Sherlock.open(data).instances})
    assert any("swapped-region" in note for note in run.notes)


def test_the_region_is_shown_as_the_authors_draw_it(data: Path, knowing: Write, tmp_path: Path) -> None:
    asked: list[ChatRequest] = []

    def write(request: ChatRequest) -> str:
        asked.append(request)
        return "it is late"

    evaluate(task(data, write, region="hide", limit=1), out=tmp_path / "run")

    first = Sherlock.open(data).instances[0]
    ((part,),) = (request.images for request in asked)
    assert part.shown.view == RegionView("hide", first.boxes, unit="native pixels", style="sherlock")
    assert "The region in question is covered with grey." in asked[0].messages[-1].text


def test_instances_of_one_region_are_one_sample_with_the_inferences_of_all(data: Path) -> None:
    samples = task(data, always("-")).samples()

    twice = [sample for sample in samples if len(sample.target["references"]) > 1]
    assert [sample.target["references"] for sample in twice] == [[corpus.DOG, corpus.DOG]]


def test_the_control_asks_about_regions_of_other_pictures(data: Path, knowing: Write, tmp_path: Path) -> None:
    seen = evaluate(controlled(task(data, knowing), "swapped-region"), out=tmp_path / "seen")
    said = "the sea is near"
    own = figures(evaluate(task(data, always(said)), out=tmp_path / "own"))
    swapped = figures(evaluate(controlled(task(data, always(said)), "swapped-region"), out=tmp_path / "swapped"))

    assert figures(seen)["judged"] == pytest.approx(0.0, abs=0.2)
    assert own["judged"] == swapped["judged"]  # who looks at nothing is as right about any region
    assert (own["judged"] or 0) > 0
    assert SWAPPED_REGION_NOTE in seen.notes


def test_answers_that_speak_of_the_marks_are_counted(data: Path, tmp_path: Path) -> None:
    run = evaluate(task(data, always("The pink box hides a secret.")), out=tmp_path / "run")

    assert figures(run)["speaks of marks"] == 1.0


def test_the_plan_is_what_is_asked_and_the_replay_asks_nobody(data: Path, knowing: Write, tmp_path: Path) -> None:
    records, made = MemoryStore(), list[str]()

    def write(request: ChatRequest) -> str:
        made.append(request.key)
        return knowing(request)

    own = task(data, write, records, limit=4)
    samples = [SampleEpoch(sample=sample, epoch=0) for sample in own.samples()]
    plan = run_sync(run_job(own, samples, own.model.see.engine).plan())
    first = evaluate(own, out=tmp_path / "first")
    engine = Engine(records=records, mode="replay")
    gone = get_model(model(always("gone"), "writer", records), engine=engine)
    judge = get_model(model(always("gone"), "judge", records), engine=engine)
    again = evaluate(InferenceWriting(data=data, vlm=gone, judge=judge, limit=4), out=tmp_path / "again")

    assert plan.links[0].known == len(made) == 4
    assert figures(again) == figures(first)


def test_it_needs_a_model_that_sees_and_a_judge(data: Path) -> None:
    records = MemoryStore()

    with pytest.raises(UsageError, match="needs 'judge'"):
        InferenceWriting(data=data, vlm=model(always("-"), "writer", records))
    with pytest.raises(UsageError, match="There is no model that sees the picture"):
        InferenceWriting(data=data, llm=model(always("-"), "reader", records), judge="openai:m").solver()
