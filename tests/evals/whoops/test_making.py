"""Questions made from captions: every gate with its count and its reasons, resumed runs, sheets for people."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from askance.agents.vqa import find_candidates, write_question
from askance.chat import ChatRequest
from askance.errors import AuthError, InvalidOutput, UsageError
from askance.evals.whoops import Whoops
from askance.evals.whoops.making import DROPPED, KEPT, Made, QuestionMaker, make, write_validation
from askance.models import Model
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS
from tests.evals.whoops.worlds import REFUSAL, judging, model
from tests.scripted import model_of, scripted

CAPTIONS = {IDS[0]: ["Two walruses swim in the jungle", "Two walruses swim in the jungle today"], IDS[1]: ["A red cup"]}
CANDIDATES = {
    "Two walruses swim in the jungle": ["two", "walruses", "in the jungle", "in the sea"],
    "Two walruses swim in the jungle today": ["in the jungle", "today"],
    "A red cup": ["red", "cup"],
}
QUESTIONS = {
    "two": "How many animals swim?",
    "walruses": "Which walruses swim?",
    "in the jungle": "Where do they swim?",
    "today": "When do they swim?",
    "red": "Which colour has it?",
    "cup": "What is it?",
}
READ = {"How many animals swim?": "two", "Where do they swim?": "in a jungle", "When do they swim?": "at night"}
GUESSED = {"Which colour has it?": "red", "How many animals swim?": "three"}


def quoted(request: ChatRequest, name: str) -> str:
    text = next(turn.text for turn in request.messages if turn.role == "user")
    found = re.search(rf"<<{name} (\w+)\n(.*?)\n\1>>", text, re.DOTALL)
    assert found is not None
    return found[2]


def answered(request: ChatRequest) -> Any:
    """From the caption as in `READ`, or what the question is about; blindly as in `GUESSED`, or not at all."""
    asked = re.search(r"Question: (.*)", request.messages[-1].text)
    assert asked is not None
    question = asked[1]
    if quoted(request, "description").startswith("No description"):
        return {"answer": GUESSED.get(question, "no idea")}
    return {"answer": READ.get(question, next(answer for answer, each in QUESTIONS.items() if each == question))}


def same(reference: str, candidate: str) -> str:
    return "true" if reference.rsplit(maxsplit=1)[-1] == candidate.rsplit(maxsplit=1)[-1] else "false"


def phrases(request: ChatRequest) -> Any:
    return {"answers": CANDIDATES[quoted(request, "caption")]}


def question(request: ChatRequest) -> Any:
    return {"question": QUESTIONS[quoted(request, "answer")]}


def writer(**more: Any) -> Model:
    table: dict[str, Any] = {
        "answer_candidates": phrases,
        "write_question": question,
        "answer_from_description": answered,
        "judge_equivalence": judging(same),
    }
    return model(**{**table, **more})


@pytest.fixture
def entries(tmp_path: Path) -> Any:
    table = [{"image_id": key, "crowd_captions": json.dumps(texts)} for key, texts in CAPTIONS.items()]
    files.write_table(tmp_path / "data" / "whoops_dataset.csv", table)
    files.pictures(tmp_path / "data")
    return Whoops.open(tmp_path / "data").entries


def told(made: Made) -> dict[str, tuple[str | None, str]]:
    return {f"{key[:3]} {pair.answer}": (pair.stopped, pair.reason) for key in made.pairs for pair in made.pairs[key]}


def test_every_gate_counts_what_passes_it(entries: Any, tmp_path: Path) -> None:
    made = make(entries, QuestionMaker(writer()), out=tmp_path / "made")

    assert (made.captions, made.done, made.candidates) == (3, 3, 8)
    assert dict(made.passed) == {  # without "in the sea"; "walruses"; "today"; "red"; the second "in the jungle"
        "in the caption": 7,
        "question": 6,
        "answered from the caption": 5,
        "not answered blindly": 4,
        "new": 3,
    }
    assert {key: [pair.answer for pair in pairs] for key, pairs in made.kept.items()} == {
        IDS[0]: ["two", "in the jungle"],
        IDS[1]: ["cup"],
    }


def test_every_pair_that_is_dropped_has_its_reason(entries: Any, tmp_path: Path) -> None:
    make(entries, QuestionMaker(writer()), out=tmp_path / "made")
    dropped = [json.loads(line) for line in (tmp_path / "made" / DROPPED).read_text("utf-8").splitlines()]

    assert [(each["gate"], each["answer"], each["reason"]) for each in dropped] == [
        ("question", "walruses", "the question has the answer in it"),
        ("in the caption", "in the sea", "the caption does not have these words"),
        ("new", "in the jungle", "another pair of the image asks the same"),
        ("answered from the caption", "today", "the caption answers 'at night' (false)"),
        ("not answered blindly", "red", "a model that sees nothing answers 'red'"),
    ]
    assert json.loads((tmp_path / "made" / KEPT).read_text("utf-8"))[IDS[1]] == [["What is it?", "cup"]]


def test_the_same_call_asks_nothing_again(entries: Any, tmp_path: Path) -> None:
    first = make(entries, QuestionMaker(writer()), out=tmp_path / "made")
    lines = (tmp_path / "made" / "samples.jsonl").read_bytes()

    def nobody(request: ChatRequest) -> Any:
        raise AssertionError(request)

    again = make(entries, QuestionMaker(writer(answer_candidates=nobody)), out=tmp_path / "made")

    assert told(again) == told(first)
    assert (tmp_path / "made" / "samples.jsonl").read_bytes() == lines


def test_a_call_that_failed_is_made_by_the_next_run(entries: Any, tmp_path: Path) -> None:
    failing = True

    def sometimes(request: ChatRequest) -> Any:
        if failing and quoted(request, "answer") == "cup":
            raise AuthError("The key is wrong.")
        return question(request)

    first = make(entries, QuestionMaker(writer(write_question=sometimes)), out=tmp_path / "made")
    failing = False
    second = make(entries, QuestionMaker(writer(write_question=sometimes)), out=tmp_path / "made")

    assert (first.done, first.passed["new"], second.done, second.passed["new"]) == (2, 2, 3, 3)


def test_a_judge_without_a_verdict_drops_a_pair_and_says_so(entries: Any, tmp_path: Path) -> None:
    made = make(entries, QuestionMaker(writer(judge_equivalence="Hm.")), out=tmp_path / "made")

    assert made.passed["answered from the caption"] == 0
    stopped, reason = told(made)["w00 two"]
    assert stopped == "answered from the caption"
    assert reason.startswith("no verdict: invalid: ")


def test_a_caption_without_answers_is_counted_by_its_outcome(entries: Any, tmp_path: Path) -> None:
    def refusing(request: ChatRequest) -> Any:
        caption = quoted(request, "caption")
        return REFUSAL if caption == "A red cup" else {"answers": CANDIDATES[caption]}

    made = make(entries, QuestionMaker(writer(answer_candidates=refusing)), out=tmp_path / "made")

    assert (made.done, dict(made.reasons)) == (2, {"refused": 1})
    assert IDS[1] not in made.pairs


def test_a_sheet_for_people_holds_wrong_answers_too(entries: Any, tmp_path: Path) -> None:
    made = make(entries, QuestionMaker(writer()), out=tmp_path / "made")
    by_id = {entry.id: entry for entry in entries}

    sheet = write_validation(tmp_path / "sheet", made.kept, images=lambda key: by_id[key].load())

    true = {item.text for item in sheet.items if item.true}
    wrong = {item.text for item in sheet.items if not item.true}
    assert true == {"How many animals swim? two", "What is it? cup", "Where do they swim? in the jungle"}
    assert wrong in ({"How many animals swim? cup", f"What is it? {other}"} for other in ("two", "in the jungle"))
    assert {path.name for path in (tmp_path / "sheet").iterdir()} == {"sheet.html", "sheet.csv", "key.json"}


def test_without_captions_there_is_nothing_to_make(tmp_path: Path) -> None:
    files.write_table(tmp_path / "whoops_dataset.csv", [{"image_id": "a"}])

    with pytest.raises(UsageError, match="no captions to make questions from"):
        make(Whoops.open(tmp_path).entries, QuestionMaker(writer()), out=tmp_path / "made")


@pytest.mark.parametrize(
    ("text", "found"),
    [("two\n- walruses\n3. in the jungle", ["two", "walruses", "in the jungle"]), ("a\na\n\nb", ["a", "b"])],
)
def test_phrases_are_read_in_the_text_form(text: str, found: list[str]) -> None:
    node = find_candidates(model_of(scripted(None, answer_candidates=text)))

    assert list(node.read_text(text, "").texts) == found


def test_a_question_without_its_mark_is_none() -> None:
    node = write_question(model(write_question={"question": "Tell me"}))

    with pytest.raises(InvalidOutput, match="a question ends with a question mark"):
        node({"caption": "a cup", "answer": "cup"})
