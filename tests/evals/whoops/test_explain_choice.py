"""`whoops/explain-choice`: easy and hard negatives, files keyed by id and by position, figures by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import BadData, UsageError
from askance.evals import evaluate
from askance.evals.negatives import Recipe, generate
from askance.evals.whoops import ExplainChoice, Whoops
from askance.evals.whoops.explain_choice import statements
from tests.evals.pittads.worlds import shown
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS, NAMES
from tests.evals.whoops.worlds import choosing, model, seen


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return files.first_release(tmp_path / "data")


def own(name: str) -> Callable[[str], bool]:
    """Whether an explanation is of this picture."""
    return lambda text: name.replace("-", " ") in text


def test_easy_negatives_are_explanations_of_other_images(data: Path) -> None:
    task = ExplainChoice(data=data, vlm=model(), count=7)

    for sample, name in zip(task.samples(), NAMES, strict=True):
        options: list[str] = sample.inputs["options"]
        right = [n for n, text in enumerate(options, start=1) if own(name)(text)]
        assert (len(options), len({*options}), right) == (8, 8, sample.target["true"])
        assert sample.target["kinds"].count("other image") == 7
    assert {sample.target["true"][0] for sample in task.samples()} != {1}


def test_the_seed_decides_what_is_drawn(data: Path) -> None:
    def options(**more: Any) -> list[Any]:
        return [sample.inputs["options"] for sample in ExplainChoice(data=data, vlm=model(), **more).samples()]

    assert options() == options()
    assert options() != options(seed=1)
    assert [sorted(each) for each in options()] == [sorted(each) for each in options(orders=2)[::2]]
    assert options(orders=2)[0] == options(orders=2)[1][::-1]


def clever(request: ChatRequest) -> Any:
    """Right about the first two pictures, wrong about the others."""
    place = IDS.index(seen(request))
    right = own(NAMES[place])
    return choosing(right if place < 2 else lambda text: not right(text))(request)


def test_figures_by_hand(data: Path, tmp_path: Path) -> None:
    vlm = model(choose_explanation_from_picture=clever)
    run = evaluate(ExplainChoice(data=data, vlm=vlm), out=tmp_path / "run")
    figures = shown(run)

    assert {name: figures[name] for name in figures if name.startswith(("accuracy", "error: other"))} == {
        "accuracy": 40,
        "error: other image": 60,
        "accuracy: Art knowledge": 0,
        "accuracy: Biological rules": 0,
        "accuracy: Nutrition mismatch": 100,
        "accuracy: Physical rules": 50,
    }


def test_the_described_picture_is_chosen_for_by_words(data: Path, tmp_path: Path) -> None:
    llm = model(choose_explanation=choosing(own("brick-cup")))
    run = evaluate(ExplainChoice(data=data, llm=llm, context="text-only", limit=1), out=tmp_path / "run")

    assert shown(run)["accuracy"] == 100
    assert "No description of the image is available." in run.answers[0].sample.inputs["description"]


def hard_file(path: Path, keys: tuple[str, ...]) -> Path:
    """The authors' shape: right explanations, then options."""
    rows = files.rows()
    content = {
        key: [rows[n]["crowd_explanations"][:2], [*rows[n]["crowd_explanations"][:2], f"wrong {n}", f"false {n}"]]
        for n, key in enumerate(keys)
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("keys", [IDS[:2], ("0", "1"), ("0.png", "1.png")], ids=["ids", "positions", "files"])
def test_hard_negatives_come_from_a_file(keys: tuple[str, ...], data: Path, tmp_path: Path) -> None:
    qa = hard_file(tmp_path / "hard.json", keys)
    vlm = model(choose_explanation_from_picture=choosing(own("brick-cup")))

    task = ExplainChoice(data=data, vlm=vlm, negatives="hard", qa=qa)
    run = evaluate(task, out=tmp_path / "run")

    assert [sample.id for sample in task.samples()] == list(IDS[:2])
    assert [len(sample.inputs["options"]) for sample in task.samples()] == [3, 3]
    assert "3 of 5 images are left out: the file has no options of them" in run.notes
    right = run.answers[1].prediction.value == run.answers[1].sample.target["true"]
    assert shown(run)["accuracy"] == (100 if right else 50)
    assert shown(run)["error: unknown hard negative"] == (0 if right else 50)
    both = ExplainChoice(data=data, vlm=vlm, negatives="hard", qa=qa, true="all")
    assert [len(sample.target["true"]) for sample in both.samples()] == [2, 2]


def test_a_file_of_one_right_explanation_and_a_question_is_read(data: Path, tmp_path: Path) -> None:
    right = files.rows()[4]["crowd_explanations"][0]
    qa = tmp_path / "recast.json"
    qa.write_text(json.dumps({"4": ["Why?", right, ["wrong", right]]}), encoding="utf-8")

    (sample,) = ExplainChoice(data=data, vlm=model(), negatives="hard", qa=qa).samples()

    assert sample.id == IDS[4]
    assert [sample.inputs["options"][n - 1] for n in sample.target["true"]] == [right]


def test_what_the_generator_writes_can_be_chosen_from(data: Path, tmp_path: Path) -> None:
    def negative(request: Any) -> Any:
        return {
            "negatives": [
                {"statement": f"Wrong in {len(request.messages[-1].text)}", "replaced": "", "replacement": ""}
            ]
        }

    kinds = ("verb", "causal", "random")
    writer = model(negative=negative)
    recipe = Recipe(domain="explanations", kinds=kinds, most=1)
    generate(statements(Whoops.open(data)), writer, out=tmp_path / "made", recipe=recipe)
    qa = tmp_path / "made" / recipe.file(None)

    task = ExplainChoice(data=data, vlm=model(), negatives="hard", qa=qa)

    assert [sample.id for sample in task.samples()] == list(IDS)
    for sample in task.samples():
        assert {"true", "random"} <= {*sample.target["kinds"]} <= {"true", "random", "verb", "causal"}


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "hard without a file": ({"negatives": "hard"}, UsageError, "not part of the data set"),
    "another kind": ({"negatives": "harder"}, UsageError, "It takes one of `easy`, `hard`"),
    "none": ({"count": 0}, UsageError, "It takes a whole number from 1"),
    "too many": ({"count": 21}, BadData, "fewer than 21 explanations"),
    "context": ({"context": "V+T+s_IN"}, UsageError, "no context"),
}


@pytest.mark.parametrize(("options", "kind", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_said(options: Any, kind: type[Exception], message: str, data: Path) -> None:
    with pytest.raises(kind, match=message):
        ExplainChoice(data=data, vlm=model(), **options).evaluation()


def test_a_file_of_other_images_is_said(data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"No key of .* such as 'x\.png'"):
        ExplainChoice(data=data, vlm=model(), qa=hard_file(tmp_path / "hard.json", ("x.png", "y.png"))).evaluation()
