"""`NewYorker`: the same items, pictures and descriptions in every layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from askance.evals.newyorker import Item, NewYorker
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.cartoons import CONTESTS, FOLDS, LAYOUTS, SPLITS, TASKS


def expected(task: str, fold: int, split: str, *, described: bool) -> list[tuple[object, ...]]:
    """What is known of the items without ids."""
    return [
        (
            row["contest_number"],
            [row["caption_choices"]] if task == "explanation" else row["caption_choices"],
            row["label"],
            row.get("winner_source"),
            (row["image_location"], row["image_description"], row["image_uncanny_description"]) if described else None,
        )
        for row in cartoons.hub_rows(task, fold, split, described=described)
    ]


def told(item: Item) -> tuple[object, ...]:
    note = item.annotation
    return (
        item.contest,
        list(item.choices),
        item.label,
        item.winner_source,
        None if note is None else (note.location, note.description, note.uncanny),
    )


@pytest.mark.parametrize("write", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_holds_the_same(write: Callable[[Path], Path], own_place: Path) -> None:
    data = NewYorker.open(write(own_place / "data"))
    described = write is not cartoons.from_pixels

    assert data.folds == tuple(FOLDS)
    for task in TASKS:
        for fold in FOLDS:
            for split in SPLITS:
                items = data.items(task, fold=fold, split=split)
                assert [told(item) for item in items] == expected(task, fold, split, described=described)
                assert {(item.task, item.fold, item.split) for item in items} == {(task, fold, split)}
                assert {item.official_id for item in items} == {"repository" not in str(write)}
    assert data.contests == CONTESTS
    for contest in CONTESTS:
        picture = data.cartoon(contest).load()
        assert picture is not None
        assert picture.data == cartoons.picture(contest)
        assert len(data.cartoon(contest).annotations) == 6 * described
