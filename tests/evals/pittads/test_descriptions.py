from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import BadData
from askance.evals.pittads import read_descriptions
from askance.evals.pittads.descriptions import find_descriptions, given_links, object_names, one_of_each
from tests.evals.pittads.files import write, write_csv

COLUMNS = ("ID", "description")
KEY = "9/142269.jpg"
NAMES = {
    "IN_LLAVA_description_ARR.csv": ("IN", "LLAVA", "ARR"),
    "combine_InternVL2_8B_description_PittAd_multi.csv": ("combine", "InternVL2_8B", "PittAd_multi"),
    "T_llava-v1.6_description_whoops.csv": ("T", "llava-v1.6", "whoops"),
}


@pytest.mark.parametrize(("name", "said"), NAMES.items(), ids=NAMES)
def test_the_name_says_what_is_described_and_by_whom(name: str, said: tuple[str, str, str], own_place: Path) -> None:
    file = read_descriptions(write_csv(own_place / name, [("142269.jpg", " A cup,\n'quoted' ")], COLUMNS))

    assert (file.source, file.vlm, file.task) == said
    assert file.texts == {KEY: " A cup,\n'quoted' "}


def test_texts_are_given_as_links(own_place: Path) -> None:
    said = {"V": "1. cup 2. feather", "T": "BEER\nnow", "IN": "A cup.", "UH": "", "combine": "All of it."}
    for source, text in said.items():
        write_csv(own_place / f"{source}_LLAVA_description_ARR.csv", [(KEY, text), ("0/10.jpg", "x")], COLUMNS)

    files = one_of_each(map(read_descriptions, find_descriptions(own_place)))

    assert given_links(KEY, files) == {
        "objects": ("cup", "feather"),
        "scene_text": "BEER\nnow",
        "narration": "A cup.",
        "description": "All of it.",
    }
    assert given_links("1/11.jpg", files) == {}


OBJECTS = {
    "numbered": ("1. beer bottle\n2. 3D glasses\n3) cup.", ("beer bottle", "3D glasses", "cup")),
    "numbered in a line": ("The objects are: 1. beer 2. cup, 3. a cup", ("beer", "cup")),
    "lines": ("- beer\n* cup\n", ("beer", "cup")),
    "commas": ("beer, tea cup, Beer", ("beer", "tea cup")),
    "one": ("t-shirt", ("t-shirt",)),
    "a number in a name": ("7up, iPhone 5", ("7up", "iPhone 5")),
}


@pytest.mark.parametrize(("text", "names"), OBJECTS.values(), ids=OBJECTS)
def test_objects_are_told_apart(text: str, names: tuple[str, ...]) -> None:
    assert object_names(text) == names


WRONG = {
    "another name": ("descriptions.csv", "ID,description\n0/1.jpg,x\n", "does not say what it describes"),
    "no column": ("IN_a_description_b.csv", "ID,text\n0/1.jpg,x\n", "has no column 'description'"),
    "twice": (
        "IN_a_description_b.csv",
        "ID,description\n0/10.jpg,x\n10.jpg,x\n",
        r"line 3: the image '0/10\.jpg' is desc",
    ),
    "empty": ("IN_a_description_b.csv", "", r"is empty\."),
    "out of the folder": ("IN_a_description_b.csv", "ID,description\n../1.jpg,x\n", "line 2: the key .* leads out"),
}


@pytest.mark.parametrize(("name", "text", "message"), WRONG.values(), ids=WRONG)
def test_a_file_that_is_none_is_refused(name: str, text: str, message: str, own_place: Path) -> None:
    with pytest.raises(BadData, match=message):
        read_descriptions(write(own_place / name, text))


def test_two_models_are_not_mixed(own_place: Path) -> None:
    for model in ("a", "b"):
        write_csv(own_place / f"IN_{model}_description_c.csv", [(KEY, "x")], COLUMNS)

    with pytest.raises(BadData, match=r"^Both '.*IN_a_.*' and '.*IN_b_.*' hold IN\."):
        one_of_each(map(read_descriptions, find_descriptions(own_place)))


def test_a_folder_without_any_is_named(own_place: Path) -> None:
    with pytest.raises(BadData, match="has no description files"):
        find_descriptions(own_place)
