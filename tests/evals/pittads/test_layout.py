from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import BadData
from askance.evals.pittads import Pictures
from askance.evals.suite.image_keys import check_key, full_key, key_order, shard_of
from tests.evals.pittads.files import draw

SHARDS = {
    "142269.jpg": "9",
    "166908.jpg": "8",
    "166909.jpg": None,
    "170001.png": "10",
    "178000.png": "10",
    "178001.png": None,
    "142269.png": None,
    "170001.jpg": None,
    "cat.jpg": None,
    "17": None,
}


@pytest.mark.parametrize(("name", "shard"), SHARDS.items(), ids=SHARDS)
def test_the_shard_of_an_image_follows_from_its_number(name: str, shard: str | None) -> None:
    assert shard_of(name) == shard
    assert full_key(name) == (name if shard is None else f"{shard}/{name}")


OUTSIDE = (
    "../x.jpg",
    "1/../../x.jpg",
    "..",
    "1/..",
    "/x.jpg",
    "~/x.jpg",
    "..\\x.jpg",
    "\\x.jpg",
    "C:x.jpg",
    "C:/x.jpg",
)


@pytest.mark.parametrize("key", OUTSIDE)
def test_no_key_leads_out_of_the_folder(key: str) -> None:
    with pytest.raises(BadData, match=r"^The file 'a': the key .* leads out of the data folder\."):
        check_key(key, where="The file 'a'")


@pytest.mark.parametrize(
    "key", ["", ".", "1//x.jpg", "1/ /x.jpg", "x\0.jpg", "x\n.jpg", "https://a.org/x.jpg", "x" * 256]
)
def test_what_is_no_path_is_refused(key: str) -> None:
    with pytest.raises(BadData, match=r"^The file 'a': .* is no path of an image\."):
        check_key(key, where="The file 'a'")


@pytest.mark.parametrize("key", ["9/142269.jpg", "17", "a..b.jpg", "images/9/x y.jpg", "1/äö#.png"])
def test_a_path_is_taken_as_it_is(key: str) -> None:
    assert check_key(key, where="") == key


def test_keys_are_ordered_by_number() -> None:
    keys = ["10/170001.png", "9/9.jpg", "2/102.jpg", "2/12.jpg", "cat.png", "2/x.jpg"]

    assert sorted(keys, key=key_order) == ["2/12.jpg", "2/102.jpg", "2/x.jpg", "9/9.jpg", "10/170001.png", "cat.png"]


LAYOUTS = (
    "train_images/9/142269.jpg",
    "train_images_total/9/142269.jpg",
    "test_images/9/142269.jpg",
    "tiny_test/9/142269.jpg",
    "tiny_test/142269.jpg",
    "images/9/142269.jpg",
    "images/142269.jpg",
    "9/142269.jpg",
    "142269.jpg",
    "subfolder-9/142269.jpg",
    "subfolder-9/9/142269.jpg",
    "images/subfolder-9/9/142269.jpg",
    "PittAd/train_images/9/142269.jpg",
)


@pytest.mark.parametrize("path", LAYOUTS)
@pytest.mark.parametrize("key", ["9/142269.jpg", "142269.jpg"])
def test_an_image_is_found_in_every_layout(path: str, key: str, own_place: Path) -> None:
    draw(own_place, path, "train_images/8/8.jpg")

    assert Pictures.scan(own_place).find(key) == own_place / path


def test_an_image_that_is_not_there_is_none(own_place: Path) -> None:
    draw(own_place, "9/142269.jpg", "9/notes.txt", ".hidden/9/19.jpg")

    assert [Pictures.scan(own_place).find(key) for key in ("9/19.jpg", "19.jpg", "notes.txt")] == [None, None, None]


def test_folders_name_the_split(own_place: Path) -> None:
    draw(own_place, "train_images/1/11.jpg", "train_images_total/2/12.jpg", "tiny_test/3/13.jpg", "images/4/14.jpg")

    pictures = Pictures.scan(own_place)

    assert [pictures.split(f"{n}.jpg") for n in (11, 12, 13, 14, 15)] == ["train", "train", "test", None, None]
    assert pictures.splits() == {"train": 2, "test": 1, None: 1}


def test_copies_of_an_image_are_one(own_place: Path) -> None:
    draw(own_place, "images/1/11.jpg", "test_images/1/11.jpg", "train_images_total/11.jpg", "train_images/1/11.jpg")

    pictures = Pictures.scan(own_place)

    assert (len(pictures), pictures.find("11.jpg")) == (1, own_place / "train_images/1/11.jpg")
    assert (pictures.shared_names, pictures.split("11.jpg")) == ((), "train")


def test_a_name_in_two_shards_is_ambiguous_but_for_its_key(own_place: Path) -> None:
    draw(own_place, "images/1/cat.jpg", "images/2/cat.jpg", "images/3/11.jpg", "images/1/11.jpg")

    pictures = Pictures.scan(own_place)

    assert pictures.find("2/cat.jpg") == own_place / "images/2/cat.jpg"
    assert pictures.find("11.jpg") == own_place / "images/1/11.jpg"
    assert pictures.shared_names == ("11.jpg", "cat.jpg")
    with pytest.raises(BadData, match=r"^The image 'cat\.jpg' may be '1/cat\.jpg' or '2/cat\.jpg' in "):
        pictures.find("cat.jpg")


def test_an_image_in_a_shard_of_another_number_is_found_by_its_name(own_place: Path) -> None:
    draw(own_place, "images/3/142269.jpg")

    assert Pictures.scan(own_place).find("9/142269.jpg") == own_place / "images/3/142269.jpg"


def test_a_name_that_is_not_of_the_data_set_is_not_found_in_another_folder(own_place: Path) -> None:
    draw(own_place, "images/2/cat.jpg", "images/cup.jpg", "images/17.png")

    pictures = Pictures.scan(own_place)

    assert pictures.find("1/cat.jpg") is None
    assert pictures.find("1/cup.jpg") == own_place / "images/cup.jpg"
    assert pictures.find("17") == own_place / "images/17.png"


def test_a_circle_of_links_ends(own_place: Path) -> None:
    draw(own_place, "images/1/11.jpg")
    (own_place / "images" / "again").symlink_to(own_place, target_is_directory=True)

    assert len(Pictures.scan(own_place)) == 1


def test_a_folder_that_is_not_there_is_named(own_place: Path) -> None:
    with pytest.raises(BadData, match=r"^There is no data folder 'nowhere'\."):
        Pictures.scan(Path("nowhere"))
