from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadData
from askance.evals.pittads import SymbolBox, read_id_list, read_symbols, read_votes
from askance.evals.pittads.annotations import Listed, named
from tests.evals.pittads.files import id_lists, write, write_json

LISTS: dict[str, list[Listed]] = {
    "Topics_List.txt": [
        Listed("1", "Cafés, fast food", "restaurant"),
        Listed("2", "Pet food", "petfood"),
        Listed("3", "Unclear", "unclear"),
    ],
    "Sentiments_List.txt": [Listed("1", "Active (vibrant)", "active"), Listed("2", "Blasé (bored)", "blase")],
    "Strategies_List.txt": [
        Listed("1", "Process", "process"),
        Listed("2", "Symbol", "symbol"),
        Listed("3", "Atypical", "atypical"),
    ],
}


@pytest.mark.parametrize(("name", "entries"), LISTS.items(), ids=LISTS)
def test_each_list_is_read_in_its_own_encoding(name: str, entries: list[Listed], own_place: Path) -> None:
    id_lists(own_place)

    assert read_id_list(own_place / name) == {entry.id: entry for entry in entries}


WRONG_LISTS = {
    "empty": ("\n", r"is empty\."),
    "no id": ("1, Process\nSymbol\n", r", line 2: 'Symbol' has no id and text\."),
    "an id twice": ("1, Process\n1, Symbol\n", ", line 2: the id 1 stands there twice"),
}


@pytest.mark.parametrize(("text", "message"), WRONG_LISTS.values(), ids=WRONG_LISTS)
def test_a_list_of_another_form_is_refused(text: str, message: str, own_place: Path) -> None:
    with pytest.raises(BadData, match=rf"^The file '.*List\.txt',? ?{message.removeprefix(', ')}"):
        read_id_list(write(own_place / "List.txt", text))


def test_votes_are_kept_as_they_are_and_named(own_place: Path) -> None:
    id_lists(own_place)
    path = write_json(
        own_place / "Topics.json", {"62717.jpg": ["2", "", "musical instruments "], "0/10.jpg": [["1", "3"], []]}
    )
    entries = read_id_list(own_place / "Topics_List.txt")

    votes = read_votes(path)

    assert votes == {"7/62717.jpg": (("2",), ("",), ("musical instruments ",)), "0/10.jpg": (("1", "3"), ())}
    assert named(votes["7/62717.jpg"], entries) == ("petfood", "musical instruments ")
    assert named(votes["0/10.jpg"], {}) == ("1", "3")


def test_the_corners_of_a_box_are_put_in_order(own_place: Path) -> None:
    path = write_json(own_place / "Symbols.json", {"10/170741.png": [[430.0, 466, 58.0, 14, "electronics"]]})

    (box,) = read_symbols(path)["10/170741.png"]

    assert box == SymbolBox(left=58, top=14, right=430, bottom=466, label="electronics")
    assert box.scaled(1000, 250) == (116, 7, 860, 233)


def test_a_box_that_runs_over_the_edge_is_cut() -> None:
    assert SymbolBox(left=-5, top=0, right=510, bottom=500, label="x").scaled(100, 50) == (0, 0, 100, 50)


WRONG: dict[str, tuple[Any, str]] = {
    "no list": ("x", "the value is no list of boxes"),
    "four fields": ([[1, 2, 3, 4]], r"'\[1, 2, 3, 4\]' is no box"),
    "text for a number": ([[1, 2, 3, "4", "x"]], "is no box"),
    "no label": ([[1, 2, 3, 4, 5]], "is no box"),
    "true for a number": ([[True, 2, 3, 4, "x"]], "is no box"),
    "far away": ([[1, 2, 3, 1e300, "x"]], "is no box"),
}


@pytest.mark.parametrize(("value", "message"), WRONG.values(), ids=WRONG)
def test_a_box_of_another_form_is_refused(value: Any, message: str, own_place: Path) -> None:
    with pytest.raises(BadData, match=rf"^The file '.*Symbols\.json', key '0/1\.jpg': .*{message}"):
        read_symbols(write_json(own_place / "Symbols.json", {"0/1.jpg": value}))


@pytest.mark.parametrize("value", ["x", [1], [["1"], [2]], {"a": 1}])
def test_votes_of_another_form_are_refused(value: Any, own_place: Path) -> None:
    with pytest.raises(BadData, match=r"^The file '.*Topics\.json', key '0/1\.jpg': "):
        read_votes(write_json(own_place / "Topics.json", {"0/1.jpg": value}))
