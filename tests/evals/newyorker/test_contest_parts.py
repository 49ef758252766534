from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import UsageError
from askance.evals.newyorker.caption_choice import GoodCaption
from askance.evals.newyorker.contest_parts import balanced_distractors, contest_groups, even_parts, parts_of_fold


@st.composite
def groups_of_captions(draw: st.DrawFn) -> list[int]:
    """Groups of captions of sizes for which a plan exists, the smallest ones too."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=5, max_size=30))
    sizes += [1] * max(0, 5 * max(sizes) - sum(sizes))
    return draw(st.permutations([group for group, size in enumerate(sizes) for _ in range(size)]))


@given(groups_of_captions(), st.integers())
def test_each_caption_is_wrong_four_times_and_items_are_of_five_contests(groups: list[int], seed: int) -> None:
    found = balanced_distractors(groups, seed=seed, key="part 0")

    assert Counter(place for places in found for place in places) == Counter(dict.fromkeys(range(len(groups)), 4))
    for place, places in enumerate(found):
        assert len({groups[place], *(groups[each] for each in places)}) == 5


def test_the_smallest_part_that_can_be_balanced_is_balanced_and_a_smaller_one_refused() -> None:
    groups = [0, 0, *range(1, 9)]

    assert len(balanced_distractors(groups, seed=0, key="")) == 10
    with pytest.raises(UsageError, match=r"9 captions is too small.* need 10"):
        balanced_distractors(groups[:-1], seed=0, key="")
    with pytest.raises(UsageError, match="0 captions"):
        balanced_distractors([], seed=0, key="")


def test_distractors_are_drawn_anew_for_each_seed_and_from_everywhere() -> None:
    groups = [place // 3 for place in range(60)]
    drawn = [balanced_distractors(groups, seed=seed, key="") for seed in range(200)]
    partners = Counter(place for found in drawn for place in found[0])

    assert drawn[0] == balanced_distractors(groups, seed=0, key="")
    assert drawn[0] != balanced_distractors(groups, seed=0, key="another part")
    assert set(partners) == {*range(3, 60)}
    assert max(partners.values()) < 3 * sum(partners.values()) / len(partners)


def good(contest: int, text: str) -> GoodCaption:
    return GoodCaption(contest=contest, text=text, source="official_winner")


def test_contests_that_share_a_caption_are_one_group() -> None:
    captions = [good(1, "One."), good(2, "Two!"), good(3, "two"), good(4, "Four."), good(4, "ONE"), good(5, "Four?")]

    assert contest_groups(captions) == {1: 1, 2: 2, 3: 2, 4: 1, 5: 1}


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=5, max_size=60), st.integers())
def test_parts_share_no_contest_and_are_of_like_size(sizes: list[tuple[int, int]], seed: int) -> None:
    contests = dict(enumerate(sizes, start=500))
    groups = {contest: contest - contest % 3 for contest in contests}
    parts = even_parts(groups, contests, seed=seed)

    assert sorted(contest for part in parts for contest in part) == [*contests]
    homes = {(groups[contest], number) for number, part in enumerate(parts) for contest in part}
    assert len(homes) == len({*groups.values()})
    totals = [sum(contests[contest][0] for contest in part) for part in parts]
    assert max(totals) - min(totals) <= 3 * 6  # as much as one group may hold


def test_contests_of_one_kind_are_spread_over_all_parts() -> None:
    kinds = {contest: (3, contest % 2, contest % 4 == 1) for contest in range(100)}
    parts = even_parts({contest: contest for contest in kinds}, kinds, seed=7)

    assert [Counter(kinds[contest] for contest in part) for part in parts] == [
        Counter({(3, 0, False): 10, (3, 1, False): 5, (3, 1, True): 5})
    ] * 5


def test_each_part_is_tested_once_and_validates_once() -> None:
    splits = [parts_of_fold(fold) for fold in range(5)]

    assert (
        sorted(each["test"] for each in splits)
        == sorted(each["val"] for each in splits)
        == [(0,), (1,), (2,), (3,), (4,)]
    )
    assert all(sorted([*each["train"], *each["val"], *each["test"]]) == [0, 1, 2, 3, 4] for each in splits)
