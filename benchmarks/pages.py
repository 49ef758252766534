"""How soon pages can be used in a browser: the report of a run, and the comparison of two.

    python benchmarks/pages.py [--samples N] [--runs N] [--folder FOLDER]

Needs a Chromium, and playwright, which the extra `dev` brings. The samples are those of `evaluations.py`, 7 calls each.
A page is opened from the disk, each time by a browser of its own.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluations import prepare
from measuring import Contender, measure, python

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PAGES = {
    "askance report": ["report", "runs/T_V", "--no-images", "--out"],
    "askance compare --html": ["compare", "runs/T_V", "runs/IN", "--no-images", "--html"],
}
SETTLED = "document.documentElement.dataset.ready && !document.querySelector('[aria-busy]')"
CHOOSING = """(menu) => {
  const chosen = document.querySelector(menu);
  const times = [chosen.options.length - 1, 0].map((place) => {
    const before = performance.now();
    chosen.selectedIndex = place;
    chosen.dispatchEvent(new Event("change"));
    document.body.getBoundingClientRect();
    return performance.now() - before;
  });
  return Math.max(...times);
}"""
SEARCHING = """async (words) => {
  const search = document.querySelector('#samples input[type="search"]');
  const count = document.querySelector('#samples output');
  const said = count.textContent;
  const before = performance.now();
  search.value = words;
  search.dispatchEvent(new Event("input"));
  while (count.textContent === said) await new Promise((done) => setTimeout(done, 1));
  return performance.now() - before;
}"""
SCROLLING = """async () => {
  const list = document.querySelector(".rows");
  let slowest = 0;
  for (let top = 0; top < list.scrollHeight; top += 1700) {
    const before = performance.now();
    list.scrollTop = top;
    list.dispatchEvent(new Event("scroll"));
    list.getBoundingClientRect();
    slowest = Math.max(slowest, performance.now() - before);
    await new Promise(requestAnimationFrame);
  }
  return slowest;
}"""
STEPS: dict[str, Callable[[Any], float]] = {
    "to use": lambda page: float(page.evaluate("document.documentElement.dataset.ready")),
    "filter": lambda page: page.evaluate(CHOOSING, "select[title=Result], select[title=Change]"),
    "sort": lambda page: page.evaluate(CHOOSING, "select[title=Order]"),
    "slowest draw in scrolling": lambda page: page.evaluate(SCROLLING),
    "first search": lambda page: page.evaluate(SEARCHING, "cup 7-"),
    "next search": lambda page: page.evaluate(SEARCHING, "cup 7"),
}
"""What is timed, one after the other; a search begins 120 ms after the last letter."""


def main() -> None:
    """Make the pages, open them and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000, help="how many samples")
    parser.add_argument("--runs", type=int, default=5, help="how often each page is opened")
    parser.add_argument("--folder", type=Path, help="where pictures, store, runs and pages are made and kept")
    given = parser.parse_args()
    if CHROMIUM is None:
        print("Left out: there is no Chromium on this machine.")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).resolve() / "task"
        prepare(folder, samples=given.samples)
        print(f"{given.samples:,} samples, {7 * given.samples:,} calls; milliseconds, median of {given.runs} runs\n")
        print(f"| | MB | {' | '.join(STEPS)} |\n|{'---|' * (2 + len(STEPS))}")
        for number, (name, words) in enumerate(PAGES.items()):
            page = folder / f"{number}.html"
            measure(Contender(name=name, command=[python(tool="askance"), *words, str(page)], folder=folder))
            found = [times(page) for _ in range(given.runs)]
            medians = [statistics.median(run[step] for run in found) for step in STEPS]
            print(f"| {name} | {page.stat().st_size / 1e6:.1f} | {' | '.join(f'{each:,.0f}' for each in medians)} |")


def times(page: Path) -> dict[str, float]:
    """Milliseconds of each step on a page that is opened now."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page()
        opened.goto(f"{page.as_uri()}#samples")
        found: dict[str, float] = {}
        for step, timed in STEPS.items():
            while not opened.evaluate(SETTLED):
                opened.wait_for_timeout(10)
            found[step] = timed(opened)
        browser.close()
    return found


if __name__ == "__main__":
    main()
