"""The page of preferences, over answers that anybody may have written."""

from __future__ import annotations

from typing import Any

import pytest

from askance.agents import judge_preference
from askance.evals import SampleQuestion
from askance.evals.judges import AnswerPair, AnswerPairs, RunPreferences, Votes, judge_preferences
from askance.evals.judges.labels import VotedPair
from askance.evals.report import preference_page as pages
from askance.evals.report.preference_page import preference_page
from askance.models import run_sync
from tests.evals.report.runs import HOSTILE, Parsed
from tests.judges import tasteful
from tests.scripted import model_of


def hostile_pairs() -> AnswerPairs:
    """Pairs of hostile texts, one without an answer."""
    texts = [*HOSTILE, "plain"]
    pairs = [
        AnswerPair(id=f"{one[:20]}{place}", group=one, a=one, b=f"{one} and more of it", question=SampleQuestion())
        for place, one in enumerate(texts)
    ]
    none = AnswerPair(id="none", group="none", a=None, b="said", question=SampleQuestion())
    return AnswerPairs(task=HOSTILE[0], names=(HOSTILE[1], HOSTILE[2]), pairs=(*pairs, none), notes=(HOSTILE[0],))


def preferred(pairs: AnswerPairs, *tastes: str, **options: Any) -> RunPreferences:
    return run_sync(
        judge_preferences([judge_preference(model_of(tasteful(each))) for each in tastes], pairs, **options)
    )


def test_the_page_tells_what_the_terminal_tells_and_every_pair() -> None:
    pairs = hostile_pairs()
    made = preferred(pairs, "long", "place")
    count = len(pairs.pairs) - 1

    text = Parsed(preference_page(made, pairs)).text

    assert "long (preference) Judge 2: place (preference)" in text
    assert "A's share of the pairs that one side wins" in text
    assert f"1 0 {count} 0 0 0 0 0.00" in text
    assert "won by B" in text or "tied" in text
    assert "plain plain and more of it" in text
    assert "none no answer said no answer of a –" in text
    assert "1: B · 2: flip" in text
    assert "Beside people" not in text
    assert text.count("Judges read words alone: they see no picture.") == 1


def test_texts_of_strangers_are_texts_on_the_page() -> None:
    pairs = hostile_pairs()
    made = preferred(pairs, "long")

    page = preference_page(made, pairs)

    assert page == preference_page(made, pairs)
    text = Parsed(page).text
    for hostile in HOSTILE:
        assert " ".join(hostile.split())[: pages.MOST_CHARACTERS - 1] in text or not hostile.isprintable()
    assert "<svg/onload" not in page
    assert "<img src=x" not in page


def test_without_the_pairs_their_texts_are_not_there() -> None:
    text = Parsed(preference_page(preferred(hostile_pairs(), "long"))).text

    assert "plain8 1 words 5 words won by B 1: B" in text.replace(f"plain{len(HOSTILE)}", "plain8")


def test_people_s_votes_have_a_part_of_their_own() -> None:
    pairs = hostile_pairs()
    rows = {pair.id: VotedPair(votes=("b", "b", "a"), texts={}) for pair in pairs.pairs[:3]}
    made = preferred(pairs, "long", votes=Votes(name="votes.csv", digest="0" * 64, rows=rows))

    text = Parsed(preference_page(made, pairs)).text

    assert "People (votes.csv), 3 pairs by majority: A wins 0.00 % of 3" in text
    assert "people judge: A judge: B judge: tie unscored A 0 0 0 0 B 0 3 0 0" in text
    assert "1: B B, B, A" in text


def test_a_long_list_folds_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = hostile_pairs()
    made = preferred(pairs, "long")
    monkeypatch.setattr(pages, "UNFOLDED", 2)
    monkeypatch.setattr(pages, "MOST_PAIRS", 3)

    text = Parsed(preference_page(made, pairs)).text

    assert f"The {len(pairs.pairs)} pairs one by one; the first 3 of them" in text
    assert "plain and more of it" not in text
