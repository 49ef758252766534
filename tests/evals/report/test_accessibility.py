"""Every kind of page before axe: no fault, in light and dark, on a phone, unfolded, with a sample open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from askance.evals import compare
from askance.evals.report import Thumbnails, build_comparison, build_report, comparison_page, report_page
from tests.evals.odd import write_pictures
from tests.evals.pittads import worlds
from tests.evals.report import test_browser_views as views
from tests.evals.report.browser import Seen, opened, showing, written
from tests.evals.report.runs import hostile_run, plain_run, three_runs

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from askance.evals import Run

pytestmark = pytest.mark.slow(group="pages")

PHONE = {"width": 390, "height": 844}
SCREEN = {"width": 1280, "height": 900}
UNFOLD = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


def chains(folder: Path) -> list[Run]:
    """Runs of the whole chain over three ads."""
    return three_runs(folder, worlds.world(folder / "data", true=(1, 2, 3)))


def compared(folder: Path, count: int) -> Path:
    difference = build_comparison(compare(*chains(folder)[:count]))
    pictures = Thumbnails.of(difference.parts, [folder / "data"])
    return written(folder, comparison_page(difference, pictures=pictures))


def reported(folder: Path, *runs: Run) -> Path:
    report = build_report(runs)
    pictures = Thumbnails.of(report.runs, [folder])
    return written(folder, report_page(report, pictures=pictures))


def painted(folder: Path) -> Path:
    return write_pictures(folder / "pictures", count=4)


PAGES: dict[str, Callable[[Path], Path]] = {
    "report": lambda folder: reported(folder, chains(folder)[2]),
    "report of three": lambda folder: reported(folder, *chains(folder)),
    "report of free answers": lambda folder: reported(folder, plain_run(folder / "run")),
    "report of what means harm": lambda folder: reported(folder, hostile_run(folder / "run", folder / "pictures")),
    "comparison of two": lambda folder: compared(folder, 2),
    "comparison of three": lambda folder: compared(folder, 3),
    "hits": views.hits_page,
    "scores": views.scores_page,
    "blame": lambda folder: views.blame_page(folder, painted(folder)),
    "pictures": lambda folder: views.pictures_page(folder, painted(folder)),
    "judge": lambda folder: views.judge_page(folder, painted(folder)),
    "preference": lambda folder: views.preference_page(folder, painted(folder)),
}
"""Every kind of page: what makes one in a folder."""

VIEWS = [("light", SCREEN), ("dark", SCREEN), ("light", PHONE)]


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_axe_finds_no_fault(make: Callable[[Path], Path], browser: Browser, tmp_path: Path) -> None:
    page = make(tmp_path)
    found: dict[str, list[str]] = {}
    for scheme, viewport in VIEWS:
        with opened(browser, page, color_scheme=scheme, viewport=viewport) as seen:
            for state, reach in STATES.items():
                if state == "overview" or seen.page.is_visible("#to-samples"):
                    reach(seen)
                    found[f"{scheme}, {viewport['width']} pixels, {state}"] = seen.faults()
            assert seen.complaints == []

    assert {state: faults for state, faults in found.items() if faults} == {}


def unfold(seen: Seen) -> None:
    seen.do(UNFOLD)


def show_samples(seen: Seen) -> None:
    seen.page.click("#to-samples")
    seen.until(showing("samples"))


def open_sample(seen: Seen) -> None:
    seen.page.keyboard.press("j")
    seen.page.keyboard.press("o")


def show_help(seen: Seen) -> None:
    seen.page.keyboard.press("?")


STATES: dict[str, Callable[[Seen], None]] = {
    "overview": unfold,
    "list": show_samples,
    "sample": open_sample,
    "keys": show_help,
}
"""What is done to a page, one after the other, before axe looks at it."""
