"""Examples before the questions of a YAML task: which rows are shown, as what, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from askance.errors import AskanceError
from askance.evals import Task, evaluate, find_task
from askance.evals.run_plan import planning
from askance.evals.task_catalog import task_of
from askance.models import Engine, ScriptedEmbedder, get_model
from askance.replay import MemoryStore
from tests.cli.command import draw
from tests.scripted import model_of, scripted

ASKED = "name: cups\ndata: rows.jsonl\nchain: ask\nscore: exact\n"
QUESTIONS = ("What is the cup made of?", "Who sits on the horse?", "What colour is the cup?", "How many stars?", "Why?")
PICTURES = tuple(f"{number}.png" for number in range(5))
ROWS = [
    {"image": picture, "question": question, "target": [f"answer {picture}", "else"]}
    for picture, question in zip(PICTURES, QUESTIONS, strict=True)
]
CHOICES = [{"image": picture, "options": ["tea", "bricks", f"cup {picture}"], "target": [1, 2]} for picture in PICTURES]


@pytest.fixture(autouse=True)
def pictures(own_place: Path) -> None:
    draw(own_place, *PICTURES)


def task(text: str, rows: list[dict[str, Any]], script: Any = None, **options: Any) -> Task:
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    Path("cups.yaml").write_text(text, encoding="utf-8")
    return find_task("cups.yaml")(vlm=model_of(script or scripted()), **options)


def shown_before(task: Task) -> Mapping[str, list[Any]]:
    return {sample.id: sample.inputs["examples"] for sample in task.samples()}


def test_rows_of_other_pictures_are_shown_with_their_answers() -> None:
    script = scripted(ask_about_picture={"answer": "else"})
    cups = task(ASKED, ROWS, script, shots=2)

    shown = shown_before(cups)
    run = evaluate(cups, out="run")

    for name, examples in shown.items():
        assert len({example.image.name for example in examples} - {name}) == 2
        assert all(example.answer == f"answer {example.image.name}" for example in examples)
        assert all(example.values["question"] in QUESTIONS for example in examples)
    roles = [message.role for message in script.requests[0].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert '{"answer": "answer ' in str(script.requests[0].messages[2])
    assert (run.figure("accuracy").value, run.options["shots"]) == (1, 2)
    assert any("other rows of the data" in note for note in run.notes)
    assert task_of(run).of_run(run.options).kept() == cups.kept()


def test_the_question_with_the_same_words_stands_last() -> None:
    examples = shown_before(task(ASKED, ROWS, shots=2, shots_from="bm25"))["0.png"]

    assert examples[-1].values["question"] == "What colour is the cup?"


def test_vectors_find_what_is_like_the_question_and_a_plan_counts_them() -> None:
    embedder = ScriptedEmbedder(lambda text: [float("cup" in text), 0.1], identity="cups")
    options: dict[str, Any] = {"shots": 1, "shots_from": "knn", "embedder": embedder}
    engine = Engine(records=MemoryStore())
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    Path("cups.yaml").write_text(ASKED, encoding="utf-8")
    made = partial(find_task("cups.yaml"), vlm=get_model(scripted(), engine=engine), engine=engine, **options)

    with planning():
        of_folds = made().evaluation().computed
    (sample,) = [sample for sample in made().samples() if sample.id == "0.png"]

    lacking = {key for each in of_folds for key in each.lacking}
    assert ({each.name for each in of_folds}, len(lacking)) == ({"vectors"}, len(ROWS))
    assert sample.inputs["examples"][0].values["question"] == "What colour is the cup?"
    assert sample.trace["shots"]["embedder"] == "cups"


def test_one_question_about_all_pictures_is_no_leak() -> None:
    rows = [{"image": name, "target": name} for name in PICTURES]

    shown = shown_before(task(f"{ASKED}question: What is it?\n", rows, shots=1))

    assert all(len(examples) == 1 and "question" not in examples[0].values for examples in shown.values())


def test_the_labels_of_an_example_stand_as_they_are_to_be_given() -> None:
    text = ASKED.replace("exact", "labels") + "question: Which?\nlabels: [cup, tea, horse]\n"
    script = scripted(ask_about_picture={"answer": ["cup"]})

    evaluate(task(text, [{"image": name, "target": ["cup", "tea"]} for name in PICTURES], script, shots=1), out="run")

    assert '{"answer": ["cup", "tea"]}' in str(script.requests[0].messages[2])


@pytest.mark.parametrize(("more", "answer"), [("choose: single\n", 1), ("count: 2\n", "1, 2")])
def test_options_are_answered_by_their_numbers(more: str, answer: int | str) -> None:
    text = ASKED.replace("ask", "end-to-end").replace("exact", "choice") + more

    examples = [each for some in shown_before(task(text, CHOICES, shots=2)).values() for each in some]

    assert {example.answer for example in examples} == {answer}
    assert all(example.values["options"] for example in examples)


REFUSED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "shows its model no examples": (ASKED.replace("ask", "verbalize").replace("exact", "none"), ROWS[:1]),
    "does not say which words are a right answer": (ASKED.replace("exact", "regex"), ROWS),
    "3 options are asked for, and no row has as many": (
        ASKED.replace("ask", "end-to-end").replace("exact", "choice"),
        CHOICES,
    ),
    "answers from `description`, .*nobody asks about the pictures of examples": (
        ASKED.replace("ask", "action-reason").replace("exact", "choice"),
        CHOICES,
    ),
    "fall into 5 folds, and the data has 4": (ASKED, ROWS[:4]),
    "has `examples` of its own": (ASKED, [*ROWS[:4], {**ROWS[4], "examples": [{"values": {"question": "What?"}}]}]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_examples_that_cannot_be_shown_are_refused(message: str) -> None:
    text, rows = REFUSED[message]
    rows = [{name: value for name, value in row.items() if "verbalize" not in text or name == "image"} for row in rows]

    with pytest.raises(AskanceError, match=message) as caught:
        task(text, rows, shots=1).samples()
    assert caught.value.hint
