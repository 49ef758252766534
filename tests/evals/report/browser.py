"""A real browser for the tests of pages, where one is on the machine: headless, on files alone."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from askance.evals import compare
from askance.evals.report import build_comparison, build_report, comparison_page, report_page
from askance.evals.report.html import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from askance.evals import Run

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


@contextmanager
def launched() -> Generator[Browser]:
    """A browser; the test is skipped where there is none, or nothing that drives it."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def showing(view: str) -> str:
    """The script that is true once the page shows a view: a new address takes effect a moment after key or click."""
    return f"document.documentElement.dataset.view === '{view}'"


_SETTLED = "!document.querySelector('[aria-busy]')"
"""The page has unpacked what it shows."""


@dataclass
class Seen:
    """A page that is open, and what it did that nobody should see."""

    page: Page
    requests: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])

    def do(self, script: str) -> Any:
        """The value of a script on the page, once it has unpacked what it shows."""
        self.until(_SETTLED)
        return self.page.evaluate(script)

    def until(self, script: str) -> None:
        """Waits until a script on the page gives something true."""
        for _ in range(200):  # the page's policy lets nothing wait within it
            if self.page.evaluate(script):
                return
            self.page.wait_for_timeout(25)
        pytest.fail(f"never came true: {script}")

    def texts(self, selector: str) -> list[str]:
        """What stands in the elements that the selector finds."""
        self.until(_SETTLED)
        return self.page.locator(selector).all_inner_texts()

    def text(self, selector: str) -> str:
        """What stands in the one element that the selector finds."""
        self.until(_SETTLED)
        return self.page.inner_text(selector)

    def faults(self) -> list[str]:
        """What axe finds fault with on the page as it stands, however slight: rule, how grave, and where."""
        self.until(_SETTLED)
        sync_playwright = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
        found: Any = sync_playwright.Axe().run(self.page).response
        return [f"{each['id']}, {each['impact']}: {_places(each['nodes'])}" for each in found["violations"]]


def _places(nodes: list[dict[str, Any]]) -> str:
    return "; ".join(str(node["target"]) for node in nodes[:5])


@contextmanager
def opened(browser: Browser, file: Path, anchor: str = "", **options: Any) -> Generator[Seen]:
    """A page in a browser of its own."""
    context = browser.new_context(**options)
    seen = Seen(context.new_page())
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    seen.page.on("console", lambda message: seen.complaints.append(message.text))
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.on("dialog", lambda dialog: seen.complaints.append(dialog.message))
    try:
        seen.page.goto(f"{file.as_uri()}{anchor}")
        seen.page.wait_for_selector("html[data-ready]", state="attached")
        yield seen
    finally:
        context.close()


def written(folder: Path, page: str) -> Path:
    """The file of a page in the folder."""
    write_page(folder / "page.html", lambda _: page)
    return folder / "page.html"


def reported(folder: Path, *runs: Run) -> Path:
    """The file of a report of runs without their pictures."""
    return written(folder, report_page(build_report(runs)))


def compared(folder: Path, *runs: Run) -> Path:
    """The file of a comparison of runs without their pictures."""
    return written(folder, comparison_page(build_comparison(compare(*runs))))
