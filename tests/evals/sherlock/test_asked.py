"""Models that are asked about regions: by log-odds, by ratings, by an order, from the picture or from words."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.agents import PlausibilityScorer
from askance.chat import ChatRequest, ChatResponse, ImagePart
from askance.errors import UsageError
from askance.evals import Run, evaluate
from askance.evals.controls import controlled
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.sherlock import InferenceComparison, Localization, Retrieval
from askance.evals.sherlock.task import SherlockTask
from askance.images import Image, RegionView
from askance.models import Capabilities, Engine, Model, ScriptedModel, get_model, run_sync
from askance.replay import MemoryStore
from tests.evals.sherlock import corpus
from tests.scripted import name_of

TASKS = (InferenceComparison, Localization, Retrieval)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.write(tmp_path_factory.mktemp("sherlock"))


def one_token(top: Mapping[str, float]) -> ChatResponse:
    logprobs = {token: math.log(value) for token, value in top.items()}
    first = max(logprobs, key=lambda token: logprobs[token])
    return ChatResponse(
        text=first, finish="length", logprobs=({"token": first, "logprob": logprobs[first], "top": logprobs},)
    )


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
    return ScriptedModel(reply, identity="eye", capabilities=Capabilities(schema="enforced"))


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


@pytest.mark.parametrize("kind", TASKS)
def test_a_blind_model_is_tied_under_swapped_regions(kind: type[SherlockTask], data: Path, tmp_path: Path) -> None:
    task = kind(data=data, vlm=model_of(scripted(), MemoryStore()))

    plain = evaluate(task, out=tmp_path / "plain")
    swapped = evaluate(controlled(task, "swapped-region"), out=tmp_path / "swapped")

    assert figures(plain) == figures(swapped)


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
    assert plan.calls == 7 * 2 * 2 - 1  # a text stands twice, so that two pairs are one
    assert 7 * 2 <= len(script.requests) <= plan.calls
    alone = evaluate(Retrieval(data=data, scorer=Encoder(), engine=model.engine, chunk=0), out=tmp_path / "first")
    asked = evaluate(Retrieval(data=data, vlm=model, chunk=0), out=tmp_path / "asked")
    for merged, first, by_model in zip(*map(_matrices, (run, alone, asked)), strict=True):
        for row, before, wanted in zip(merged, first, by_model, strict=True):
            best, others = np.split(np.argsort(-before, kind="stable"), [2])
            assert row[others].tolist() == before[others].tolist()
            assert row[best].min() > row[others].max()
            assert row[best[0]] - row[best[1]] == pytest.approx(wanted[best[0]] - wanted[best[1]], abs=1e-5)


def _matrices(run: Run) -> Sequence[Any]:
    answers = sorted(run.answers, key=lambda answer: answer.sample.id)
    return [answer.prediction.matrix.array for answer in answers if answer.prediction.matrix is not None]


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
        (Localization, {"first": Encoder(), "keep": 2}, "takes no 'first'"),
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
