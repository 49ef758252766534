"""Regions on a page: boxes drawn on the picture of a sample, and every view that a model was shown."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from askance.chat import Message, TextPart
from askance.evals import Evaluation, Run, Sample, evaluate
from askance.evals.report import Thumbnails, build_report, report_page
from askance.evals.report.html import write_page
from askance.evals.report.shown_views import MOST_REGIONS, image_forms, regions_of, views_in
from askance.images import Image, RegionView, Shown
from askance.images.region_styles import MAGENTA
from askance.models import Engine, ScriptedModel, get_model, get_scorer
from askance.replay import MemoryStore, Record
from tests.evals.report.browser import launched, opened
from tests.evals.report.runs import SCORING, Parsed

RED, BLUE, GREY = (200, 0, 0), (0, 0, 200), (90, 90, 90)
REGIONS = [[[0, 0, 20, 20]], [[40, 0, 60, 20], [40, 20, 60, 40]]]
LEFT, RIGHT = (0, 0, 20, 20), (40, 0, 60, 40)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Red on the left, blue on the right."""
    drawn = Pillow.new("RGB", (60, 40), GREY)
    drawn.paste(RED, LEFT)
    drawn.paste(BLUE, RIGHT)
    (tmp_path / "data").mkdir()
    drawn.save(tmp_path / "data" / "halves.png")
    return tmp_path / "data" / "halves.png"


class _Looking:
    """A picture scorer that takes views and finds all texts fitting."""

    id = "looking"

    async def score(self, image: Image, texts: Any) -> list[float]:
        return await self.score_view(image, texts, RegionView())

    async def score_view(self, image: Image, texts: Any, view: RegionView) -> list[float]:
        return [1.0 for _ in texts]


def run_of(out: Path, picture: Path, regions: Any = REGIONS) -> Run:
    """A run of one sample whose solver shows two crops in one request, and both to a scorer."""
    engine = Engine(records=MemoryStore())
    model = get_model(ScriptedModel(["They differ."], identity="script"), engine=engine)
    scorer = get_scorer(_Looking(), engine=engine)

    async def solve(sample: Sample) -> str:
        image = sample.image or pytest.fail("no picture")
        views = [RegionView("crop", (box,), "native pixels") for box in (LEFT, RIGHT)]
        parts = [*(model.image(image, view) for view in views), model.image(image), TextPart("What differs?")]
        said = (await model.generate(model.request([Message("user", tuple(parts))]))).text
        await scorer.score(image, ["a fit"], view=RegionView("both", (LEFT,), style="sherlock"))
        return said

    sample = Sample(id="s0", image=Image.from_path(picture), inputs={"regions": regions}, target="They differ.")
    task = Evaluation(samples=[sample], solver=solve, scorer=SCORING, name="tests/regions")
    return evaluate(task, out=out, engine=engine)


def colours(data: bytes) -> list[tuple[int, int, int]]:
    """The colours of a small JPEG at a row of five places, as far as JPEG keeps them."""
    drawn = Pillow.open(io.BytesIO(data))
    return [drawn.getpixel((drawn.width * place // 10, drawn.height // 4)) for place in (1, 3, 5, 7, 9)]  # pyright: ignore[reportReturnType]


def near(found: Any, expected: Any) -> bool:
    return all(abs(one - other) < 40 for one, other in zip(found, expected, strict=True))


def test_the_thumbnails_have_the_regions_and_all_that_was_shown(tmp_path: Path, picture: Path) -> None:
    run = run_of(tmp_path / "run", picture)
    image = Image.from_path(picture)

    found = Thumbnails.of(build_report([run]).runs, [tmp_path / "data"])

    regions = tuple(tuple(box) for region in REGIONS for box in region)
    policy = get_scorer(_Looking(), engine=Engine(records=MemoryStore())).policy
    expected = [
        Shown(image),
        Shown(image, view=RegionView("highlight", regions, "native pixels")),  # pyright: ignore[reportArgumentType]
        *(Shown(image, view=RegionView("crop", (box,), "native pixels")) for box in (LEFT, RIGHT)),
        *(Shown(image, policy, RegionView(show, (LEFT,), style="sherlock")) for show in ("highlight", "crop")),
    ]
    assert [*found.jpegs] == [shown.key for shown in expected]
    whole, drawn, left, right, *_ = found.jpegs.values()
    assert near(colours(whole)[0], RED)
    tinted = [three * 3 // 4 + one // 4 for three, one in zip(RED, MAGENTA, strict=True)]
    assert near(colours(drawn)[0], tinted)
    assert near(colours(drawn)[2], GREY)
    assert all(near(colour, RED) for colour in colours(left))
    assert all(near(colour, BLUE) for colour in colours(right))
    assert found.notes == ()


def test_a_page_refers_to_them_from_the_sample_and_from_each_message(tmp_path: Path, picture: Path) -> None:
    report = build_report([run_of(tmp_path / "run", picture)])

    page = Parsed(report_page(report, pictures=Thumbnails.of(report.runs, [tmp_path / "data"])))
    bare = Parsed(report_page(report))

    ((detail,),), calls = page.samples()
    assert (page.data("index")["runs"][0]["rows"][0]["picture"], detail["regions"]) == (0, 1)
    chat, score = calls.values()
    assert [part.get("views") for part in chat["messages"][0]["parts"][:3]] == [[2], [3], None]
    assert score["views"] == [4, 5]
    assert len(page.data("pictures-0")) == 6
    ((without,),), calls = bare.samples()
    assert "regions" not in without
    assert not any("views" in part for part in next(iter(calls.values()))["messages"][0]["parts"][:3])


WRONG: dict[str, Any] = {
    "no list": "regions",
    "none": [],
    "no boxes": [7],
    "no numbers": [[["a", "b", "c", "d"]]],
    "three numbers": [[[1, 2, 3]]],
    "no area": [[[3, 3, 3, 3]]],
    "endless": [[[0, 0, 10**400, 5]]],
    "too many": [[[0, 0, 5, 5]]] * (MOST_REGIONS + 1),
}


@pytest.mark.parametrize("regions", WRONG.values(), ids=WRONG)
def test_inputs_that_are_no_regions_are_not_drawn(picture: Path, regions: Any) -> None:
    sample = Sample(id="s", image=Image.from_path(picture), inputs={"regions": regions})
    assert regions_of(sample) is None


def test_a_region_beyond_the_picture_leaves_its_page_without_it(tmp_path: Path, picture: Path) -> None:
    report = build_report([run_of(tmp_path / "run", picture, [[[500, 500, 600, 600]]])])

    found = Thumbnails.of(report.runs, [tmp_path / "data"])

    assert len(found.jpegs) == 5
    assert found.missing == 0
    ((detail,),), _ = Parsed(report_page(report, pictures=found)).samples()
    assert "regions" not in detail


CROP = {"show": "crop", "boxes": [[0, 0, 9, 9]], "version": 1}
NO_VIEWS: list[Any] = [
    None,
    7,
    "crop",
    {},
    {"show": "crop"},
    {**CROP, "version": 99},
    {**CROP, "boxes": [[0, 0, 9]]},
    {**CROP, "boxes": [[0, 0, 2**62, 9], "1234"]},
    {**CROP, "more": 1},
]


@pytest.mark.parametrize("view", NO_VIEWS, ids=str)
def test_views_that_somebody_wrote_are_no_fault(view: Any) -> None:
    form = {"type": "image", "sha256": "a" * 64, "policy": {"name": "clean", "version": 1}, "view": view}
    record = Record.make("chat", {"messages": [{"role": "user", "parts": [form]}]}, {"text": "x", "finish": "stop"})

    assert [views_in(each) for each in image_forms(record)] == [{}]


@pytest.mark.slow(group="pages")
def test_the_regions_and_the_views_are_seen(tmp_path: Path, picture: Path) -> None:
    report, out = build_report([run_of(tmp_path / "run", picture)]), tmp_path / "page.html"
    pictures = Thumbnails.of(report.runs, [tmp_path / "data"])
    write_page(out, lambda files: report_page(report, pictures=pictures, files=files))

    with launched() as browser, opened(browser, out, "#sample=s0") as seen:
        seen.page.keyboard.press("o")
        seen.until("document.querySelectorAll('.detail .call .view').length === 4")

        assert seen.do("document.querySelector('.about img').alt") == "The picture halves.png with its regions"
        shown = seen.do("[...document.querySelectorAll('.detail .view')].map((each) => each.alt)")
        assert shown[0] == "What was shown: crop of [[0,0,20,20]]"
        assert seen.do("[...document.querySelectorAll('.detail img')].every((each) => each.naturalWidth > 0)")
        assert seen.complaints == []
