from __future__ import annotations

import asyncio
from typing import Any

import pytest

from askance.errors import UsageError
from askance.images import CLEAN_POLICY, Image, ImagePolicy
from askance.investigator import Scene
from askance.investigator.named_regions import GRID, text_regions
from askance.investigator.scene import Asked, crop_of
from askance.tools import TextBox
from tests.scripted import PICTURE

IMAGE = Image.load(PICTURE)
SMALL = ImagePolicy("clean", max_side=330)


def box_of(scene: Scene, edges: object) -> tuple[float, ...]:
    (box,) = scene.box(edges).boxes
    return box


@pytest.mark.parametrize(
    ("unit", "policy", "edges"),
    [
        ("thousandths", CLEAN_POLICY, [100, 200, 500, 800]),
        ("fractions", CLEAN_POLICY, [0.1, 0.2, 0.5, 0.8]),
        ("pixels", SMALL, [33, 55.6, 165, 222.4]),
    ],
)
def test_a_box_is_read_in_the_unit_of_the_model(unit: Any, policy: ImagePolicy, edges: list[float]) -> None:
    assert IMAGE.info.upright_size == (660, 556)
    assert box_of(Scene(IMAGE, unit=unit, policy=policy), edges) == (100, 200, 500, 800)


def test_a_box_that_reaches_out_a_little_is_clipped() -> None:
    assert box_of(Scene(IMAGE), [-20, 0, 400, 1040]) == (0, 0, 400, 1000)


@pytest.mark.parametrize(
    ("unit", "edges", "message"),
    [
        ("thousandths", [400, 200, 400, 800], "The box [400, 200, 400, 800] has no area. Give [left, top, right,"),
        ("thousandths", [500, 200, 100, 800], "The box [500, 200, 100, 800] has no area. "),
        ("thousandths", [1000, 10, 1050, 80], "Nothing of the image is in the box [1000, 10, 1050, 80]. Give a larger"),
        (
            "thousandths",
            [600, 300, 1200, 800],
            "The box [600, 300, 1200, 800] lies outside the image, or is in another",
        ),
        ("thousandths", [0.1, 0.2, 0.5, 0.8], "The box [0.1, 0.2, 0.5, 0.8] is in another unit. Give [left, top,"),
        ("fractions", [100, 200, 500, 800], "The box [100, 200, 500, 800] lies outside the image, or is in another"),
        ("pixels", [0, 0, 750, 300], "The box [0, 0, 750, 300] lies outside the image, or is in another unit. Give"),
        (
            "pixels",
            [1, 2],
            "This is no box. Give four numbers: [left, top, right, bottom] in pixels of the image, which",
        ),
        ("thousandths", "0,0,1,1", "This is no box. Give four numbers: "),
        ("thousandths", [1, 2, True, 4], "The edges of a box are numbers. Give [left, top, right, bottom] in"),
        ("thousandths", [1, 2, float("nan"), 4], "The edges of a box are numbers."),
        ("thousandths", [1, 2, 10**400, 4], "The edges of a box are numbers."),
        ("none", [100, 200, 500, 800], "Boxes are not taken here. Give the name of a region."),
    ],
)
def test_what_is_no_box_of_the_picture_is_said_with_the_way_out(unit: Any, edges: Any, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        Scene(IMAGE, unit=unit).box(edges)

    assert str(refused.value).startswith(message)


def test_a_grid_covers_the_picture_and_its_parts_overlap() -> None:
    assert [*GRID] == [
        "top left", "top", "top right", "left", "center", "right", "bottom left", "bottom", "bottom right",
    ]  # fmt: skip
    assert GRID["top left"] == (0, 0, 400, 400)
    assert GRID["right"] == (600, 300, 1000, 700)
    assert box_of_name("Bottom-Right ") == (600, 600, 1000, 1000)


def box_of_name(name: object) -> tuple[float, ...]:
    return Scene(IMAGE).region(name).boxes[0]


def test_an_unknown_region_names_the_nearest_and_all_there_are() -> None:
    with pytest.raises(UsageError, match=r"There is no region 'botom'. The nearest name is 'bottom'; there are top "):
        box_of_name("botom")
    with pytest.raises(UsageError, match=r"A region is given by its name. There are top left, top, "):
        box_of_name(4)


def test_lines_of_text_are_regions_within_the_picture() -> None:
    lines = [
        TextBox(text="BUY", confidence=0.9, box=((30, 40), (150, 44), (150, 84), (30, 80))),
        TextBox(text="!", confidence=0.9, box=((599.5, 399.9), (601, 399.9), (601, 402), (599.5, 402))),
    ]

    assert text_regions(lines, (600, 400)) == {"text 1": (50, 100, 250, 210), "text 2": (999, 999, 1000, 1000)}


def test_looks_are_equal_by_question_and_nearly_equal_boxes() -> None:
    whole, near, far = (crop_of(box) for box in [(100, 100, 500, 500), (100, 100, 500, 480), (100, 100, 500, 450)])
    asked = Asked("zoom", "What is it?", (whole,))

    assert asked.is_like(Asked("zoom", "  what IS\nit?", (near,)))
    assert not asked.is_like(Asked("zoom", "What is it?", (far,)))
    assert not asked.is_like(Asked("zoom", "What is that?", (whole,)))
    assert not asked.is_like(Asked("ask", "What is it?"))


async def test_an_equal_look_under_way_is_waited_for_and_a_failed_one_is_taken_again() -> None:
    scene, asked, taken = Scene(IMAGE), Asked("zoom", "What?", (crop_of(GRID["top"]),)), list[int]()

    async def take() -> int:
        taken.append(len(taken))
        await asyncio.sleep(0)
        return taken[-1]

    async def look() -> tuple[int, bool]:
        return await scene.once(asked, take, stays=lambda number: number > 0)

    assert await asyncio.gather(look(), look()) == [(0, False), (0, True)]
    assert await look() == (1, False)
    assert await look() == (1, True)
    assert scene.unseen == [name for name in GRID if name != "top"]
