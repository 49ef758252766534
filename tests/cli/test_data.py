from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.evals.pittads.files import KEYS, draw, small_folder, write

TOLD = """\
PittAd

Files
  statements       4 images, 15 options  train/QA_Combined_Action_Reason_train.json
  atypicality         4 images, 11 rows  final_csv.csv
  topics list                 3 entries  Topics_List.txt
  sentiments list             2 entries  Sentiments_List.txt
  strategies list             3 entries  Strategies_List.txt

Images
  with usable objects  2  of 1,168: the full set by the published code
  with a category      3  of 1,168: the full set by the paper's words
  of a small set       2  of 250: drawn by a seed, as the paper's own is not published
  typical              1  that all annotators find regular
  images on the disk   3  3 train
  of them missing      1  2/12.jpg

Statements of release B (2018), true statements and options
  images with 15 options  4
  images with 3 true      4

Rows dropped, of 11
  regular object     3  2/12.jpg, 10/170001.png …
  no primary object  2  2/12.jpg, 3/13.jpg
  another category   1  3/13.jpg: '5'
  no category        1  3/13.jpg

Images dropped, of 4
  no usable objects  1  3/13.jpg
  typical            1  10/170001.png

To know
  1 image has no plurality label: a tie.

To mend
  1 image is missing, '2/12.jpg'.
"""


@pytest.fixture
def folder(own_place: Path) -> Path:
    return small_folder(own_place / "PittAd")


def test_a_folder_is_told_for_a_person(askance: Command, folder: Path) -> None:
    done = askance("data", "check", "pittads", "PittAd")

    assert (done.code, done.out, done.err) == (1, TOLD, "")


def test_a_sound_folder_ends_well(askance: Command, folder: Path) -> None:
    draw(folder / "train_images", *KEYS)

    assert askance("data", "check", "pittads", str(folder)).code == 0


def test_json_has_all_of_it(askance: Command, folder: Path) -> None:
    done = askance("data", "check", "pittads", "PittAd", "--json")

    (report,) = done.lines
    assert (done.code, report["sets"], report["sound"]) == (1, {"usable": 2, "labelled": 3, "typical": 1}, False)
    assert report["rows_dropped"][0] == {
        "reason": "regular object",
        "count": 3,
        "examples": ["2/12.jpg", "10/170001.png"],
    }


def test_a_list_and_other_statements_are_held_against_it(askance: Command, folder: Path) -> None:
    write(folder / "ids.txt", "11.jpg\n990.jpg\n")
    write(folder / "mine.json", json.dumps({KEYS[0]: [["a"], ["a", "b"]]}))

    done = askance("data", "check", "pittads", "PittAd", "--ids", "PittAd/ids.txt", "--qa", "mine.json")

    assert done.code == 1
    assert "The list\n  can be evaluated on  1  of 2\n  match nothing        1  0/990.jpg\n" in done.out
    assert "images with 2 options  1\n" in done.out


WRONG = {
    "no folder": (["nowhere"], "There is no data folder 'nowhere'."),
    "another folder": (["."], "The folder '.' holds nothing of the data set."),
    "no list": (["PittAd", "--ids", "x.txt"], "There is no file 'x.txt'."),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_checked_is_said(arguments: list[str], message: str, askance: Command, own_place: Path) -> None:
    if "PittAd" in arguments:
        small_folder(own_place / "PittAd")

    done = askance("data", "check", "pittads", *arguments)

    assert (done.code, done.out, done.err.splitlines()[0]) == (2, "", f"askance: {message}")


def test_many_problems_are_cut_short(askance: Command, folder: Path) -> None:
    rows = "".join(f"0/{number}0.jpg,10,cat,cup,[]\n" for number in range(1, 41))
    write(folder / "final_csv.csv", f"image_url,category,first_explanation,second_explanation,bounding_box\n{rows}")

    done = askance("data", "check", "pittads", "PittAd")

    assert (done.code, done.out.count("is unknown.")) == (1, 12)
    assert "more" in done.out.splitlines()[-1]


def test_names_in_the_data_cannot_steer_the_terminal(askance: Command, folder: Path) -> None:
    write(
        folder / "final_csv.csv",
        "image_url,category,first_explanation,second_explanation,bounding_box\n1/11.jpg,\x1b[31mred,a,b,[]\n",
    )

    assert "\x1b" not in askance("data", "check", "pittads", "PittAd").out
