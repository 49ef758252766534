"""Contests in five parts, and distractors that each stand in as many wrong places as any other.

In fold k part k is tested, the next one validates and the other three train: every contest is tested once. Distractors
of an item are good captions of other contests of its part. Each caption of a part is once the right answer and four
times a wrong one, and the five captions of an item are of five contests: the captions alone say nothing of which is
right (Hessel et al. 2023, section 2.1 and appendix C).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.agents.negative_writer import normal
from askance.errors import UsageError
from askance.evals.newyorker.layout import CHOICES
from askance.evals.suite.shuffle import stable_hash

if TYPE_CHECKING:
    from askance.evals.newyorker.caption_choice import GoodCaption

PARTS = 5
ROUNDS = 20
"""Exchanges of distractors that are tried, for each place of a distractor."""

RepositorySplit: TypeAlias = Literal["train", "val", "test"]
"""A split by its name in the files of the repository."""


def parts_of_fold(fold: int) -> dict[RepositorySplit, tuple[int, ...]]:
    """The parts of each split of a fold: one is tested, the next one validates, the others train."""
    order = [(fold + step) % PARTS for step in range(PARTS)]
    return {"train": tuple(order[2:]), "val": (order[1],), "test": (order[0],)}


def contest_groups(captions: Iterable[GoodCaption]) -> dict[int, int]:
    """By contest the least contest of its group: contests that share a caption belong together.

    Such a caption is right for several cartoons. So these contests fall into one part and lend each other no
    distractors.
    """
    leader: dict[int, int] = {}

    def find(contest: int) -> int:
        while leader.setdefault(contest, contest) != contest:
            contest = leader[contest]
        return contest

    first: dict[str, int] = {}
    for each in captions:
        one, other = find(each.contest), find(first.setdefault(normal(each.text), each.contest))
        leader[max(one, other)] = min(one, other)
    return {contest: find(contest) for contest in leader}


def balanced_distractors(groups: Sequence[int], *, seed: int, key: str) -> list[tuple[int, ...]]:
    """Four distractors for each caption of a part, each caption four times, five groups of contests in every item.

    The start is a plan that keeps these rules: captions stand in a circle, those of a group side by side, and the
    distractors of each are one, two, three and four fifths of the circle further on. Then distractors of two items
    are exchanged at random, over and over, wherever the rules still hold afterwards. So they hold for every seed.

    Args:
        groups: of each caption the group of its contest.
        seed: of the exchanges.
        key: of the part, so that parts differ.

    Returns:
        For each caption the places of its four distractors.

    Raises:
        UsageError: there are fewer than five times as many captions as the largest group has; then no plan exists,
            since every caption of that group would need four items of others.
    """
    choices, count, largest = CHOICES["matching"], len(groups), max(Counter(groups).values(), default=0)
    if count < choices * largest or not count:
        raise UsageError(
            f"A part with {count} captions is too small: its largest contest, or group of contests that share a "
            f"caption, has {largest}, and five captions of five contests need {choices * max(1, largest)}.",
            hint="Give the annotations and captions of more contests.",
        )
    circle = sorted(range(count), key=lambda place: (stable_hash(seed, key, groups[place]), groups[place], place))
    steps = [round(step * count / choices) for step in range(1, choices)]
    wrong = [[0] * len(steps) for _ in range(count)]
    for position, place in enumerate(circle):
        wrong[place] = [circle[(position + step) % count] for step in steps]
    held = [{groups[place], *(groups[each] for each in wrong[place])} for place in range(count)]
    draw = Random(f"{seed}\n{key}").random  # the one method whose numbers never change with the version of Python
    for _ in range(ROUNDS * count * len(steps)):
        one, other = int(draw() * count), int(draw() * count)
        at, to = int(draw() * len(steps)), int(draw() * len(steps))
        mine, theirs = wrong[one][at], wrong[other][to]
        gone, come = groups[mine], groups[theirs]
        if one == other or (gone != come and (come in held[one] or gone in held[other])):
            continue
        wrong[one][at], wrong[other][to] = theirs, mine
        held[one] = held[one] - {gone} | {come}
        held[other] = held[other] - {come} | {gone}
    return [tuple(each) for each in wrong]


def even_parts(
    groups: Mapping[int, int], items: Mapping[int, Sequence[int]], *, seed: int
) -> tuple[tuple[int, ...], ...]:
    """The contests of each of five parts: groups of contests, the largest first, each go to the smallest part.

    Args:
        groups: by contest its group.
        items: by contest how many items it has of each task, the task first by which parts are to be of like size.
        seed: of the order among groups of one size.
    """
    members: dict[int, list[int]] = {}
    for contest in sorted(groups):
        members.setdefault(groups[contest], []).append(contest)
    size = {group: _added(items[contest] for contest in members[group]) for group in members}
    parts: list[list[int]] = [[] for _ in range(PARTS)]
    order = sorted(members, key=lambda group: stable_hash(seed, group, "part"))
    for group in sorted(order, key=lambda group: size[group], reverse=True):
        least = min(parts, key=lambda part: (_added(items[contest] for contest in part), len(part)))
        least += members[group]
    return tuple(tuple(sorted(part)) for part in parts)


def _added(counts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*counts, strict=True)))
