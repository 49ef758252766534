"""Replies of the forms that were once misread or needlessly left: what each is read as, and by which rung."""

from __future__ import annotations

import pytest

from askance.agents import OptionsQuestion, choose_action_reasons, read_answer
from askance.models import ScriptedModel
from askance.nodes import Unreadable
from tests.agents.test_answers import ADS
from tests.scripted import model_of

CAPTIONS = ("A little to the left, please.", "Who invited the whale?", "Next!", "It's a living.", "Taxi!")


def read(text: str, *, single: bool = False, lettered: bool = False) -> tuple[int, ...] | None:
    """The numbers that are read, among fifteen statements or five captions; None for a reply that is not read."""
    try:
        return read_answer(text, CAPTIONS if lettered else ADS, single=single, lettered=lettered)
    except Unreadable:
        return None


UNREAD = (
    "Answer: N/A",
    "Answer: 3 is tempting, but 5 is best",
    "Answer: Two for the price of one",
    "Answer: 12 is the number of routes, so option 3",
    "Answer: 3 (not 5), 7, 12",
    "Answer: 5 … Wait, let me reconsider. 3 fits better.",
    "Answer: 5. Wait, let me reconsider. 3 fits better.",
    "Answer: 3 or 5",
    "Answer: 3\nAnswer: 5",
    "Answer: 3. 7. 12.",
    "Answer: 3, since it is light, and 7",
    "Answer: 16",
    "Answer: 3? I am not sure.",
    "Answer: 3 (unlikely)",
    "Answer: 3, not 5, 7",
    "Answer: 3 rather than 5, 7",
    "3, 5, 7...",
    '{"answer": 3',
    "Answer: 3, 7,",
    "Answer: (3",
    "Answer: 5\nAttends, en fait 3.",
    "Answer: 5\n等等, 应该是 3。",
    "The answer is not 3.",
    "The options are 3 and 5.",
    "7.3.15",
    "Step 1: look at it.\nStep 2: choose.\n3 cups stand there.",
    f"Answer: 3. {ADS[4]}",
)


@pytest.mark.parametrize("text", UNREAD)
def test_a_declared_answer_is_read_whole_or_not_at_all(text: str) -> None:
    assert read(text) is None
    assert read(text, single=True) is None


SEVERAL = {
    "Respuesta: 3, 7 y 12": (3, 7, 12),
    "Ответ: 7, 3 и 15": (7, 3, 15),
    "Answer: 7 (0.6), 3 (0.3), 15 (0.1)": (7, 3, 15),
    "🥇 7\n🥈 3\n🥉 15": (7, 3, 15),
    "Ranking: 3 > 1 > 5": (3, 1, 5),
    "Answer: 3-5": (3, 4, 5),
    "الإجابة: \u0663، \u0667": (3, 7),
    "उत्तर: ३, ७": (3, 7),
    "Answer: ③, ⑦ and ⑫": (3, 7, 12),
    "Answer: 3, 7, 12\n\nI left out 4 and 5.": (3, 7, 12),
    "Answer: 3\nWait, that is wrong.\nAnswer: 7": (7,),
    "Answer: 3\nFinal answer: 7": (7,),
    "Answer: 3, 7\nUser: And now?\nAnswer: 5": (3, 7),
    "<think>Answer: 5</think>\n## Answer\n\n- 3\n- 7": (3, 7),
}


@pytest.mark.parametrize(("text", "numbers"), SEVERAL.items(), ids=SEVERAL)
def test_several_answers_are_read_in_every_language(text: str, numbers: tuple[int, ...]) -> None:
    assert read(text) == numbers


ONE = {
    "La respuesta es C.": 3,
    "答案是C": 3,
    "答えはCです。": 3,
    "정답은 C입니다.": 3,
    "Therefore, the correct option is (C)": 3,
    "answer: c": 3,
    "Option **C** best captures the message.": 3,
    "<answer>C</answer>": 3,
    "The final answer is $\\boxed{\\text{C}}$.": 3,
    "A fits badly, and so does B.\n\nConsidering these evaluations, the best caption is:\nAnswer: A": 1,
    "C": 3,
    "(C)": 3,
    "Next!": 3,
}


@pytest.mark.parametrize(("text", "number"), ONE.items(), ids=ONE)
def test_one_answer_is_read_in_every_language(text: str, number: int) -> None:
    assert read(text, single=True, lettered=True) == (number,)


@pytest.mark.parametrize(
    "text",
    [
        'Let\'s go through the captions step by step.\n\nA) "A little to the left, please."',
        'First, the scene: a bar.\n\nCaption C ("Next!")',
        "Let's see.\n\nA: It is a pun.\n\nB: It is about a whale.\n\nC",
        "Let's see. The best caption is",
        "Answer: (C",
    ],
)
def test_a_reply_that_breaks_off_in_its_reasoning_gives_no_answer(text: str) -> None:
    assert read(text, single=True, lettered=True) is None


def test_a_ranking_is_no_single_answer() -> None:
    assert read("Ranking: C > A > E", single=True, lettered=True) is None
    assert read("Ranking: C > A > E", lettered=True) == (3, 1, 5)


@pytest.mark.parametrize(
    ("reply", "rung"), [("Answer: 3", "declared"), ("3, 7", "whole"), ('{"answers": [3]}', "schema")]
)
async def test_the_rung_that_read_an_answer_is_said(reply: str, rung: str) -> None:
    model = model_of(ScriptedModel([reply]), protocol="prompted" if rung == "schema" else "paper")

    found = await choose_action_reasons(model).ask(OptionsQuestion(description="A bottle.", options=ADS))

    assert (found.outcome, found.rung) == ("answered", rung)


def test_a_reply_that_is_not_read_is_kept_with_the_fault() -> None:
    with pytest.raises(Unreadable) as unread:
        read_answer("I like 3 and 5.", ADS)

    assert unread.value.reply == "I like 3 and 5."
