"""The data set in all its layouts, whole and damaged; pairs; folds; the check on the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadData, BadImage
from askance.evals.suite import fold_of
from askance.evals.whoops import Whoops, check, read_pairs
from askance.evals.whoops.images import questions_in, texts_in
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS, LAYOUTS
from tests.scripted import PICTURES


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_holds_the_same(make: Callable[[Path], Path], tmp_path: Path) -> None:
    data = Whoops.open(make(tmp_path / "data"))
    row = files.rows()[1]
    images = [entry.load() for entry in data.entries]

    assert [entry.id for entry in data.entries] == list(IDS)
    assert [entry.place for entry in data.entries] == [0, 1, 2, 3, 4]
    assert replace(data.entries[1], load=lambda: None) == replace(
        Whoops.open(files.first_release(tmp_path / "first")).entries[1], load=lambda: None
    )
    assert list(data.entries[1].explanations) == row["crowd_explanations"]
    assert data.entries[1].questions == (("What is shown?", "a cat cup"), ("How many are 1?", "two"))
    assert data.entries[1].selected_caption == row["selected_caption"]
    assert [image and image.data for image in images] == [
        (PICTURES / f"{name}.jpg").read_bytes() for name in files.NAMES
    ]


FORMS: dict[str, Any] = {
    "list": ["a", "it's"],
    "JSON": '["a", "it\'s"]',
    "literal": "['a', \"it's\"]",
    "blanks around": ' ["a", "it\'s", "  "]\n',
    "tuple": "('a', \"it's\")",
}


@pytest.mark.parametrize("cell", FORMS.values(), ids=FORMS)
def test_a_list_is_a_list_in_every_form(cell: Any) -> None:
    assert texts_in(cell, "here") == ("a", "it's")


@pytest.mark.parametrize("cell", ["", None, "[]", [], "()"], ids=repr)
def test_nothing_is_an_empty_list(cell: Any) -> None:
    assert texts_in(cell, "here") == questions_in(cell, "here") == ()


@pytest.mark.parametrize(
    "cell",
    [
        "__import__('os').system('x')",
        "['a'",
        "a, b",
        '"a"',
        "{'a': 1}",
        "[1]",
        3,
        "[" * 1500,
        "-" * 9000 + "1",
        "['a'] + 1",
    ],
    ids=lambda cell: str(cell)[:12],
)
def test_what_is_no_list_of_texts_is_said(cell: Any) -> None:
    with pytest.raises(BadData, match=r"^here: "):
        texts_in(cell, "here")


def test_a_cell_that_no_row_has_is_not_read() -> None:
    with pytest.raises(BadData, match="more than any of the data set"):
        texts_in(json.dumps(["a" * 300_000]), "here")


@pytest.mark.parametrize("cell", ['[["a"]]', '[["a", ""]]', '["ab"]', '[["a", ["b"]]]', '[["a", true]]'])
def test_what_is_no_pair_of_question_and_answer_is_said(cell: str) -> None:
    with pytest.raises(BadData, match="no pair of question and answer"):
        questions_in(cell, "here")


def test_an_answer_may_be_a_number() -> None:
    assert questions_in('[["How many?", 2]]', "here") == (("How many?", "2"),)


# --- what is wrong ---


def test_a_folder_without_the_data_set_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"holds nothing of the data set\. Expected is 'whoops_dataset.csv'"):
        Whoops.open(tmp_path)
    with pytest.raises(BadData, match="There is no data folder"):
        Whoops.open(tmp_path / "gone")


BROKEN: dict[str, tuple[str, str]] = {
    "no id": ("crowd_captions\n[]\n", "no column that names the image"),
    "twice": ("image_id,image_id\na,b\n", "has the column 'image_id' twice"),
    "short row": ("image_id,selected_caption\na\n", "line 2: 1 fields, and the first line names 2"),
    "same image": ("image_id\na\na\n", "the image 'a' stands there twice"),
    "empty": ("image_id\n", "no row that can be used"),
    "open quote": ('image_id,selected_caption\na,"b\n', "ends within a quoted field"),
    "no name": ("image_id,selected_caption\n,b\n", "nothing says which image it is about"),
    "bad list": ("image_id,crowd_captions\na,[b\n", r"line 2, 'crowd_captions': '\[b' is a list neither"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_table_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "whoops_dataset.csv").write_text(text, encoding="utf-8")

    with pytest.raises(BadData, match=message):
        Whoops.open(tmp_path)


@pytest.mark.parametrize("name", ["test-00000.parquet", "data-00000.arrow"])
def test_a_broken_arrow_file_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"PAR1 no more than that")

    with pytest.raises(BadData, match=f"{name}' cannot be read as Arrow"):
        Whoops.open(tmp_path)


def test_an_archive_that_is_none_is_named(tmp_path: Path) -> None:
    files.archived(tmp_path / "data")
    (tmp_path / "data" / "whoops_images.zip").write_bytes(b"PK no archive")

    with pytest.raises(BadData, match=r"whoops_images\.zip' cannot be read"):
        Whoops.open(tmp_path / "data")


def test_a_damaged_picture_in_an_archive_is_of_that_picture_alone(tmp_path: Path) -> None:
    archive = files.archived(tmp_path / "data") / "whoops_images.zip"
    data = archive.read_bytes()
    at = data.index(b"\xff\xd8\xff") + 400
    archive.write_bytes(data[:at] + b"XXXX" + data[at + 4 :])
    entries = Whoops.open(tmp_path / "data").entries

    with pytest.raises(BadImage, match="cannot be taken out"):
        entries[0].load()
    assert entries[1].load() is not None


# --- keys ---


@pytest.mark.parametrize("key", [IDS[2], f"{IDS[2]}.png", f"x/{IDS[2]}.png", "2", "2.png", "0/2.png"])
def test_a_key_is_an_id_or_the_position_of_a_row(key: str, tmp_path: Path) -> None:
    found = Whoops.open(files.first_release(tmp_path)).of_key(key)

    assert found is not None
    assert found.id == IDS[2]


@pytest.mark.parametrize("key", ["5", "-1", "²", "two", "", "2.5.png", "99999999"])
def test_a_key_of_no_image_is_none(key: str, tmp_path: Path) -> None:
    assert Whoops.open(files.first_release(tmp_path)).of_key(key) is None


def test_an_id_that_is_a_number_goes_before_a_position(tmp_path: Path) -> None:
    table = [{"image_id": "1"}, {"image_id": "0"}]
    files.write_table(tmp_path / "whoops_dataset.csv", table)
    data = Whoops.open(tmp_path)

    assert [entry and entry.place for entry in (data.of_key("0"), data.of_key("1.png"))] == [1, 0]


def test_pictures_may_be_named_by_the_position_of_their_row(tmp_path: Path) -> None:
    files.write_table(tmp_path / "whoops_dataset.csv", [files.as_json(row) for row in files.rows()])
    files.pictures(tmp_path / "images", {name: str(place) for place, name in enumerate(IDS)})
    entry = Whoops.open(tmp_path).entries[3]
    image = entry.load()

    assert image is not None
    assert image.data == (PICTURES / f"{files.NAMES[3]}.jpg").read_bytes()
    assert any("position of their row" in text for text in check(tmp_path).notes)


# --- which images ---


def test_a_list_says_which_images_and_in_which_order(tmp_path: Path) -> None:
    folder = files.first_release(tmp_path)

    assert [entry.id for entry in Whoops.open(folder, ids=[IDS[3], IDS[0]]).entries] == [IDS[3], IDS[0]]
    with pytest.raises(BadData, match="1 of 2 listed images are not there, such as 'x'"):
        Whoops.open(folder, ids=[IDS[0], "x"])


def test_what_a_task_needs_and_nobody_has_is_said(tmp_path: Path) -> None:
    files.write_table(tmp_path / "whoops_dataset.csv", [{"image_id": "a", "crowd_captions": '["b"]'}])
    data = Whoops.open(tmp_path)

    assert len(data.with_all("captions")) == 1
    with pytest.raises(BadData, match=r"have no explanations \(crowd_explanations\)"):
        data.with_all("captions", "explanations")
    with pytest.raises(BadData, match="have no pictures"):
        data.with_all("image")


# --- pairs ---


def test_pairs_take_their_weird_half_from_the_data_set(tmp_path: Path) -> None:
    data = Whoops.open(files.first_release(tmp_path / "data"))
    found = read_pairs(files.pairs(tmp_path / "pairs"), {entry.id: entry for entry in data.entries})

    assert [(pair.id, pair.category) for pair in found] == list(zip(IDS[:3], files.CATEGORIES[:3], strict=True))
    assert [pair.weird.sha256 for pair in found] == [image.sha256 for e in data.entries[:3] if (image := e.load())]
    assert found[0].weird_caption == files.rows()[0]["selected_caption"]
    assert len({pair.normal.sha256 for pair in found}) == 3


@pytest.mark.parametrize("between", ["_", "-", "."])
def test_pairs_may_be_told_by_their_names(between: str, tmp_path: Path) -> None:
    for name in ("a_b", "c"):
        for kind in ("weird", "Normal"):
            shutil.copy(PICTURES / "cat-cup.jpg", tmp_path / f"{name}{between}{kind}.jpg")

    assert [pair.id for pair in read_pairs(tmp_path)] == ["a_b", "c"]


def test_pairs_may_be_listed(tmp_path: Path) -> None:
    shutil.copy(PICTURES / "cat-cup.jpg", tmp_path / "1.jpg")
    shutil.copy(PICTURES / "plain-coffee.jpg", tmp_path / "2.jpg")
    files.write_table(tmp_path / "pairs.csv", [{"weird": "1.jpg", "normal": "2.jpg", "normal_caption": "Coffee."}])
    (pair,) = read_pairs(tmp_path)

    assert (pair.id, pair.normal_caption, pair.weird_caption) == ("1", "Coffee.", "")
    assert pair.normal.name == "2.jpg"


def copied(name: str) -> Callable[[Path], object]:
    return lambda folder: shutil.copy(PICTURES / "cat-cup.jpg", folder / name)


def listed(weird: str, normal: str) -> Callable[[Path], object]:
    return lambda folder: files.write_table(folder / "pairs.csv", [{"weird": weird, "normal": normal}])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.stat, "holds no pairs"),
        (copied("a_weird.jpg"), "no other half, such as 'a'"),
        (copied("a_normal.jpg"), "no other half, such as 'a'"),
        (listed("../x", "y"), "no file of the folder"),
        (listed("", ""), "'' is no file"),
        (listed("a\0b.png", "y"), "line 2: .* is no file of the folder"),
        (listed("x" * 5000, "y"), "line 2: .* is no file of the folder"),
        (listed("loop/x.png", "y"), "line 2: .* is no file of the folder"),
    ],
    ids=["empty", "no normal", "no weird", "outside", "blank", "no name", "long", "loop"],
)
def test_what_is_no_pair_is_said(make: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(BadData, match=message):
        read_pairs(tmp_path)


# --- folds ---


def test_each_image_is_in_one_fold_whatever_their_order() -> None:
    names = [f"i{number}" for number in range(23)]
    places = fold_of(names, seed=1)

    assert sorted(places) == sorted(names)
    assert [[*places.values()].count(fold) for fold in range(5)] == [5, 5, 5, 4, 4]
    assert fold_of(reversed(names), seed=1) == places
    assert fold_of(names, seed=2) != places


# --- the check ---


def test_categories_that_nobody_knows_are_told(tmp_path: Path) -> None:
    rows = [{"image_id": f"w{n}", "commonsense_category": f"kind {n}"} for n in range(26)]
    more = [{"image_id": "x", "commonsense_category": "Kind  3"}, {"image_id": "y", "commonsense_category": ""}]
    files.write_table(tmp_path / "whoops_dataset.csv", [*rows, *more])
    notes = check(tmp_path).notes

    assert {
        "27 commonsense categories, and the paper has 26.",
        "Images without a commonsense category, which stand in the figures of none: 1.",
        "The categories 'kind 3' and 'Kind  3' differ in how they are written alone, and count as two.",
    } <= {*notes}


def test_the_check_goes_on_past_broken_rows(tmp_path: Path) -> None:
    table = [files.as_json(row) for row in files.rows()]
    table[1]["crowd_captions"] = "[1"
    table[2]["crowd_explanations"] = '["one"]'
    files.write_table(tmp_path / "whoops_dataset.csv", table)
    files.pictures(tmp_path)
    report = check(tmp_path)

    assert report.counts["images"].found == 4
    assert "line 3, 'crowd_captions'" in report.problems[0]
    assert report.problems[1:] == ("1 image has another number of crowd_explanations than 5.",)
