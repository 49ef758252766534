from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from askance.errors import BadData
from askance.evals.pittads import Dropped, PittAds, check
from tests.evals.pittads.files import (
    KEYS,
    draw,
    key_of,
    record,
    release_b,
    row,
    small_folder,
    true_of,
    write,
    write_csv,
    write_json,
)

ONE, TWO, THREE, FOUR = KEYS


@pytest.fixture
def folder(own_place: Path) -> Path:
    return small_folder(own_place / "PittAd")


def test_a_whole_folder_is_told(folder: Path) -> None:
    report = check(folder)

    assert [(file.part, file.path, file.holds) for file in report.files] == [
        ("statements", "train/QA_Combined_Action_Reason_train.json", "4 images, 15 options"),
        ("atypicality", "final_csv.csv", "4 images, 11 rows"),
        ("topics list", "Topics_List.txt", "3 entries"),
        ("sentiments list", "Sentiments_List.txt", "2 entries"),
        ("strategies list", "Strategies_List.txt", "3 entries"),
    ]
    assert report.release == "release B (2018), true statements and options"
    assert (report.images, report.images_missing) == ({"train": 3}, (TWO,))
    assert report.sets == {"usable": 2, "labelled": 3, "typical": 1}
    assert (report.options, report.true) == ({15: 4}, {3: 4})
    assert report.problems == (f"1 image is missing, '{TWO}'.",)


def test_each_dropped_row_and_image_has_its_reason(folder: Path) -> None:
    report = check(folder)

    assert report.rows_dropped == (
        Dropped("regular object", 3, (TWO, FOUR)),
        Dropped("no primary object", 2, (TWO, THREE)),
        Dropped("another category", 1, (f"{THREE}: '5'",)),
        Dropped("no category", 1, (THREE,)),
    )
    assert report.images_dropped == (Dropped("no usable objects", 1, (THREE,)), Dropped("typical", 1, (FOUR,)))
    assert report.rows == sum(group.count for group in report.rows_dropped) + 4


def test_a_sound_folder_has_nothing_to_mend(folder: Path) -> None:
    draw(folder / "train_images", TWO)

    assert check(folder).sound
    assert json.loads(json.dumps(check(folder).canonical()))["sound"] is True


def test_every_kind_of_file_is_read(folder: Path) -> None:
    name = "QA_Combined_Action_Reason_train.json"
    write_json(folder / "train" / f"action_hard_{name}", {ONE: record(ONE, options=18)})
    write_json(folder / "test" / "QA_Combined_Action_Reason_test.json", {key_of(19): record("x")[1]})
    write_json(folder / "QA_Action.json", {ONE: ["I should"] * 3})
    write_json(folder / "Topics.json", {ONE: ["1"]})
    write_json(folder / "Symbols.json", {ONE: [[1, 2, 3, 4, "x"]] * 2})
    write_csv(folder / "results" / "UH_LLAVA_description_ARR.csv", [(ONE, "x")], ("ID", "description"))

    files = {file.path: file.holds for file in check(folder).files}

    assert files[f"train/action_hard_{name}"] == "hard negatives (action), 1 image, 18 options"
    assert files["test/QA_Combined_Action_Reason_test.json"] == "1 image, 15 options"
    assert files["QA_Action.json"] == "1 image"
    assert files["Topics.json"] == "1 image"
    assert files["Symbols.json"] == "1 image, 2 boxes"
    assert files["results/UH_LLAVA_description_ARR.csv"] == "UH of 1 image by LLAVA"


def test_what_is_wrong_is_collected_and_the_rest_counted(folder: Path) -> None:
    release_b(folder, {ONE: record(ONE), TWO: [[], ["a"]], "../x.jpg": record("x")})
    write_csv(folder / "final_csv.csv", [row(ONE), row(TWO), row(TWO, "10"), row(ONE, boxes="[{")])
    write(folder / "Topics_List.txt", b"no list")

    report = check(folder)

    assert {problem.replace(str(folder), "") for problem in report.problems} == {
        "The file '/train/QA_Combined_Action_Reason_train.json', key '2/12.jpg': there is no true statement.",
        "The file '/train/QA_Combined_Action_Reason_train.json': the key '../x.jpg' leads out of the data folder.",
        "The file '/final_csv.csv', line 4: the category '10' is unknown.",
        "The file '/Topics_List.txt', line 1: 'no list' has no id and text.",
        "The file '/final_csv.csv', line 5: the boxes '[{' cannot be read.",
    }
    assert (report.sets["usable"], report.options) == (1, {15: 1})


def test_a_file_that_cannot_be_used_counts_as_missing(folder: Path) -> None:
    write(folder / "final_csv.csv", b"\xff\xfe\x00")

    report = check(folder)

    assert {file.path: file.holds for file in report.files}["final_csv.csv"] == "cannot be used"
    assert "final_csv.csv" in report.missing
    assert not report.sound


def test_what_is_missing_is_said_with_what_it_is_for(own_place: Path) -> None:
    write_json(own_place / "QA_Combined_Action_Reason.json", {FOUR: true_of(FOUR)})

    report = check(own_place)

    assert report.release == "release A (2017), true statements without options"
    assert [*report.missing] == ["final_csv.csv", "train/QA_Combined_Action_Reason_train.json", "train_images/"]
    assert len(report.problems) == 3


def test_what_is_good_to_know_is_no_fault(folder: Path) -> None:
    draw(folder / "train_images", TWO)
    release_b(
        folder, {ONE: record(ONE, count=2), TWO: [["a"], ["a", "b", "b"]], THREE: record(THREE), FOUR: record(FOUR)}
    )
    write_csv(folder / "final_csv.csv", [row(ONE, boxes='[{"label": "t-shirt"-"x": 1}]'), row(ONE, "1"), row(TWO)])

    report = check(folder)

    assert report.notes == (
        "1 image has an option twice, '2/12.jpg' first; it is offered once.",
        "Release B has 15 options an image; this file has 3, 15.",
        "2 images have fewer than three true statements, which bounds precision@3.",
        "1 image has no plurality label: a tie.",
        "1 row has a box whose label holds a hyphen; it is kept.",
    )
    assert report.problems == ()


def test_a_list_is_held_against_the_folder(folder: Path) -> None:
    report = check(folder, ids=[ONE, FOUR, key_of(990), key_of(991)])

    assert report.listed is not None
    assert (report.listed.listed, report.listed.kept) == (4, 1)
    assert report.listed.unknown == ("0/990.jpg", "1/991.jpg")
    assert report.listed.dropped == (Dropped("typical", 1, (FOUR,)),)
    assert report.problems[-1] == "2 listed images match nothing, '0/990.jpg' first."


@pytest.mark.parametrize("names", [[], ["notes.txt", "train/other.json"]], ids=["empty", "other files"])
def test_a_folder_of_something_else_is_refused(names: list[str], own_place: Path) -> None:
    draw(own_place, *names)

    with pytest.raises(BadData, match=r"^The folder '.*' holds nothing of the data set\. Looked for `final_csv\.csv`"):
        check(own_place)


def test_a_set_of_the_size_of_the_papers_is_counted_in_seconds(own_place: Path) -> None:
    """3,928 annotated images: 1,168 usable, 32 labelled without objects, 2,000 typical, 728 of other categories."""
    keys = [key_of(number) for number in range(1, 3929)]
    kinds = (
        [("3", "cat", "cup")] * 1168
        + [("8", "", "")] * 32
        + [("Regular_Object", "", "")] * 2000
        + [("4", "", "")] * 728
    )
    write_csv(
        own_place / "final_csv.csv", [row(key, *kind) for key, kind in zip(keys, kinds, strict=True) for _ in "abc"]
    )
    release_b(own_place, {key: record(key) for key in keys})
    draw(own_place / "train_images", *keys[:1168])
    start = time.monotonic()

    report, data = check(own_place), PittAds.open(own_place)

    assert report.sets == {"usable": 1168, "labelled": 1200, "typical": 2000}
    assert (report.annotated, report.rows, report.images_missing) == (3928, 11784, ())
    assert [(group.reason, group.count) for group in report.images_dropped] == [
        ("typical", 2000),
        ("none of the four categories", 728),
        ("no usable objects", 32),
    ]
    assert (len(data.ads), data.missing_images) == (1168, ())
    assert time.monotonic() - start < 20
