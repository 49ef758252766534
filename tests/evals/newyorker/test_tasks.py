"""Tasks over cartoons: contexts, folds, examples, orders, encoders, recorded replies and the leaderboard."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest, ImagePart
from askance.errors import AskanceError, BadData, UsageError
from askance.evals import Run, aevaluate, evaluate
from askance.evals.analysis.rescore import rescore
from askance.evals.newyorker import CartoonMatching, CartoonRanking, JokeExplanation, NewYorker, submission_of
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.suite.context import NOTHING
from askance.images import Image
from askance.models import (
    Capabilities,
    Engine,
    Model,
    ScriptedEmbedder,
    ScriptedModel,
    ScriptedScorer,
    get_model,
    run_sync,
)
from askance.replay import MemoryStore
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.cartoons import ANIMALS, CONTESTS, animal
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


LETTERS = ScriptedEmbedder(lambda text: [float(text.count(letter)) for letter in "abcdef"], identity="letters")


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


def test_folds_that_test_nothing_are_left_out_of_the_mean(asked: Asked, tmp_path: Path) -> None:
    """Tasks that were built from few rated contests have such folds."""
    folder = cartoons.repository(tmp_path / "data")
    for fold in (0, 3):
        file = folder / "tasks" / f"quality_ranking_split={fold}_cleaned.json"
        file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "test": []}), "utf-8")
    task = CartoonRanking(data=folder, llm=asked.model, context="description")
    run = evaluate(task)
    found = figures(run)

    assert {answer.sample.tags["fold"] for answer in run.answers} == {1, 2, 4}
    assert found["accuracy"] == pytest.approx(sum(found[f"accuracy: fold {fold}"] or 0 for fold in (1, 2, 4)) / 3)
    assert "accuracy: fold 0" not in found
    assert any("Folds 1, 2, 4 of 5, not comparable" in note for note in task.scorer().notes)
    with pytest.raises(BadData, match="No item of ranking"):
        CartoonRanking(data=folder, llm=asked.model, context="description", fold=3).samples()


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
    plan = await run_job(
        task, [SampleEpoch(sample=each, epoch=0) for each in task.samples()], asked.model.engine
    ).plan()
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
        assert picture.shown.image.sha256 in drawn


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


@pytest.mark.parametrize("context", ["I", "description-2", "socratic", "caption-only"])
def test_examples_are_of_other_contests_of_the_training_part(data: Path, asked: Asked, context: str) -> None:
    task = CartoonMatching(data=data, vlm=asked.model, context=context, fold=1, shots=2)
    train = {split for split in CONTESTS if cartoons.split_of(split, 1) == "train"}
    samples = task.samples()
    evaluate(task)

    assert len(samples) == 9
    for sample in samples:
        shown = [example.values["options"] for example in sample.inputs["examples"]]
        of_train = [sum(animal(contest) in " ".join(options) for contest in train) for options in shown]
        assert len(of_train) == 2
        assert all(of_train)
    for request in asked:
        if name_of(request).startswith("match_caption"):
            roles = [message.role for message in request.messages if message.role != "system"]
            pictures = sum(isinstance(part, ImagePart) for message in request.messages for part in message.parts)
            assert roles == ["user", "assistant"] * 2 + ["user"]
            assert pictures == (3 if context == "I" else 0)
            assert "place" in request.messages[-1].text.casefold() or context in {"I", "caption-only"}


def test_examples_do_not_depend_on_what_else_is_asked(data: Path, asked: Asked) -> None:
    def shown(**options: Any) -> dict[str, Any]:
        task = CartoonRanking(data=data, llm=asked.model, context="description", shots=3, **options)
        return {sample.id: sample.form()["inputs"]["examples"] for sample in task.samples()}

    whole = shown()
    part = shown(limit=7)

    assert len(part) == 7
    assert {name: whole[name] for name in part} == part
    assert shown(fold=3).items() <= whole.items()
    assert shown(seed=1) != whole


def by_animal(text: str) -> list[float]:
    """Cartoons of one place are alike, and animals a little so."""
    places = [float(f"Place: {place}" in text) for place in cartoons.PLACES]
    return [*places, *(0.1 * (f"{each} talks" in text) for each in ANIMALS), 0.01]


@pytest.mark.parametrize("how", ["knn", "mmr", "balanced"])
async def test_examples_like_the_cartoon_are_of_the_training_part_and_told(
    data: Path, asked: Asked, tmp_path: Path, how: Any
) -> None:
    embedder = ScriptedEmbedder(by_animal, identity="animals")
    task = CartoonMatching(
        data=data, llm=asked.model, context="description", fold=1, shots=3, shots_from=how, embedder=embedder
    )
    run = await aevaluate(task, out=tmp_path / "run")
    train = {contest for contest in CONTESTS if cartoons.split_of(contest, 1) == "train"}

    for answer in run.answers:
        told, examples = answer.sample.trace["shots"], answer.sample.inputs["examples"]
        contests = [each["group"] for each in told["chosen"]]
        assert len({*contests}) == 3
        assert {*contests} <= train
        assert [each["similarity"] for each in told["chosen"]] == sorted(each["similarity"] for each in told["chosen"])
        for contest, example in zip(contests, examples, strict=True):
            assert f"{animal(contest)} talks" in example.values["description"]
        if how == "balanced":
            assert len({example.answer for example in examples}) == 3
        if how == "knn":
            place = examples[-1].values["description"].splitlines()[0]
            assert (told["chosen"][-1]["similarity"] > 0.9) == (place in embedder_texts(answer.sample))
    assert run.name.endswith(f"3 shots by {how})")
    shutil.rmtree(data)
    again = await rescore(Run.open(run.path), CartoonMatching, reread=True)
    assert (again.reread, again.changed, again.kept) == (9, (), ())
    assert again.run.figures == run.figures


def embedder_texts(sample: Any) -> str:
    return f"Place: {sample.inputs['location']}"


def test_two_orders_turn_the_captions_round(data: Path, asked: Asked, tmp_path: Path) -> None:
    run = evaluate(CartoonRanking(data=data, llm=asked.model, context="caption-only", orders=2), out=tmp_path / "run")
    found = figures(run)

    assert len(run.answers) == 2 * len({answer.sample.group for answer in run.answers}) * 3
    assert found["accuracy"] == 0.5  # it always says A
    assert found["right in both orders"] == found["same answer in both orders"] == 0
    assert found["first said"] == 1


def test_an_encoder_ranks_by_the_editors_choice_and_by_the_crowds(data: Path) -> None:
    scorer = ScriptedScorer(lambda _, text: float("joke 0" in text or "joke 1" in text), identity="fits")
    run = evaluate(CartoonRanking(data=data, scorer=scorer, prefix="caption: "))
    found = figures(run)

    assert all(text.startswith("caption: ") for _, texts in scorer.asked for text in texts)
    # jokes 0 and 1 are the editors', joke 2 is the crowd's, and the encoder finds neither caption of its pair better
    assert (found["accuracy_ny"], found["accuracy_crowd"]) == (1, 0)
    assert found["accuracy"] == pytest.approx(2 / 3)


def test_letters_tell_a_model_that_says_one_from_chance(data: Path, asked: Asked) -> None:
    found = figures(evaluate(CartoonMatching(data=data, llm=asked.model, context="caption-only")))
    true = Counter(item.label for fold in range(5) for item in NewYorker.open(data).items("matching", fold=fold))

    assert found["said A"] == 1
    assert found["chance by letters"] == pytest.approx(true["A"] / true.total())
    assert found["accuracy, pooled"] == found["chance by letters"]


@pytest.mark.parametrize("reading", ["ours", "official", "leaderboard"])
def test_recorded_replies_need_no_model_and_no_picture(tmp_path: Path, reading: Any) -> None:
    data = cartoons.lines(tmp_path / "data", pictures=False)
    items = [item for fold in range(5) for item in NewYorker.open(data).items("matching", fold=fold)]
    rows = [{"instance_id": item.id, "response": f"It fits.\n\nAnswer: {item.label}"} for item in items]
    file = tmp_path / "replies.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run = evaluate(CartoonMatching(data=data, answers=file, reading=reading), out=tmp_path / "run")

    assert figures(run)["accuracy"] == figures(run)["accuracy, official reading"] == 1
    assert submission_of(run).answers == {item.id: item.label for item in items}


def test_recorded_replies_in_prose_are_extracted_and_rescored(tmp_path: Path) -> None:
    data = cartoons.lines(tmp_path / "data", pictures=False)
    items = [item for fold in range(5) for item in NewYorker.open(data).items("matching", fold=fold)]
    rows = [{"instance_id": item.id, "response": f"I laughed most at the {item.label}-th of them."} for item in items]
    file = tmp_path / "replies.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    def extract(request: ChatRequest) -> str:
        (found,) = re.findall(r"at the (\w)-th", request.messages[-1].text)
        return json.dumps({"quote": f"at the {found}-th", "answers": [found]})

    script = ScriptedModel(extract, identity="reader", capabilities=Capabilities(schema="enforced"))
    task = CartoonMatching(data=data, answers=file).evaluation()
    assert figures(evaluate(task))["accuracy"] == 0
    engine = Engine(records=MemoryStore())
    run = evaluate(task.with_extractor(get_model(script, engine=engine)), out=tmp_path / "run", engine=engine)

    assert figures(run)["accuracy"] == 1
    asked = len(script.requests)
    assert run_sync(rescore(run, CartoonMatching, reread=True)).changed == ()
    assert len(script.requests) == asked
    official = CartoonMatching(data=data, answers=file, reading="official").evaluation()
    with pytest.raises(UsageError, match="read by the papers' rule"):
        official.with_extractor(get_model(script))


def test_the_leaderboard_is_answered_without_figures(tmp_path: Path, asked: Asked) -> None:
    data = cartoons.leaderboard(tmp_path / "data")
    task = CartoonMatching(data=data, vlm=asked.model, fold="leaderboard")
    run = evaluate(task, out=tmp_path / "run")

    assert all(figure.value is None for figure in run.figures if figure.metric == "accuracy")
    assert figures(run)["said A"] == 1
    assert {*submission_of(run).answers.values()} == {"A"}


def test_a_joke_is_explained_and_held_against_the_authors_words(data: Path, asked: Asked, tmp_path: Path) -> None:
    task = JokeExplanation(data=data, llm=asked.model, context="description")
    run = evaluate(task, out=tmp_path / "run")
    sample = run.answers[0].sample

    assert sample.target["references"][0].startswith("Real ")
    assert sample.target["tokens"] == len(sample.target["references"][0].split()) + 3
    assert "caption: The " in task.question_of(sample).about
    assert figures(run)["words"] == 4
    assert all("has heard joke 0 before" in request.messages[-1].text for request in asked)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shots": 2, "step_by_step": True}, "Examples show answers without reasoning"),
        ({"shots": 2, "context": "T_V"}, "are not verbalized"),
        ({"shots": 2, "shots_from": "knn"}, "Nothing says what examples are like a question"),
        ({"shots": 2, "shots_from": "knn", "embedder": LETTERS}, "nothing is said of its picture before the run"),
        ({"shots": 30}, "30 examples cannot be drawn from 9 contests of fold 0"),
        ({"ids": ["nothing", "5"]}, "1 of 2 names in the list are those of no item, such as 'nothing'"),
        ({"fold": "leaderboard"}, "no leaderboard"),
        ({"scorer": ScriptedScorer(lambda image, text: 0.0)}, "A scorer ranks by the picture alone"),
        (
            {"vlm": None, "answers": Path("replies.jsonl"), "scorer": ScriptedScorer(lambda image, text: 0.0)},
            "Recorded replies and a scorer both take the place of models",
        ),
        (
            {"vlm": None, "shots": 1, "scorer": ScriptedScorer(lambda image, text: 0.0)},
            "A scorer ranks by the picture alone",
        ),
        ({"context": "gold-caption"}, "has no context 'gold-caption'"),
    ],
)
def test_what_cannot_be_asked_is_refused(data: Path, asked: Asked, options: dict[str, Any], message: str) -> None:
    made: dict[str, Any] = {"data": data, "vlm": asked.model, **options}
    with pytest.raises(AskanceError) as caught:
        CartoonMatching(**made).evaluation()

    assert message in str(caught.value)
    assert caught.value.hint


def test_a_list_may_name_items_of_other_folds(data: Path, asked: Asked) -> None:
    whole = CartoonMatching(data=data, vlm=asked.model)
    fold = {item.contest: item.fold for item in whole.subset.items}
    listed = [str(contest) for contest in CONTESTS[:2]]

    for contest in CONTESTS[:2]:
        task = CartoonMatching(data=data, vlm=asked.model, ids=listed, fold=fold[contest])
        assert {sample.tags["contest"] for sample in task.samples()} == {
            each for each in CONTESTS[:2] if fold[each] == fold[contest]
        }
    other = next(number for number in range(5) if number not in {fold[contest] for contest in CONTESTS[:2]})
    with pytest.raises(BadData, match=f"The list names no item of the test part of fold {other}"):
        CartoonMatching(data=data, vlm=asked.model, ids=listed, fold=other).samples()
    with pytest.raises(BadData, match=r"1 of 3 names in the list are those of no item, such as 'nobody'"):
        CartoonMatching(data=data, vlm=asked.model, ids=[*listed, "nobody"], fold=other).samples()


def test_items_without_a_description_are_left_out_and_said(tmp_path: Path, asked: Asked) -> None:
    data = cartoons.from_pixels(tmp_path / "data")
    with pytest.raises(BadData, match="can be asked in the context 'description'"):
        CartoonMatching(data=data, llm=asked.model, context="description").samples()


def test_a_missing_cartoon_is_left_out_and_said(data: Path, asked: Asked) -> None:
    gone = next(data.rglob(f"{CONTESTS[0]}.jp*g"))
    gone.unlink()
    task = CartoonMatching(data=data, vlm=asked.model)

    assert len(task.samples()) == 3 * (len(CONTESTS) - 1)
    assert "3 of 45 items are left out: no picture" in task.notes()
