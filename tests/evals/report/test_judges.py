"""What is drawn of a judge, from notes that anybody may have written."""

from __future__ import annotations

from typing import Any

import pytest

from askance.evals.judges import JudgeCard, Label, Labels, judge_card
from askance.evals.report.card_page import card_page, judge_views
from askance.models import run_sync
from tests.evals.report.runs import HOSTILE, Parsed, drawn
from tests.judges import Scripted, by_words

CARD: dict[str, Any] = {
    "labels": "labels.csv",
    "pairs": 10,
    "accuracy": 0.8,
    "base rate": 0.6,
    "sensitivity": 1.0,
    "specificity": 0.5,
    "intervals": {"accuracy": [0.5, 0.9], "base rate": [0.3, 0.8]},
    "table": {
        "true": {"true": 6, "false": 0, "unclear": 0, "unscored": 0},
        "false": {"true": 2, "false": 1, "unclear": 1, "unscored": 0},
    },
    "reliability": {
        "by": "draws",
        "points": [
            {"said": 0.5, "pairs": 4, "value": 0.25, "interval": [0.0, 0.5]},
            {"said": 1.0, "pairs": 6, "value": 1.0, "interval": None},
        ],
    },
}


def shown(card: Any, *, heading: bool = False) -> Parsed:
    (judge,) = judge_views([{"judge": "grader", "card": card}])
    return drawn("plots.html", "judge", judge, heading)


def test_a_judge_without_a_card_is_said_to_have_none() -> None:
    unknown = "It has no card: how often it is wrong is not known. `askance judge card` makes one."

    assert shown(None, heading=True).text == f"grader {unknown}"


def test_errors_stand_beside_people_with_intervals() -> None:
    text = shown(CARD).text

    for words in (
        "accuracy 80.00 50.00 – 90.00",
        "base rate 60.00 –",
        "sensitivity 100.00 – specificity 50.00 –",
        "judge: true judge: false judge: unclear people: true 6 0 0 people: false 2 1 1",
    ):
        assert words in text


def test_verdicts_are_drawn_as_long_as_they_are_many() -> None:
    bars = [each for tag, each in shown(CARD).elements if tag == "rect"]

    assert [(each["class"], each["x"], each["width"]) for each in bars if each["width"] != "0.00%"] == [
        ("r-right", "0.00%", "100.00%"),
        ("r-wrong", "0.00%", "33.33%"),
        ("r-right", "33.33%", "16.67%"),
        ("r-partly", "50.00%", "16.67%"),
    ]


def test_the_curve_is_told_in_words_and_in_numbers() -> None:
    parsed = shown(CARD)

    (svg,) = [each for tag, each in parsed.elements if tag == "svg" and each.get("role") == "img"]
    assert svg["class"] == "scatter square"
    assert "of 4 pairs at 50 %, 25 %; of 6 pairs at 100 %, 100 %" in parsed.text
    assert "50 % 4 25.00 0.00 – 50.00 100 % 6 100.00 –" in parsed.text


ODD: dict[str, Any] = {
    "of an earlier version": {"pairs": 3, "accuracy": 0.5},
    "no numbers": {"accuracy": "0.5", "table": [], "reliability": 3, "intervals": "x"},
    "beyond a share": {"accuracy": 7, "sensitivity": -1, "reliability": {"points": [{"said": 2}, None]}},
    "texts that mean harm": dict.fromkeys(CARD, HOSTILE[0]),
    "no finite numbers": {**CARD, "accuracy": float("nan"), "reliability": {"by": "draws", "points": []}},
    "unknown verdicts": {"table": {**CARD["table"], "maybe": CARD["table"]["true"]}},
    "deeper": {"table": {"true": {"true": HOSTILE[0]}, "false": {}}, "reliability": {"by": HOSTILE[0], "points": [{}]}},
}


@pytest.mark.parametrize("card", ODD.values(), ids=ODD)
def test_what_is_no_number_is_not_drawn(card: Any) -> None:
    parsed = shown(card)

    assert not [tag for tag, _ in parsed.elements if tag in {"script", "img"}]
    assert len([tag for tag, _ in parsed.elements if tag == "circle"]) == (card.get("accuracy") == 0.5)


def labels(*said: tuple[str, bool]) -> Labels:
    rows = tuple(
        Label(
            reference=f"a fish {place}", candidate=f"{word} {place}", verdict=verdict, group=str(place), id=f"s{place}"
        )
        for place, (word, verdict) in enumerate(said)
    )
    return Labels(name="labels.csv", digest="0" * 64, rows=rows)


def carded(of: Labels) -> JudgeCard:
    return run_sync(judge_card(Scripted(by_words, name="grader"), of, draws=1))


def test_the_page_of_a_judge_lists_where_it_disagrees_with_people() -> None:
    of = labels(("fish", True), ("fish", False), ("tree", True), ("tree", False))
    text = Parsed(card_page(carded(of), labels=of)).text

    assert "pair reference candidate people judge s1 a fish 1 fish 1 false true s2 a fish 2 tree 2 true false" in text
    assert "s0" not in text


def test_disagreements_without_their_labels_have_a_digest() -> None:
    of = labels(("fish", False), ("tree", False))
    text = Parsed(card_page(carded(of))).text

    assert "s0 – sha256 " in text


def test_a_judge_that_agrees_with_people_is_said_to() -> None:
    of = labels(("fish", True), ("tree", False))

    assert "It says of every labelled pair what people say." in Parsed(card_page(carded(of), labels=of)).text
