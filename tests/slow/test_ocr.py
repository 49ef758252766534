"""RapidOCR reads a slogan in a photograph, in a fresh environment with the extra `ocr`; its replay needs no engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

pytestmark = pytest.mark.slow(group="wheel")

SLOGAN = ("FRESHLY BREWED", "EVERY MORNING")
READ = """\
import json, sys
from askance.models import Engine
from askance.replay import open_records
from askance.tools import ocr
with open_records("records") as store:
    text = ocr(engine=Engine(mode=sys.argv[1], records=store)).invoke("slogan.png")
boxes = [box.model_dump() for box in text.boxes]
print(json.dumps({"lines": text.lines, "boxes": boxes, "loaded": "rapidocr" in sys.modules}))
"""


@pytest.fixture(scope="module")
def folder(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a photograph into which a slogan is drawn."""
    folder = tmp_path_factory.mktemp("ocr")
    picture = Image.open(photos / "coffee.png").convert("RGB")
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(48)
    for place, line in enumerate(SLOGAN):
        draw.text((30, 20 + 60 * place), line, fill="white", font=font, stroke_width=2, stroke_fill="black")
    picture.save(folder / "slogan.png")
    return folder


def letters(lines: Iterable[str]) -> list[str]:
    """The lines without blanks, which no engine sees reliably."""
    return ["".join(line.split()) for line in lines]


def read(python: Path, folder: Path, mode: str) -> dict[str, Any]:
    command = [str(python), "-c", READ, mode]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(done.stdout)


def test_a_slogan_is_read_and_read_again_from_the_record(installed_python: Path, folder: Path) -> None:
    live = read(installed_python, folder, "auto")
    assert letters(live["lines"]) == letters(SLOGAN)
    assert live["loaded"] is True
    replayed = read(Path(sys.executable), folder, "replay")
    assert replayed == {**live, "loaded": False}


def test_boxes_stand_where_the_slogan_was_drawn(installed_python: Path, folder: Path) -> None:
    boxes = read(installed_python, folder, "auto")["boxes"]
    corners = [box["box"][0] for box in boxes]
    assert corners == [pytest.approx([30, 26], abs=12), pytest.approx([30, 86], abs=12)]
    assert min(box["confidence"] for box in boxes) > 0.9
