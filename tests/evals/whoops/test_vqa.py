"""`whoops/vqa`: exact match by the usual rules, a judge in the place of BEM."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.evals import Run, evaluate
from askance.evals.rescoring import rescore
from askance.evals.whoops.answers import plain
from askance.evals.whoops.tasks import vqa
from tests.evals.pittads.worlds import shown
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS
from tests.evals.whoops.worlds import description, judging, model, seen

SAID = {IDS[0]: "brick cup", IDS[1]: "the cat cup!", IDS[2]: "a coin horse", IDS[3]: "grass", IDS[4]: "a painting"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return files.first_release(tmp_path / "data")


def answering(request: ChatRequest) -> Any:
    """What is shown as in `SAID`; of numbers `2`."""
    question = re.search(r"Question: (.*)", request.messages[-1].text)
    assert question is not None
    return {"answer": SAID[seen(request)] if question[1] == "What is shown?" else "2"}


def test_exact_match_by_hand(data: Path, tmp_path: Path) -> None:
    run = evaluate(vqa(data=data, vlm=model(answer_from_picture=answering)), out=tmp_path / "run")

    assert shown(run) == {  # three of five things, and all five numbers; strictly one thing and no number
        "exact match": 80,
        "strict match": 10,
        "exact match: Art knowledge": 50,
        "exact match: Biological rules": 50,
        "exact match: Nutrition mismatch": 100,
        "exact match: Physical rules": 100,
    }
    assert (run.figures[0].samples, run.figures[0].clusters) == (10, 5)


def test_a_judge_stands_in_the_place_of_bem(data: Path, tmp_path: Path) -> None:
    def same(reference: str, candidate: str) -> str:
        return "true" if candidate in reference or candidate == "2" else "false"

    who = model(answer_from_picture=answering, judge_equivalence=judging(same))
    run = evaluate(vqa(data=data, vlm=who, judge=who), out=tmp_path / "run")

    assert [shown(run)[name] for name in ("exact match", "judged")] == [80, 80]  # "grass", not "the cat cup!"
    assert run.notes[0] == "Judged by scripted (rubric), which has no card: how often it is wrong is not known."


def test_the_judge_knows_the_question(data: Path, tmp_path: Path) -> None:
    texts: list[str] = []

    def noting(request: ChatRequest) -> Any:
        texts.append(request.messages[-1].text)
        return {"common": "", "different": "", "reason": "", "verdict": "true"}

    who = model(answer_from_picture=answering, judge_equivalence=noting)
    evaluate(vqa(data=data, vlm=who, judge=who, limit=1), out=tmp_path / "run")

    assert sorted("What is shown?" in text for text in texts) == [False, True]


@pytest.mark.parametrize(
    ("context", "read"),
    [("gold-caption", "A brick cup stands on a table, says person 2"), ("text-only", "No description of the image is")],
)
def test_words_alone_are_answered_from(context: str, read: str, data: Path, tmp_path: Path) -> None:
    texts: list[str] = []

    def answer(request: ChatRequest) -> Any:
        texts.append(description(request))
        return {"answer": "two"}

    run = evaluate(
        vqa(data=data, llm=model(answer_from_description=answer), context=context, limit=1), out=tmp_path / "run"
    )

    assert all(text.startswith(read) for text in texts)
    assert shown(run)["exact match"] == shown(run)["strict match"] == 50


async def test_a_run_is_scored_again_with_its_judge(data: Path, tmp_path: Path) -> None:
    who = model(answer_from_picture=answering, judge_equivalence=judging(lambda _, __: "unclear"))
    run = evaluate(vqa(data=data, vlm=who, judge=who), out=tmp_path / "run")

    again = await rescore(Run.open(run.path), vqa, reread=True)

    assert again.run.figures == run.figures
    assert again.run.notes == run.notes
    assert shown(run)["judged"] == 0


PLAIN = {
    "A Wolf.": "wolf",
    "the two  wolves": "2 wolves",
    "none": "0",
    "in the jungle!": "in jungle",
    "1,000": "1000",
    "2.5 m": "2.5 m",
    "U.S.A.": "usa",
    "isnt": "isn't",
    "it’s": "it's",
    "'quoted'": "quoted",
    "salt-and-pepper": "salt and pepper",
    "": "",
    "?": "",
}


@pytest.mark.parametrize(("text", "expected"), PLAIN.items(), ids=repr)
def test_answers_are_made_comparable(text: str, expected: str) -> None:
    assert plain(text) == expected
