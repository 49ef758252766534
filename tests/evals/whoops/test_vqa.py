"""`whoops/vqa`: matches by the usual rules and by the paper's, a judge in the place of BEM."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.evals import evaluate
from askance.evals.analysis.rescore import rescore
from askance.evals.published_figures import find_published_table
from askance.evals.suite.answer_match import plain
from askance.evals.whoops import Vqa
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
    run = evaluate(Vqa(data=data, vlm=model(answer_from_picture=answering)), out=tmp_path / "run")

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
    run = evaluate(Vqa(data=data, vlm=who, judge=who), out=tmp_path / "run")

    assert [shown(run)[name] for name in ("exact match", "judged")] == [80, 80]  # "grass", not "the cat cup!"
    assert run.notes[0] == "Judged by scripted (rubric), which has no card: how often it is wrong is not known."


class Sharing:
    """Sure of answers by the share of their letters that the reference has; of numbers, half sure."""

    id = "sharing"

    async def score_texts(self, about: Mapping[str, str], texts: Sequence[str]) -> list[float]:
        if about["question"] != "What is shown?":
            return [0.5] * len(texts)
        return [len({*text} & {*about["reference"]}) / len({*text}) for text in texts]


def test_a_classifier_scores_answers_beside_or_without_a_judge(data: Path, tmp_path: Path) -> None:
    def same(reference: str, candidate: str) -> str:
        return "true" if candidate in reference or candidate == "2" else "false"

    who = model(answer_from_picture=answering, judge_equivalence=judging(same))
    alone = evaluate(Vqa(data=data, vlm=who, scorer=Sharing()), out=tmp_path / "alone")
    beside = evaluate(Vqa(data=data, vlm=who, judge=who, scorer=Sharing()), out=tmp_path / "beside")
    again = asyncio.run(rescore(beside, Vqa)).run

    # "brick cup" 1, "the cat cup!" 6 of 9, "a coin horse" 1, "grass" 1, "a painting" 4 of 7; five numbers 0.5
    assert shown(alone)["equivalence"] == pytest.approx(100 * (1 + 6 / 9 + 1 + 1 + 4 / 7 + 2.5) / 10, abs=0.01)
    assert shown(alone)["equivalence > 0.5"] == 50
    assert {name: shown(beside)[name] for name in shown(alone)} == shown(alone)
    assert shown(beside)["judged"] == 80
    assert "'equivalence' is the mean score that sharing gives answers" in beside.notes
    assert [figure.value for figure in again.figures] == [figure.value for figure in beside.figures]


def test_the_judge_knows_the_question(data: Path, tmp_path: Path) -> None:
    texts: list[str] = []

    def noting(request: ChatRequest) -> Any:
        texts.append(request.messages[-1].text)
        return {"common": "", "different": "", "reason": "", "verdict": "true"}

    who = model(answer_from_picture=answering, judge_equivalence=noting)
    evaluate(Vqa(data=data, vlm=who, judge=who, limit=1), out=tmp_path / "run")

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
        Vqa(data=data, llm=model(answer_from_description=answer), context=context, limit=1), out=tmp_path / "run"
    )

    assert all(text.startswith(read) for text in texts)
    assert shown(run)["exact match"] == shown(run)["strict match"] == 50


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


def test_the_published_figure_stands_beside_the_metric_of_its_rule() -> None:
    metrics = [metric.name for metric in Vqa.of_run({}).scorer().metrics]
    columns = find_published_table("whoops/2").columns

    assert [name for name in metrics if name in columns] == ["strict match"]
    assert find_published_table("whoops/2").value("zero-shot", "OFA Large", column="strict match") == 8
