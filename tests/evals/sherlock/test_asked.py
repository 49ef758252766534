"""Models that are asked about regions: by log-odds, by ratings, by an order, from the picture or from words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.agents import PlausibilityScorer
from askance.chains import Plan
from askance.chat import ChatRequest, ChatResponse, ImagePart
from askance.errors import BadImage, UsageError
from askance.evals import Run, evaluate
from askance.evals.analysis.pack import open_pack, write_pack
from askance.evals.analysis.pack_check import check_pack
from askance.evals.controls import controlled
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.sherlock import InferenceComparison, Localization, Retrieval, region_reranker
from askance.evals.sherlock.task import SherlockTask
from askance.images import Image, RegionView
from askance.models import Capabilities, Engine, Model, ScriptedModel, get_model, run_sync
from askance.replay import MemoryStore
from tests.evals.sherlock import corpus
from tests.scripted import name_of, one_token

SCHEMA = Capabilities(schema="enforced")
TASKS = (InferenceComparison, Localization, Retrieval)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.write(tmp_path_factory.mktemp("sherlock"))


def blind(request: ChatRequest) -> ChatResponse:
    """Answers by the number of words of what it is told, and looks at no picture."""
    share = (len(request.messages[-1].text) % 17 + 1) / 20
    if request.sampling.logprobs:
        if "1, 2 or 3" in request.messages[-1].text:
            return one_token({"3": share, "2": (1 - share) / 2, "1": (1 - share) / 2})
        return one_token({"yes": share, "no": 1 - share})
    told = {
        "rank_inferences_from_picture": {"answers": [2, 1, 4, 3]},
        "region_from_picture": {"description": "A pink rectangle."},
        "scene_from_picture": {"description": "A table."},
        "unusual_from_picture": {"unusual": "Nothing."},
    }
    return ChatResponse(text=json.dumps(told[name_of(request)]))


def seeing(request: ChatRequest) -> ChatResponse:
    """As `blind`, but what it says of a region is of that region alone."""
    response = blind(request)
    shown = [part.shown.key for part in request.messages[-1].parts if isinstance(part, ImagePart)]
    return (
        ChatResponse(text=response.text.replace('."', f' {shown}."').replace("'", ""))
        if shown and not response.logprobs
        else response
    )


def scripted(reply: Callable[[ChatRequest], Any] = blind) -> ScriptedModel:
    return ScriptedModel(reply, identity="eye", capabilities=SCHEMA)


def model_of(script: ScriptedModel, records: MemoryStore, **engine: Any) -> Model:
    return get_model(script, engine=Engine(records=records, **engine))


def figures(run: Run) -> dict[str, float | None]:
    return {figure.metric: figure.value for figure in run.figures}


WAYS: tuple[Mapping[str, Any], ...] = (
    {},
    {"by": "rating"},
    {"by": "rating", "draws": 2},
    {"context": "region"},
    {"context": "region", "by": "yes-no", "region": "hide"},
)


def planned(task: SherlockTask, model: Model) -> Any:
    job = run_job(task, [SampleEpoch(sample=each, epoch=0) for each in task.samples()], model.engine)
    return run_sync(job.plan())


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_what_was_planned_is_asked_and_replayed(
    kind: type[SherlockTask], way: Mapping[str, Any], data: Path, tmp_path: Path
) -> None:
    records, script = MemoryStore(), scripted(seeing)
    model = model_of(script, records)
    task = kind(data=data, vlm=model, **way)

    plan = planned(task, model)
    assert script.requests == []
    run = evaluate(task, out=tmp_path / "run")

    assert len(script.requests) == plan.calls
    assert {answer.prediction.outcome for answer in run.answers} == {"answered"}
    assert planned(task, model).calls == 0
    nobody = scripted(lambda _: pytest.fail("a replay asks nobody"))
    replay = kind(data=data, vlm=model_of(nobody, records, mode="replay"), **way)
    assert figures(evaluate(replay, out=tmp_path / "again")) == figures(run)


def test_a_plan_over_recorded_descriptions_counts_what_is_asked_of_them_once(data: Path, tmp_path: Path) -> None:
    script = scripted(seeing)
    model = model_of(script, MemoryStore())
    evaluate(InferenceComparison(data=data, vlm=model, context="region"), out=tmp_path / "rated")
    task = InferenceComparison(data=data, vlm=model, context="region", by="yes-no")
    asked = len(script.requests)

    plan = planned(task, model)
    evaluate(task, out=tmp_path / "weighed")

    assert len(script.requests) - asked == plan.calls > 0


@pytest.mark.parametrize("kind", TASKS)
def test_a_blind_model_is_tied_under_swapped_regions(kind: type[SherlockTask], data: Path, tmp_path: Path) -> None:
    task = kind(data=data, vlm=model_of(scripted(), MemoryStore()))

    plain = evaluate(task, out=tmp_path / "plain")
    swapped = evaluate(controlled(task, "swapped-region"), out=tmp_path / "swapped")

    assert figures(plain) == figures(swapped)


def test_a_prompt_that_was_asked_before_is_no_earlier_state_of_another(data: Path, tmp_path: Path) -> None:
    model = model_of(scripted(), MemoryStore())
    evaluate(InferenceComparison(data=data, vlm=model), out=tmp_path / "run")

    plan = planned(InferenceComparison(data=data, vlm=model, by="rating"), model)

    assert (plan.calls, plan.changed_prompts) == (12, ())


def test_an_order_is_asked_once_a_region(data: Path, tmp_path: Path) -> None:
    script = scripted()

    run = evaluate(
        InferenceComparison(data=data, vlm=model_of(script, MemoryStore()), by="choice", orders=2),
        out=tmp_path / "run",
    )

    assert len(script.requests) == 3 * 2
    assert run.label == "eye (I, choice, 2 orders)"


def test_a_region_is_described_once_for_all_inferences(data: Path, tmp_path: Path) -> None:
    eye, mind, records = scripted(seeing), scripted(), MemoryStore()
    models = {"vlm": model_of(eye, records), "llm": model_of(mind, records)}

    run = evaluate(InferenceComparison(data=data, context="region", **models), out=tmp_path / "run")

    assert len(eye.requests) == 3 * 3
    assert len(mind.requests) == 3 * 4
    assert not any(isinstance(part, ImagePart) for request in mind.requests for part in request.messages[-1].parts)
    assert figures(run)["marks described"] == 1


def test_labels_that_are_not_likely_are_counted(data: Path, tmp_path: Path) -> None:
    script = scripted(lambda _: one_token({"Well": 0.9, "yes": 0.1}))

    run = evaluate(InferenceComparison(data=data, vlm=model_of(script, MemoryStore())), out=tmp_path / "run")

    assert figures(run)["floored"] == 4
    assert figures(run)["tied pairs"] == 1


def test_a_whole_chunk_is_asked_about_only_where_its_pairs_are_few(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = scripted()
    model = model_of(script, MemoryStore())
    monkeypatch.setattr(region_reranker, "MOST_ASKED", 49)

    assert planned(Retrieval(data=data, vlm=model, chunk=0), model).calls == 6 * 7  # an inference stands there twice
    with pytest.raises(UsageError) as caught:
        Retrieval(data=data, vlm=model).evaluation()

    assert str(caught.value).startswith(
        "To ask about 13 regions with each inference of their chunks takes up to 85 calls; without an encoder 49 is "
        "the most."
    )
    assert "-T first=clip:FOLDER -T keep=20" in str(caught.value.hint)
    Retrieval(data=data, vlm=model, first=Encoder(), keep=2).evaluation()
    Localization(data=data, vlm=model).evaluation()
    assert script.requests == []


# --- an encoder first ---


class Encoder:
    """A scorer that knows how long the texts are, and nothing of pictures."""

    id = "length"

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        return [float(len(text)) for text in texts]

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
        return [float(len(text)) + view.boxes[0][0] / 1000 for text in texts]


def test_a_model_orders_the_best_of_an_encoder(data: Path, tmp_path: Path) -> None:
    records, script = MemoryStore(), scripted()
    model = model_of(script, records)
    task = Retrieval(data=data, vlm=model, first=Encoder(), keep=2, chunk=0)

    plan = planned(task, model)
    run = evaluate(task, out=tmp_path / "run")

    assert run.label == "eye (I, yes-no, best 2 of length, chunk 0)"
    assert _calls(plan) == 7 * 2 * 2 - 1  # a text stands twice, so that two pairs are one
    assert 7 * 2 <= len(script.requests) <= _calls(plan)
    alone = evaluate(Retrieval(data=data, scorer=Encoder(), engine=model.engine, chunk=0), out=tmp_path / "first")
    asked = evaluate(Retrieval(data=data, vlm=model, chunk=0), out=tmp_path / "asked")
    for merged, first, by_model in zip(*map(_matrices, (run, alone, asked)), strict=True):
        for row, before, wanted in zip(merged, first, by_model, strict=True):
            best, others = np.split(np.argsort(-before, kind="stable"), [2])
            assert row[others].tolist() == before[others].tolist()
            assert row[best].min() > row[others].max()
            assert row[best[0]] - row[best[1]] == pytest.approx(wanted[best[0]] - wanted[best[1]], abs=1e-5)


def _calls(plan: Plan) -> int:
    return sum(line.calls for line in plan.links if not line.computed)


@pytest.mark.parametrize(
    ("kind", "options"), [(Retrieval, {"chunk": 0}), (Localization, {"boxes": "auto"})], ids=["chunk", "proposals"]
)
def test_what_an_encoder_said_is_planned_exactly_and_replayed_without_it(
    kind: type[SherlockTask], options: Mapping[str, Any], data: Path, tmp_path: Path
) -> None:
    records, other = MemoryStore(), ScriptedModel(blind, identity="other", capabilities=SCHEMA)
    options = {"data": data, "first": Encoder(), "keep": 2, **options}
    eye, model = model_of(scripted(), records), model_of(other, records)
    run = evaluate(kind(vlm=eye, **options), out=tmp_path / "run")

    again, plan = (planned(kind(vlm=vlm, **options), vlm) for vlm in (eye, model))
    evaluate(kind(vlm=model, **options), out=tmp_path / "other")
    assert (again.calls, plan.calls, plan.hits) == (0, len(other.requests), len(run.answers))

    nobody = model_of(scripted(lambda _: pytest.fail("a replay asks nobody")), records, mode="replay")
    form = run.configuration["options"]["first"]
    replay = evaluate(kind(vlm=nobody, **{**options, "first": form}), out=tmp_path / "replay")
    assert figures(replay) == figures(run)
    write_pack([run], tmp_path / "runs.pack")
    with open_pack(tmp_path / "runs.pack") as pack:
        check = run_sync(check_pack(pack, tasks={kind.name: kind}))
    assert (check.follows, check.unchecked) == (True, 0)


def test_a_model_orders_the_best_proposals_of_an_encoder(data: Path, tmp_path: Path) -> None:
    script, records = scripted(), MemoryStore()
    auto = {"data": data, "boxes": "auto"}

    run = evaluate(Localization(vlm=model_of(script, records), first=Encoder(), keep=2, **auto), out=tmp_path / "run")

    pairs = sum(2 * len({*answer.sample.inputs["inferences"]}) for answer in run.answers)
    assert len(script.requests) == pairs
    alone = evaluate(Localization(scorer=Encoder(), engine=Engine(records=records), **auto), out=tmp_path / "alone")
    asked = evaluate(Localization(vlm=model_of(script, records), **auto), out=tmp_path / "asked")
    for merged, first, by_model in zip(*map(_matrices, (run, alone, asked)), strict=True):
        for column, before, wanted in zip(merged.T, first.T, by_model.T, strict=True):
            best, others = np.split(np.argsort(-before, kind="stable"), [2])
            assert column[others].tolist() == before[others].tolist()
            assert column[best].min() > column[others].max()
            assert column[best[0]] - column[best[1]] == pytest.approx(wanted[best[0]] - wanted[best[1]], abs=1e-5)


def _matrices(run: Run) -> Sequence[Any]:
    answers = sorted(run.answers, key=lambda answer: answer.sample.id)
    return [answer.prediction.matrix.array for answer in answers if answer.prediction.matrix is not None]


@pytest.mark.parametrize("first", [{}, {"first": Encoder(), "keep": 6}], ids=["all", "best"])
def test_a_picture_that_cannot_be_shown_fails_its_own_sample(
    first: Mapping[str, Any], data: Path, tmp_path: Path
) -> None:
    name = corpus.SCENES[3].path.rpartition("/")[2]

    def reply(request: ChatRequest) -> ChatResponse:
        if any(isinstance(part, ImagePart) and part.shown.image.name == name for part in request.messages[-1].parts):
            raise BadImage(f"{name!r} is damaged.")
        return blind(request)

    run = evaluate(
        Retrieval(data=data, vlm=model_of(scripted(reply), MemoryStore()), chunk=0, **first), out=tmp_path / "run"
    )

    (failed,) = [answer for answer in run.answers if not answer.prediction.answered]
    assert (failed.sample.image and failed.sample.image.name, failed.prediction.reason) == (
        name,
        f"{name!r} is damaged.",
    )
    traces = [answer.prediction.trace for answer in run.answers if answer.prediction.answered]
    assert [trace["missing"] for trace in traces] == [[failed.sample.tags["place"]]] * 6


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Localization, {"by": "choice"}, "by=choice puts the inferences of one region in order"),
        (Retrieval, {"by": "choice"}, "by=choice puts the inferences of one region in order"),
        (InferenceComparison, {"llm": scripted()}, "the context `I` shows the picture"),
        (InferenceComparison, {"vlm": None}, "There is no model that sees the picture"),
        (
            InferenceComparison,
            {"vlm": None, "llm": scripted(), "context": "region"},
            "There is no model that sees the picture",
        ),
        (InferenceComparison, {"top": 0}, "by=yes-no compares log-probabilities"),
        (Retrieval, {"keep": 2}, "go together"),
        (Retrieval, {"first": Encoder()}, "go together"),
        (Localization, {"first": Encoder(), "keep": 2}, "are assigned to inferences by all"),
        (InferenceComparison, {"solver": "random"}, "A solver takes the place of models"),
        (InferenceComparison, {"vlm": None, "scorer": PlausibilityScorer(scripted())}, "is no encoder"),
        (InferenceComparison, {"vlm": None, "solver": "longest"}, "scores no regions"),
    ],
)
def test_what_cannot_be_asked_is_named(
    kind: type[SherlockTask], options: Mapping[str, Any], message: str, data: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        kind(**{"data": data, "vlm": model_of(scripted(), MemoryStore()), **options}).evaluation()
