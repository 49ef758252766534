"""The steps of an agent on a page: what it thought, used and was told, and the regions drawn on the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.evals import Evaluation, Prediction, Run, Sample, evaluate
from askance.evals.report import Thumbnails, build_report, report_page
from askance.evals.report.transcript_part import looked_at, tools_of, transcript_forms
from askance.images import Image, RegionView, Shown
from tests.evals.odd import write_pictures
from tests.evals.report.browser import compared, launched, opened, written
from tests.evals.report.runs import HOSTILE, SCORING, Parsed
from tests.evals.report.test_comparison_page import Shown as ShownTask

LEFT, RIGHT = (0, 0, 400, 1000), (600, 0, 1000, 1000)
STEPS: list[Any] = [
    {"step": 1, "thought": "First what is unusual.", "tool": "unusual", "outcome": "answered", "reply": "A cat."},
    {
        "step": 2,
        "thought": HOSTILE[0],
        "tool": "compare",
        "arguments": {"boxes": [[*LEFT], [*RIGHT]], "question": "Are they alike?"},
        "views": [RegionView("crop", (LEFT, RIGHT), "thousandths").canonical()],
        "outcome": "refused",
        "reason": "The model declined.",
        "left": "2 calls",
    },
    {"step": 3, "tool": "answer", "arguments": {"value": {"answers": [1]}, "confidence": 80}, "outcome": "answered"},
]
TRACE: dict[str, Any] = {"steps": STEPS, "confidence": 80, "enough": False, "evidence": [1], "budget": "8 calls"}


def run_of(out: Path, pictures: Path, trace: dict[str, Any] = TRACE) -> Run:
    image = Image.from_path(min(pictures.iterdir()))

    def solve(sample: Sample) -> Prediction:
        used = trace if sample.id == "s0" else {"steps": [STEPS[0]]}
        links: dict[str, Any] = {"answers": {"outcome": "answered", "calls": [], "trace": used}}
        return Prediction(outcome="answered", value=[1], links=links, confidence=0.8)

    samples = [Sample(id=f"s{number}", image=image, target=[1]) for number in range(2)]
    return evaluate(Evaluation(samples=samples, solver=solve, scorer=SCORING, name="tests/shown"), out=out)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "pictures", count=1)


def test_the_regions_of_a_step_are_drawn_on_the_picture_and_cut_out(tmp_path: Path, pictures: Path) -> None:
    run = run_of(tmp_path / "run", pictures)
    image = run.answers[0].sample.image or pytest.fail("no picture")

    drawn = [*looked_at(run.answers[0])]
    found = Thumbnails.of(build_report([run]).runs, [pictures])

    views = [RegionView("highlight", (LEFT, RIGHT), "thousandths")]
    views += [RegionView("crop", (box,), "thousandths") for box in (LEFT, RIGHT)]
    assert [each.view for each in drawn] == views
    assert [*found.jpegs] == [Shown(image).key, *(Shown(image, view=view).key for view in views)]


def test_a_page_has_the_steps_with_their_pictures_and_the_tools_of_each_sample(tmp_path: Path, pictures: Path) -> None:
    report = build_report([run_of(tmp_path / "run", pictures)])

    page = Parsed(report_page(report, pictures=Thumbnails.of(report.runs, [pictures])))

    ((first,), _), _ = page.samples()
    (looking,) = first["looking"]
    assert (looking["link"], looking["facts"]["enough"], looking["facts"]["evidence"]) == ("answers", False, [1])
    assert [step["tool"] for step in looking["steps"]] == ["unusual", "compare", "answer"]
    assert (looking["steps"][1]["boxed"], looking["steps"][1]["crops"]) == (1, [2, 3])
    assert "trace" not in first["links"][0]
    assert [row["tools"] for row in page.data("index")["runs"][0]["rows"]] == [["compare", "unusual"], ["unusual"]]


@pytest.mark.parametrize(
    "steps",
    [
        None,
        "steps",
        [7, None, "step"],
        [{"step": {}, "tool": ["x"], "views": [None, 7, {"show": "crop", "boxes": "x"}, {"boxes": [[1]]}]}],
        [{"views": {"show": "crop"}, "arguments": [1], "calls": "x", "reply": 7, "thought": None}],
    ],
)
def test_what_is_no_transcript_is_left_out(tmp_path: Path, pictures: Path, steps: Any) -> None:
    answer = run_of(tmp_path / "run", pictures, {"steps": steps}).answers[0]

    assert [*looked_at(answer)] == []
    assert tools_of(answer) == ()
    assert all("boxed" not in step for form in transcript_forms(answer, lambda _: 1) for step in form["steps"])


@pytest.mark.slow(group="pages")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_steps_are_filtered_by_tool_and_by_words_in_a_browser(
    tmp_path: Path, pictures: Path, width: int, scheme: Any
) -> None:
    report = build_report([run_of(tmp_path / "run", pictures)])
    thumbnails = Thumbnails.of(report.runs, [pictures])
    page = written(tmp_path, report_page(report, pictures=thumbnails))

    view: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with launched() as browser, opened(browser, page, "#sample=s0", **view) as seen:
        assert seen.do("document.querySelectorAll('.step').length") == 3
        assert seen.do("document.querySelectorAll('.step .seen img').length") == 3
        assert seen.texts(".thought")[1].startswith(HOSTILE[0][:5])
        seen.page.get_by_label("Tool of the step").select_option("compare")
        assert seen.texts(".step:not([hidden]) b") == ["compare"]
        seen.page.get_by_label("Tool of the step").select_option("")
        seen.page.get_by_label("Search the steps").fill("A CAT")
        assert seen.texts(".step:not([hidden]) b") == ["unusual"]
        assert seen.text(".step-filter output") == "1 of 3 steps"
        assert seen.do("document.documentElement.scrollWidth <= innerWidth")
        assert (seen.faults(), seen.complaints) == ([], [])
        if width > 1000:
            seen.page.get_by_label("Tool that was used").select_option("compare")
            assert seen.do("document.querySelectorAll('.row').length") == 1


@pytest.mark.slow(group="pages")
def test_the_steps_of_two_runs_stand_side_by_side_in_a_browser(tmp_path: Path, pictures: Path) -> None:
    runs = run_of(tmp_path / "a", pictures), run_of(tmp_path / "b", pictures, {"steps": []})
    assert ShownTask.name == runs[0].task

    with launched() as browser, opened(browser, compared(tmp_path, *runs), "#sample=s0") as seen:
        assert seen.do("document.querySelectorAll('.sides .step').length") == 3
        assert "It did not look with tools." in seen.text("#samples")
