from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import BadData
from askance.evals.suite import draw_ids, read_ids
from tests.evals.pittads.files import key_of, write

LISTS = {
    "lines": ("ids.txt", "9/142269.jpg\n\n# of the small set\n12050.jpg  # the second\r\n"),
    "a list": ("ids.json", '["9/142269.jpg", "0/12050.jpg"]'),
    "statements": ("QA.json", '{"9/142269.jpg": [["a"], ["a", "b"]], "12050.jpg": [["a"], ["a", "b"]]}'),
    "a table": ("ids.csv", "n,image_url\n1,142269.jpg\n2,0/12050.jpg\n"),
    "descriptions": ("ids.csv", "ID,description\n9/142269.jpg,a cup\n0/12050.jpg,a cat\n"),
}


@pytest.mark.parametrize(("name", "text"), LISTS.values(), ids=LISTS)
def test_a_list_is_read_in_its_order(name: str, text: str, own_place: Path) -> None:
    assert read_ids(write(own_place / name, text)) == ("9/142269.jpg", "0/12050.jpg")


WRONG = {
    "twice": (
        "ids.txt",
        "12050.jpg\n9/142269.jpg\n0/12050.jpg\n",
        r"has '0/12050\.jpg' twice, at line 1 and at line 3\.",
    ),
    "empty": ("ids.txt", "\n# none\n", "is empty"),
    "a key twice": ("ids.json", '{"0/1.jpg": 1, "0/1.jpg": 1}', r"has the key '0/1\.jpg' twice"),
    "numbers": ("ids.json", "[1, 2]", "is no list of images"),
    "a text": ("ids.json", '"9/142269.jpg"', "is no list of images"),
    "no column": ("ids.csv", "name\n9/142269.jpg\n", "has no column 'id'"),
    "out of the folder": ("ids.txt", "../x.jpg\n", "line 1: the key '../x.jpg' leads out of the data folder"),
    "wrong encoding": ("ids.txt", "caf\udce9.jpg\n", "is no UTF-8 text"),
}


@pytest.mark.parametrize(("name", "text", "message"), WRONG.values(), ids=WRONG)
def test_a_list_that_is_none_is_refused(name: str, text: str, message: str, own_place: Path) -> None:
    with pytest.raises(BadData, match=message):
        read_ids(write(own_place / name, text.encode("utf-8", "surrogateescape")))


KEYS = [key_of(number) for number in range(1, 1169)]


def test_a_drawn_set_is_known_by_its_seed() -> None:
    drawn = draw_ids(KEYS)

    assert (len(drawn), len({*drawn})) == (250, 250)
    assert drawn[:3] == ("9/1149.jpg", "8/1078.jpg", "1/361.jpg")
    assert len({*drawn} & {*draw_ids(KEYS, seed=1)}) < 100


@given(st.permutations(KEYS[:40]), st.integers(0, 40), st.integers())
def test_drawing_depends_on_the_images_and_the_seed_alone(keys: list[str], size: int, seed: int) -> None:
    drawn = draw_ids(keys, size=size, seed=seed)

    assert drawn == draw_ids(sorted(keys), size=size, seed=seed)
    assert draw_ids(keys, size=size + 5, seed=seed)[:size] == drawn
    assert len({*drawn} - {*draw_ids(keys[1:], size=size, seed=seed)}) <= 1
