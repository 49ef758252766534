from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.atypicality import Statement
from askance.errors import BadData, UsageError
from askance.evals.pittads import Ad, PittAds
from askance.evals.suite import draw_ids
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


def test_an_ad_holds_all_that_is_known(folder: Path) -> None:
    write_json(folder / "train" / "Topics_train.json", {ONE: ["2", "9", "beer"]})
    write_json(folder / "train" / "Sentiments_train.json", {ONE: [["1"], ["2", "1"]]})
    write_json(folder / "train" / "Strategies_train.json", {ONE: [["3"], ["", "9"]]})
    write_json(folder / "train" / "Slogans_train.json", {ONE: ["Light! "]})
    write_csv(folder / "IN_LLAVA_description_ARR.csv", [(ONE, "A bottle.")], ("ID", "description"))

    ad = PittAds.open(folder, descriptions=folder).ads[0]

    assert ad == Ad(
        id=ONE,
        image=folder / "train_images" / ONE,
        true=tuple(true_of(ONE)),
        options=tuple(record(ONE)[1]),
        labels=("TR1", "OR"),
        plurality="TR1",
        votes=("TR1", "OR", "TR1"),
        statements=(
            Statement("TR1", "bottle", "feather"),
            Statement("OR", "bottle", "lamp"),
            Statement("TR1", "beer", "feather"),
        ),
        topics=("petfood", "9", "beer"),
        sentiments=("active", "blase", "active"),
        strategies=("atypical", "9"),
        slogans=("Light! ",),
        given={"narration": "A bottle."},
    )
    assert ad.negatives == tuple(text for text in record(ONE)[1] if text not in true_of(ONE))


WHICH: dict[str, tuple[dict[str, Any], list[str], dict[str, str]]] = {
    "usable": ({}, [ONE, TWO], {THREE: "no usable objects", FOUR: "typical"}),
    "labelled": ({"which": "labelled"}, [ONE, TWO, THREE], {FOUR: "typical"}),
    "typical": ({"which": "typical"}, [FOUR], dict.fromkeys((ONE, TWO, THREE), "not typical")),
    "listed": ({"ids": ["12.jpg", ONE]}, [TWO, ONE], {}),
    "listed and dropped": ({"ids": [FOUR, ONE]}, [ONE], {FOUR: "typical"}),
    "small": ({"small": True}, [ONE, TWO], {THREE: "no usable objects", FOUR: "typical"}),
}


@pytest.mark.parametrize(("options", "keys", "dropped"), WHICH.values(), ids=WHICH)
def test_images_are_taken_or_dropped_with_a_reason(
    options: dict[str, Any], keys: list[str], dropped: dict[str, str], folder: Path
) -> None:
    data = PittAds.open(folder, **options)

    assert [ad.id for ad in data.ads] == keys
    assert data.dropped == dropped


def test_images_that_are_not_there_are_reported(folder: Path) -> None:
    data = PittAds.open(folder)

    assert data.missing_images == (TWO,)
    assert [ad.image for ad in data.ads] == [folder / "train_images" / ONE, None]


def test_nothing_is_read_before_it_is_needed(folder: Path) -> None:
    write(folder / "final_csv.csv", "")

    data = PittAds.open(folder)

    with pytest.raises(BadData, match="is empty"):
        _ = data.ads


def test_a_list_in_a_file_keeps_its_order(folder: Path) -> None:
    data = PittAds.open(folder, ids=write(folder / "mine.txt", f"{TWO}\n{ONE}\n"))

    assert ([ad.id for ad in data.ads], data.origin) == ([TWO, ONE], "2 listed images with usable objects")


def test_listed_images_that_match_nothing_are_named(folder: Path) -> None:
    with pytest.raises(
        BadData, match=r"^2 of the 3 listed images match nothing in '.*PittAd': '0/990\.jpg', 'x\.png'\."
    ):
        _ = PittAds.open(folder, ids=[ONE, "990.jpg", "x.png"]).ads


def test_a_list_with_an_image_twice_is_refused(folder: Path) -> None:
    with pytest.raises(BadData, match=r"^The list of images has '1/11\.jpg' twice, at item 1 and at item 2\."):
        PittAds.open(folder, ids=[ONE, "11.jpg"])


def test_a_list_and_a_drawn_set_exclude_each_other(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"^Both a list of images and a drawn small set"):
        PittAds.open(folder, ids=[ONE], small=True)


def test_a_small_set_is_drawn_and_says_so(own_place: Path) -> None:
    keys = [key_of(number) for number in range(1, 301)]
    write_csv(own_place / "final_csv.csv", map(row, keys))

    data = PittAds.open(own_place, small=True, seed=7)

    assert {ad.id for ad in data.ads} == {*draw_ids(keys, seed=7)}
    assert [ad.id for ad in data.ads] == [ad.id for ad in PittAds.open(own_place).ads if ad in data.ads]
    assert data.origin == (
        "250 of the 300 images with usable objects, drawn with seed 7; "
        "which 250 the paper's small set has is not published"
    )


def test_an_image_outside_the_file_of_statements_is_not_in_the_set(folder: Path) -> None:
    release_b(folder, {TWO: record(TWO)})

    data = PittAds.open(folder)

    assert ([ad.id for ad in data.ads], data.dropped[ONE]) == ([TWO], "not in the file of statements")


@pytest.mark.parametrize("name", ["object_hard_QA_Combined_Action_Reason_train.json", "mine/qa.json"])
def test_another_file_of_statements_can_be_named(name: str, folder: Path) -> None:
    write_json(folder / name, {ONE: record(ONE, options=18)})

    data = PittAds.open(folder, qa=name)

    assert [(ad.id, len(ad.options)) for ad in data.ads] == [(ONE, 18)]


def test_an_option_that_stands_twice_is_offered_once(folder: Path) -> None:
    release_b(folder, {ONE: [["a", "a", "b"], ["b", "c", "a", "c", " a"]]})

    (ad,) = PittAds.open(folder, ids=[ONE]).ads

    assert (ad.true, ad.options, ad.negatives) == (("a", "b"), ("b", "c", "a", " a"), ("c", " a"))


def test_release_a_has_true_statements_without_options(folder: Path) -> None:
    (folder / "train" / "QA_Combined_Action_Reason_train.json").unlink()
    write_json(folder / "QA_Combined_Action_Reason.json", {FOUR: true_of(FOUR), ONE: true_of(ONE)})
    draw(folder, f"test_images/{TWO}")

    data = PittAds.open(folder)

    assert [(ad.id, ad.true, ad.options) for ad in data.ads] == [(ONE, tuple(true_of(ONE)), ())]
    assert data.dropped[TWO] == "in the test set"
    data.require("true", "labels", "statements", "images")
    with pytest.raises(
        BadData,
        match=r"^The ads of '.*' have no options to choose from: 'QA_Combined_Action_Reason\.json' is release A "
        r"\(2017\), true statements without options\. Release B has them: put `train/QA_Combined",
    ):
        data.require("options")


def test_without_annotations_every_ad_with_statements_is_taken(own_place: Path) -> None:
    release_b(own_place, {key: record(key) for key in KEYS[::-1]})

    data = PittAds.open(own_place)

    assert ([ad.id for ad in data.ads], data.origin) == ([*KEYS], "4 images with statements")
    for need, message in {"labels": "no atypicality labels", "images": "no images"}.items():
        with pytest.raises(BadData, match=message):
            data.require(need)  # pyright: ignore[reportArgumentType]


def test_hidden_answers_are_no_true_statements(own_place: Path) -> None:
    write_json(own_place / "test" / "QA_Combined_Action_Reason_test.json", {ONE: record(ONE)[1]})

    data = PittAds.open(own_place)

    assert data.ads[0].negatives == ()
    with pytest.raises(BadData, match=r"have no true statements: .* options whose answers are hidden"):
        data.require("options", "true")


EMPTY: dict[str, tuple[dict[str, Any], str]] = {
    "no annotations": ({}, r"has no `final_csv\.csv` with atypicality annotations"),
    "nothing typical": ({"which": "typical"}, r"has no `final_csv\.csv` with atypicality annotations"),
}


@pytest.mark.parametrize(("options", "message"), EMPTY.values(), ids=EMPTY)
def test_a_folder_without_data_says_what_it_lacks(options: dict[str, Any], message: str, own_place: Path) -> None:
    draw(own_place, "train_images/1/11.jpg")

    with pytest.raises(BadData, match=message):
        _ = PittAds.open(own_place, **options).ads


def test_where_no_image_is_left_the_reasons_are_counted(own_place: Path) -> None:
    write_csv(own_place / "final_csv.csv", [row(ONE, "4"), row(TWO, "5"), row(FOUR, "Regular_Object")])

    with pytest.raises(BadData, match=r"can be evaluated on: 2 none of the four categories, 1 typical\."):
        _ = PittAds.open(own_place).ads


@pytest.mark.parametrize("place", ["nowhere", "file.txt"])
def test_a_folder_that_is_none_is_named(place: str, own_place: Path) -> None:
    write(own_place / "file.txt", "x")

    with pytest.raises(BadData, match=rf"^There is no data folder '{place}'\."):
        PittAds.open(place)
