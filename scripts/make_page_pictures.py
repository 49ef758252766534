"""Draw the pictures of `docs/images`: pages over the demo's hand-written answers, as a browser shows them.

.venv/bin/python scripts/make_page_pictures.py       needs the extra `dev`, and a Chromium in the path
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH = 1180
COMMANDS: Sequence[str] = (
    "demo --copy ads",
    "eval run claims.yaml --data ads/samples.jsonl --vlm demo --out claims",
    "run investigate ads --vlm demo -o looks",
    "report claims -o claims.html",
    "report looks -o looks.html",
)
PICTURES: Sequence[tuple[str, str, Literal["light", "dark"], int]] = (
    ("report-light.png", "claims.html#sample=cat-cup", "light", 760),
    ("report-dark.png", "claims.html#sample=coin-horse", "dark", 760),
    ("investigation.png", "looks.html#sample=ads/brick-cup.jpg", "light", 1000),
)
"""A picture, the page and sample that it shows, its colours, and its height in pixels."""


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        shutil.copy(ROOT / "examples" / "claims.yaml", folder)
        for command in COMMANDS:
            words = [sys.executable, "-m", "askance", *command.split()]
            subprocess.run(words, cwd=folder, env={**os.environ, "ASKANCE_STORE": ".askance"}, check=True)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, address, colours, height in PICTURES:
            page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme=colours)
            page.goto(f"{folder.as_uri()}/{address}")
            page.wait_for_selector("main img")
            drawn = Image.open(BytesIO(page.screenshot()))
            drawn.quantize(256).save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
