"""Comparison at both ends: a model that sees nothing is at 0, one that knows people's mean ratings at `oracle`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from hashlib import md5
from pathlib import Path
from random import Random
from typing import Any

import pytest
from PIL import Image as Pillow

from askance.chat import ChatRequest, ChatResponse
from askance.errors import NoLogprobs
from askance.evals import Run, evaluate
from askance.evals.controls import controlled
from askance.evals.sherlock import InferenceComparison
from askance.models import Capabilities, Engine, Model, ScriptedModel, get_model
from askance.replay import MemoryStore
from tests.evals.sherlock import corpus

REGIONS, CANDIDATES = 16, 5
TEXTS = tuple(f"inference {number} of many" for number in range(60))

Ratings = dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ratings]:
    """Regions of plain pictures with candidates, rated at random; and by picture and candidate the mean rating."""
    folder, random = tmp_path_factory.mktemp("rated"), Random(5)
    instances, answers, means = list[corpus.Row](), list[corpus.Row](), Ratings()
    ids: dict[str, corpus.Row] = {}
    for number in range(REGIONS):
        path = f"VG_100K/{number}.jpg"
        url, file = f"{corpus.VG}{path}", folder / "images" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        Pillow.new("RGB", (20, 20), (number * 15, 80, 80)).save(file, "JPEG")
        name, candidates = _id("region", number), list[corpus.Row]()
        for text in random.sample(TEXTS, CANDIDATES):
            first, test_id, source = random.randint(1, 3), _id(number, text), _id(text)
            second = min(3, max(1, first + random.choice((-1, 0, 0, 1))))
            image = {"url": url, "width": 20, "height": 20}
            box = {"left": 2, "top": 2, "width": 9, "height": 9}
            instances.append(
                {
                    "image": image,
                    "region": [box],
                    "inference": text,
                    "test_id": test_id,
                    "extra_info": {"task": "comparison"},
                }
            )
            ids[test_id] = {"Input_iid": name, "candidate": source}
            candidates.append({"source_iid": source, "annot1": first, "annot2": second})
            means[f"{number}.jpg", text] = (first + second) / 2
        answers.append({"Input_iid": name, "candidates": candidates})
    home = folder / "leaderboard_eval" / "val_comparison"
    corpus.write_json(home / "val_comparison_instances.json", instances)
    corpus.write_json(home / "val_comparison_instance_ids.json", sorted(row["test_id"] for row in instances))
    corpus.write_json(home / "val_comparison_answer_key.json", {"test_id_map": ids, "annotations": answers})
    return folder, means


def _id(*parts: Any) -> str:
    return md5(json.dumps(parts).encode(), usedforsecurity=False).hexdigest()


def model_of(likely: Callable[[str, str], float]) -> Model:
    """A model that finds yes as likely as a function of picture and inference says."""

    def reply(request: ChatRequest) -> ChatResponse:
        (part,) = request.images
        told = request.messages[-1].text
        text = next(text for text in TEXTS if text in told)
        yes = likely(part.shown.image.name, text)
        top = {"Yes": math.log(yes), "No": math.log(1 - yes)}
        token = max(top, key=lambda each: top[each])
        return ChatResponse(
            text=token, finish="length", logprobs=({"token": token, "logprob": top[token], "top": top},)
        )

    script = ScriptedModel(reply, identity="eye", capabilities=Capabilities(schema="enforced"))
    return get_model(script, engine=Engine(records=MemoryStore()))


def figure(run: Run, name: str = "human accuracy") -> Any:
    return next(each for each in run.figures if each.metric == name)


def test_a_blind_model_is_at_zero_within_its_interval_whatever_it_is_shown(
    rated: tuple[Path, Ratings], tmp_path: Path
) -> None:
    task = InferenceComparison(data=rated[0], vlm=model_of(lambda _, text: (int(_id(text), 16) % 97 + 1) / 99))

    plain = figure(evaluate(task, out=tmp_path / "plain"))
    swapped = figure(evaluate(controlled(task, "swapped-region"), out=tmp_path / "swapped"))

    assert plain.interval.low < 0 < plain.interval.high
    assert swapped.value == plain.value


def test_a_model_that_knows_the_mean_ratings_is_at_the_oracle(rated: tuple[Path, Ratings], tmp_path: Path) -> None:
    folder, means = rated
    task = InferenceComparison(data=folder, vlm=model_of(lambda name, text: means[name, text] / 4))

    run = evaluate(task, out=tmp_path / "run")

    assert figure(run).value == pytest.approx(figure(run, "oracle").value)
    assert figure(run).value > 0.7


def test_a_run_stops_at_its_first_region_where_the_endpoint_gives_no_log_probabilities(
    rated: tuple[Path, Ratings], tmp_path: Path
) -> None:
    script = ScriptedModel(lambda _: "Yes", identity="eye", capabilities=Capabilities(schema="enforced"))
    model = get_model(script, engine=Engine(records=MemoryStore(), concurrency=1))

    with pytest.raises(NoLogprobs, match="Stopped at the first sample, since the others would fail alike"):
        evaluate(InferenceComparison(data=rated[0], vlm=model), out=tmp_path / "run")

    assert len(script.requests) < REGIONS * CANDIDATES
