"""What `askance data check newyorker` says of a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.evals.newyorker import check
from askance.evals.suite import Counted
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.cartoons import CONTESTS, LAYOUTS


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_sound_and_counted(name: str, own_place: Path) -> None:
    report = check(LAYOUTS[name](own_place / "data"))

    assert report.problems == ()
    assert {name: count.found for name, count in report.counts.items()} == {
        "cartoons": 15,
        "described": 0 if name == "from pixels" else 15,
        "pictures": 15,
        "explanations": 15,
    }
    assert report.items["matching"] == {
        "train": Counted(found=27, published=1600),
        "validation": Counted(found=9, published=538),
        "test": Counted(found=9, published=538),
    }
    assert [count.found for count in report.items["ranking"].values()] == [25, 8, 8]
    assert [count.found for count in report.items["explanation"].values()] == [9, 3, 3]
    assert report.fold_0["matching"] == Counted(found=9, published=528)
    assert (report.captions, report.unbalanced) == (225, 0)
    assert [source.fold for source in report.sources if source.task == "ranking"] == [0, 1, 2, 3, 4]
    assert bool([text for text in report.notes if "have no ids" in text]) == ("repository" in name)


def changed(folder: Path, change: Callable[[dict[str, list[dict[str, Any]]]], object], fold: int = 0) -> Path:
    """The repository with another file of matching."""
    file = cartoons.repository(folder) / "tasks" / f"contest_matching_split={fold}_cleaned.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    cartoons.write(file, content)
    return folder


def test_captions_that_are_told_by_how_often_they_are_shown_are_a_problem(own_place: Path) -> None:
    report = check(changed(own_place / "data", lambda splits: splits["test"].pop()))

    assert report.unbalanced == 5
    assert report.problems == (
        (
            "5 captions of matching are not wrong four times for each time right, which tells those who see captions "
            "alone: fold 0, test: 'The bear has heard joke 0 before.', fold 0, test: "
            "'The cat has heard joke 0 before.', fold 0, test: 'The cat has heard joke 2 before.' and 2 more."
        ),
    )


def test_rows_that_cannot_be_used_are_listed_together(own_place: Path) -> None:
    def change(splits: Mapping[str, list[dict[str, Any]]]) -> None:
        splits["test"][0]["correct_idx"] = 9
        splits["val"][1]["choices"].pop()
        splits["train"][2]["contest_number"] = 4

    report = check(changed(own_place / "data", change))

    assert not report.sound
    found = [text.partition("contest_matching_split=0_cleaned.json")[2] for text in report.problems]
    assert found[:3] == [
        (
            f"', 'train', item 2: contest 4 is not in '{own_place}/data/annotations_per_split/"
            "split=0_newyorker_contest_annotations.json'."
        ),
        "', 'val', item 1, 'caption_choices': 4 captions, and matching has 5.",
        "', 'test', item 0: 'correct_idx' is 9, and there are 5 choices.",
    ]


def test_folds_that_leave_a_contest_out_or_test_it_twice_are_a_problem(own_place: Path) -> None:
    folder = cartoons.lines(own_place / "data")
    for name in ("train", "val", "test"):
        (folder / "ranking_4" / f"{name}.jsonl").write_bytes((folder / "ranking" / f"{name}.jsonl").read_bytes())

    problems = check(folder).problems

    assert "Folds 0 and 4 of ranking both test 3 contests, such as 5." in problems
    left = cartoons.contests_of(4, "test")[:2]
    assert any(text.startswith(f"No fold of ranking tests 2 contests: {left[0]}, {left[1]}.") for text in problems)
    assert any("ids of ranking in the tests of several folds" in text for text in problems)


def test_two_descriptions_of_a_cartoon_that_is_tested_are_a_problem(own_place: Path) -> None:
    folder = cartoons.lines(own_place / "data")
    file = folder / "matching_2" / "test.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows[0]["image_location"] = "another place"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    contest = rows[0]["contest_number"]
    assert check(folder).problems == (
        f"Fold 2 of matching has several descriptions of a cartoon in test, where one is fixed: contest {contest}.",
    )


def test_pictures_that_are_missing_or_broken_are_a_problem(own_place: Path) -> None:
    folder = cartoons.lines(own_place / "data")
    (folder / "all_contest_images" / "5.jpeg").unlink()
    (folder / "all_contest_images" / "81.jpeg").write_bytes(b"no picture")

    report = check(folder)

    assert report.counts["pictures"].found == 14
    broken, missing = report.problems
    assert broken.startswith("The picture of contest 81: ")
    assert missing == "1 cartoon has no picture: contest 5."


def test_a_file_that_cannot_be_read_leaves_the_others(own_place: Path) -> None:
    folder = cartoons.repository(own_place / "data")
    (folder / "tasks" / "quality_ranking_split=3_cleaned.json").write_text("{", encoding="utf-8")

    report = check(folder)

    assert report.counts["cartoons"].found == len(CONTESTS)
    assert any("quality_ranking_split=3_cleaned.json' is no JSON" in text for text in report.problems)
    assert "Fold 3 of ranking has no items for train and validation and test." in report.problems


def test_descriptions_alone_are_no_fault(own_place: Path) -> None:
    report = check(cartoons.raw(own_place / "data"))

    assert report.sound
    assert report.items == {}
    assert report.notes == (
        f"A finalist of contest {CONTESTS[9]} is NaN, and left out.",
        (
            "There are descriptions of cartoons and no tasks of the folds; `askance newyorker build` makes tasks from "
            "raw captions."
        ),
        "There are no pictures: contexts that show the cartoon need them, in all_contest_images.zip for most layouts.",
    )


def test_what_makes_figures_not_comparable_is_noted(own_place: Path) -> None:
    folder = cartoons.repository(own_place / "data")
    for file in sorted((folder / "annotations_per_split").iterdir()):
        file.unlink()
    for fold in (1, 2, 4):
        (folder / "tasks" / f"contest_matching_split={fold}_cleaned.json").unlink()

    notes = check(folder).notes

    assert "Of matching there are the folds 0, 3; published figures are means over five." in notes
    assert any("one is drawn for each contest, which need not be the published one" in text for text in notes)


def test_the_leaderboard_is_counted(own_place: Path) -> None:
    report = check(cartoons.leaderboard(own_place / "data"))

    assert report.sound
    assert report.leaderboard == {
        "matching": Counted(found=4, published=830),
        "ranking": Counted(found=4, published=664),
    }
    assert any("the leaderboard's items and no tasks of the folds" in text for text in report.notes)


def test_what_is_there_again_is_noted(own_place: Path) -> None:
    folder = cartoons.from_pixels(cartoons.parquet(own_place / "data"))

    assert check(folder).notes == (
        (
            "The same folds of tasks are there again and not read from there: explanation_from_pixels, "
            "explanation_from_pixels_1, explanation_from_pixels_2 and 12 more."
        ),
    )
