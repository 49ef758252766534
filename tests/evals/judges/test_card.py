from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.agents import Verdict, VerdictValue, judge_equivalence, judge_panel
from askance.chat import ChatRequest, ChatResponse
from askance.errors import BadData
from askance.evals.judges import JudgeCard, JudgedPair, Label, Labels, judge_card, read_card
from askance.models import Counters, Engine, get_model
from askance.models.call_scope import current_scope
from askance.replay import MemoryStore, Mode, open_records
from tests.judges import Scripted
from tests.scripted import ENFORCED

about: Any = pytest.approx


def labelled(truths: Sequence[bool | None], *, group: int = 1, votes: tuple[bool | None, ...] = ()) -> Labels:
    """Pairs whose candidate says what is true of it: `true 3`; `group` of them share one."""
    rows = tuple(
        Label(
            reference=f"r{number}",
            candidate=f"{str(truth).lower()} {number}",
            verdict=truth,
            votes=votes,
            group=f"g{number // group}",
        )
        for number, truth in enumerate(truths)
    )
    return Labels(name="labels.csv", digest="0" * 64, rows=rows)


def card_of(judge: Any, labels: Labels, **options: Any) -> JudgeCard:
    return asyncio.run(judge_card(judge, labels, **options))


def says(word: VerdictValue | None) -> Callable[[str, str], VerdictValue | None]:
    return lambda reference, candidate: word


def truth_of(reference: str, candidate: str) -> VerdictValue:
    """What the candidate is, wherever it stands."""
    words = f"{reference} {candidate}".split()
    return "true" if "true" in words else "false"


def values(card: JudgeCard, *names: str) -> list[float | None]:
    return [card.figure(name).value for name in names]


AGREEMENT = ("cohen kappa", "gwet ac1", "krippendorff alpha")
classes = st.lists(st.booleans(), min_size=2, max_size=30).filter(lambda truths: len(set(truths)) == 2)


@given(classes)
@settings(max_examples=8)
def test_a_judge_equal_to_the_labels_agrees_fully(truths: list[bool]) -> None:
    card = card_of(Scripted(truth_of), labelled(truths), draws=1, swaps=False)

    assert values(card, *AGREEMENT, "accuracy", "sensitivity", "specificity", "unscored") == [1, 1, 1, 1, 1, 1, 0]
    assert card.bounds == (1, 1)


@given(classes)
@settings(max_examples=8)
def test_a_constant_judge_is_as_right_as_the_base_rate_and_agrees_by_chance_alone(truths: list[bool]) -> None:
    more: VerdictValue = "true" if 2 * sum(truths) >= len(truths) else "false"

    card = card_of(Scripted(says(more)), labelled(truths), draws=1, swaps=False)

    assert card.figure("cohen kappa").value == about(0)
    assert card.figure("accuracy").value == card.figure("base rate").value
    assert card.notes == (f"The judge says {more} of everything: it tells no pair from another.",)


@given(classes)
@settings(max_examples=8)
def test_a_judge_that_cannot_be_read_gives_only_unscored_and_full_bounds(truths: list[bool]) -> None:
    card = card_of(Scripted(says(None)), labelled(truths), draws=2)

    assert values(card, *AGREEMENT, "accuracy", "sensitivity", "specificity", "unscored") == [None] * 6 + [1]
    assert card.bounds == (0, 1)
    assert card.notes[-1] == "The judge gave no verdict that could be read, so nothing is known of it."


UNREAD = "the reply is not one JSON object and nothing else"
TRUTHS = [True] * 6 + [False] * 4
BY_HAND: dict[str, VerdictValue | None] = {
    **{f"true {number}": "true" for number in range(4)},
    "true 4": "false",
    "true 5": "unclear",
    "false 6": "true",
    "false 7": "false",
    "false 8": "false",
    "false 9": None,
}
"""Of nine that are scored: four true yes, two false no, one false yes, two true no."""


def by_hand() -> JudgeCard:
    judge = Scripted(lambda reference, candidate: BY_HAND[candidate])
    return card_of(judge, labelled(TRUTHS, group=2), draws=1, swaps=False)


def test_figures_by_hand() -> None:
    card, chance = by_hand(), 6 / 9 * 5 / 9 + 3 / 9 * 4 / 9

    assert values(card, "accuracy", "base rate", "sensitivity", "specificity", "unscored") == [
        about(6 / 9),
        about(6 / 9),
        about(4 / 6),
        about(2 / 3),
        about(1 / 10),
    ]
    assert card.figure("cohen kappa").value == about((6 / 9 - chance) / (1 - chance))
    assert card.bounds == (about(0.6), about(0.7))
    assert card.table == {
        "true": {"true": 4, "false": 1, "unclear": 1, "unscored": 0},
        "false": {"true": 1, "false": 2, "unclear": 0, "unscored": 1},
    }
    assert card.notes == (
        f"Unscored: 1 of 10 pairs, in no figure but the rate of them; one was invalid: {UNREAD}.",
        "Were they all judged wrongly, the accuracy would be 60.00; were they rightly, 70.00.",
        "Where the judge is unclear, it does not say that both mean the same: it counts as false.",
    )


def test_every_figure_has_an_interval_by_groups() -> None:
    card = by_hand()
    alone = card_of(Scripted(lambda _, candidate: BY_HAND[candidate]), labelled(TRUTHS), draws=1, swaps=False)

    assert [figure.name for figure in card.figures if figure.interval is None] == []
    assert [figure.pairs for figure in card.figures] == [9, 9, 6, 3, 10, 9, 9, 9]
    assert [method_of(each) for each in (card, alone)] == ["cluster bootstrap", "wilson"]


def method_of(card: JudgeCard) -> str:
    interval = card.figure("accuracy").interval
    return "" if interval is None else interval.method


def test_flips_are_verdicts_that_change_with_the_places() -> None:
    """A judge that takes whatever stands second for right, but where both are short."""
    judge = Scripted(lambda reference, candidate: "true" if candidate.startswith("true") else "false")

    card = card_of(judge, labelled([True, True, True, False]), draws=1)

    assert card.figure("flip rate").value == 0.75


def test_draws_that_differ_are_no_consistency() -> None:
    class Moody(Scripted):
        async def judge(self, reference: str, candidate: str, *, question: str) -> Verdict:
            return Verdict(value="true" if candidate == "true 0" or current_scope().draw < 2 else "false")

    card = card_of(Moody(says("true")), labelled([True, False]), draws=3, swaps=False)

    assert card.pairs[1].verdicts == ("true", "true", "false")
    assert card.figure("self-consistency").value == about((1 + 1 / 3) / 2)


def test_people_agree_as_far_as_they_do_and_tied_pairs_are_theirs_alone() -> None:
    labels = labelled([True, False, None], votes=(True, False))
    judge = Scripted(truth_of)

    card = card_of(judge, labels, draws=1, swaps=False)

    assert judge.asked == 2
    assert values(card, "people, pairs", "people, ac1", "accuracy") == [0, about(-1), 1]
    assert (len(card.pairs), len(card.labelled), card.figure("people, pairs").pairs) == (3, 2, 3)


def test_a_panels_members_agree_as_far_as_they_do() -> None:
    panel = judge_panel(Scripted(says("true")), Scripted(says("true")), Scripted(truth_of))

    card = card_of(panel, labelled([True, False]), draws=1, swaps=False)

    assert card.pairs[1].members == ("true", "true", "false")
    assert card.figure("members, pairs").value == about((1 + 1 / 3) / 2)
    assert card.table["false"]["true"] == 1


def test_one_class_has_no_figures_that_need_two() -> None:
    card = card_of(Scripted(says("true")), labelled([True] * 5), draws=1, swaps=False)

    assert values(card, "accuracy", "specificity", "cohen kappa") == [1, None, None]
    assert card.figure("specificity").interval is None


def test_a_card_is_written_and_read(own_place: Path) -> None:
    card = by_hand()
    Path("card.json").write_text(json.dumps(card.form()), encoding="utf-8")

    assert read_card("card.json") == card
    assert "r0" not in Path("card.json").read_text(encoding="utf-8")
    assert JudgedPair.from_form(json.loads(json.dumps(card.pairs[0].form()))) == card.pairs[0]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 1}', '{"format": 1, "cases": [{}]}'])
def test_what_is_no_card_is_said(text: str) -> None:
    Path("card.json").write_text(text, encoding="utf-8")

    with pytest.raises(BadData):
        read_card("card.json")


class Counting:
    """A backend that counts what it is asked; others have asked it before."""

    id = "counting"
    capabilities = ENFORCED
    asked = 7

    async def generate(self, request: ChatRequest) -> ChatResponse:
        self.asked += 1
        return ChatResponse(text=json.dumps({"verdict": "true"}))

    async def counted(self) -> Counters:
        return Counters(answers=self.asked)


def test_a_card_keeps_what_its_judge_computed() -> None:
    engine = Engine(records=MemoryStore())
    judge = judge_equivalence(get_model(Counting(), engine=engine), form="short")
    labels = labelled([True, False])
    first, again = (card_of(judge, labels, draws=1, swaps=False) for _ in range(2))
    Path("card.json").write_text(json.dumps(first.form()), encoding="utf-8")

    assert {name: counts["answers"] for name, counts in first.counters.items()} == {"counting": 2}
    assert (read_card("card.json"), again.counters) == (first, {})
    assert "counters" not in again.form()


def test_a_card_that_is_made_again_has_the_counts_of_all_its_starts(tmp_path: Path) -> None:
    def counted(truths: Sequence[bool], *, mode: Mode = "auto", **options: Any) -> int | None:
        with open_records(tmp_path / "store") as store:
            judge = judge_equivalence(get_model(Counting(), engine=Engine(records=store, mode=mode)), form="short")
            card = card_of(judge, labelled(truths), draws=1, swaps=False, **options)
        return card.counters["counting"]["answers"] if card.counters else None

    first, again, replayed = counted([True, False]), counted([True, False]), counted([True, False], mode="replay")
    anew, other = counted([True, False], mode="refresh"), counted([True, False], question="What is odd?")
    assert (first, again, replayed, anew, other) == (2, 2, 2, 4, 2)

    for file in (tmp_path / "store" / "cards").iterdir():
        file.write_text("[{", encoding="utf-8")
    assert counted([True, False]) is None
